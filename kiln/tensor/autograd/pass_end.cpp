#include "kiln/tensor/autograd/pass_end.h"

#include <atomic>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "kiln/core/error.h"
#include "kiln/tensor/autograd/pass_callbacks.h"

namespace kiln {

namespace detail {

namespace {

thread_local PassCallbacks* running = nullptr;

using GradientsHook = std::function<void(Gradients&)>;

struct GradientsHooks {
  std::mutex mutex;
  std::vector<std::shared_ptr<GradientsHook>> hooks;
  std::atomic<size_t> count{0};
};

GradientsHooks& gradients_hooks() {
  static auto* all = new GradientsHooks();  // outlives whoever removes a hook at the end
  return *all;
}

}  // namespace

PassCallbacks::PassCallbacks() : outermost_(running == nullptr) {
  if (outermost_) running = this;
}

PassCallbacks::~PassCallbacks() {
  if (outermost_) running = nullptr;
}

PassCallbacks* PassCallbacks::of_this_thread() { return running; }

void PassCallbacks::call() {
  // One may queue another.
  for (size_t i = 0; i < calls_.size(); ++i) {
    const std::function<void()> then = std::move(calls_[i]);
    then();
  }
}

void call_gradients_hooks(Gradients& gradients) {
  GradientsHooks& all = gradients_hooks();
  if (all.count.load(std::memory_order_relaxed) == 0) return;
  std::vector<std::shared_ptr<GradientsHook>> hooks;
  {
    const std::lock_guard lock(all.mutex);
    hooks = all.hooks;
  }
  for (const auto& hook : hooks) (*hook)(gradients);
}

}  // namespace detail

HookHandle register_gradients_hook(std::function<void(Gradients&)> hook) {
  detail::GradientsHooks& all = detail::gradients_hooks();
  auto own = std::make_shared<detail::GradientsHook>(std::move(hook));
  const std::lock_guard lock(all.mutex);
  all.hooks.push_back(own);
  all.count = all.hooks.size();
  return HookHandle([own = std::move(own)] {
    detail::GradientsHooks& hooks = detail::gradients_hooks();
    const std::lock_guard removing(hooks.mutex);
    std::erase(hooks.hooks, own);
    hooks.count = hooks.hooks.size();
  });
}

void queue_callback(std::function<void()> then) {
  detail::PassCallbacks* const pass = detail::PassCallbacks::of_this_thread();
  if (pass == nullptr) {
    throw_error<AutodiffError>(
        "queue_callback: no backward pass runs on this thread; expected a call from a hook of a "
        "pass that adds to the gradients of leaves");
  }
  pass->add(std::move(then));
}

}  // namespace kiln
