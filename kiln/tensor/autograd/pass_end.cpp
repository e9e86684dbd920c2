#include "kiln/tensor/autograd/pass_end.h"

#include <utility>

#include "kiln/core/error.h"
#include "kiln/tensor/autograd/pass_callbacks.h"

namespace kiln {

namespace detail {

namespace {

thread_local PassCallbacks* running = nullptr;

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

}  // namespace detail

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
