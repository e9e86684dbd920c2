// Hooks while several threads call and differentiate one module.
#include <atomic>
#include <thread>

#include <doctest/doctest.h>

#include "tests/nn/models.h"
#include "tests/support/near.h"

using namespace kiln;
using kiln::nn::Gradient;
using kiln::nn::HookArgs;
using kiln::nn::HookValue;
using kiln::nn::Module;
using kiln::test::near;

namespace {

struct Twice : Module {
  KILN_MODULE(Twice)
  Tensor forward(const Tensor& x) const { return x * 2.0; }
};

template <class F>
void in_threads(int count, F f) {
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) threads.emplace_back([&f, i] { f(i); });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

TEST_CASE("hooks: come and go while other threads call the module") {
  Twice module;
  std::atomic<int> seen{0};
  std::atomic<bool> right{true};
  in_threads(4, [&](int i) {
    for (int round = 0; round < 200; ++round) {
      if (i == 0) {
        const ScopedHook own(
            module.register_forward_hook([&seen](Module&, HookArgs&, HookValue&) { ++seen; }));
        const ScopedHook global(
            nn::register_module_forward_pre_hook([&seen](Module&, HookArgs&) { ++seen; }));
        module(ones({1}));
      } else if (module(full({1}, 3.0)).item() != 6.0) {
        right = false;
      }
    }
  });
  CHECK(right);
  CHECK(seen >= 400);
  CHECK(!module.has_forward_hooks());
}

TEST_CASE("backward hooks: each thread's pass has its own gradients") {
  Twice module;
  std::atomic<bool> right{true};
  std::atomic<int> runs{0};
  const ScopedHook hook(
      module.register_full_backward_hook([&](Module&, const Gradient& in, const Gradient& out) {
        ++runs;
        if (in[0].item() != 2.0 * out[0].item()) right = false;
      }));
  // One graph for all, and one for each.
  Tensor shared = full({1}, 1.0);
  shared.requires_grad_();
  const Tensor result = module(shared);
  in_threads(4, [&](int i) {
    for (int round = 0; round < 50; ++round) {
      const Tensor seed = full({1}, static_cast<double>(i + 1));
      const Gradients grads = result.backward(seed, true);
      if (shared.grad(grads)->item() != 2.0 * (i + 1)) right = false;
      Tensor x = full({1}, 1.0);
      x.requires_grad_();
      if (x.grad(module(x).backward(seed))->item() != 2.0 * (i + 1)) right = false;
    }
  });
  CHECK(right);
  CHECK(runs == 400);
}
