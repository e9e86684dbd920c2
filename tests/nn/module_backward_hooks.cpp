// Backward hooks; what is expected is what PyTorch does with the same modules.
#include <doctest/doctest.h>

#include "kiln/core/error.h"
#include "kiln/tensor/autograd/grad_mode.h"
#include "tests/nn/models.h"
#include "tests/support/near.h"
#include "tests/support/throws.h"

using namespace kiln;
using kiln::nn::Gradient;
using kiln::nn::Linear;
using kiln::nn::Module;
using kiln::test::message_of;
using kiln::test::near;

namespace {

using Names = std::vector<std::string>;

// x * y, x + n and a number.
struct Two : Module {
  KILN_MODULE(Two)
  std::tuple<Tensor, Tensor, int> forward(const Tensor& x, const Tensor& y, int n) const {
    return {x * y, x + n, 7};
  }
};

struct Twice : Module {
  KILN_MODULE(Twice)
  Tensor forward(const Tensor& x) const { return x * 2.0; }
};

struct InPlace : Module {
  KILN_MODULE(InPlace)
  Tensor forward(Tensor x) const { return x.mul_(2.0); }
};

Tensor leaf(std::initializer_list<float> values) {
  Tensor x = tensor(std::vector<float>(values));
  return x.requires_grad_();
}

Names describe(const Gradient& grads) {
  Names out;
  for (const Tensor& g : grads) out.push_back(g.defined() ? to_string(g) : "None");
  return out;
}

}  // namespace

TEST_CASE("full backward hook: one gradient for each argument and each element of the output") {
  Two module;
  Names seen;
  module.register_full_backward_pre_hook([&](Module&, const Gradient& grad_output) {
    seen = describe(grad_output);
    CHECK(grad_output.size() == 3);
  });
  Names grad_in, grad_out;
  module.register_full_backward_hook([&](Module& m, const Gradient& in, const Gradient& out) {
    CHECK(&m == &module);
    grad_in = describe(in);
    grad_out = describe(out);
  });
  Tensor x = leaf({1, 2});
  const Tensor y = tensor({3.F, 4.F});
  std::get<0>(module(x, y, 5)).sum().backward_accumulate();
  CHECK(seen == Names{"tensor([1., 1.])", "None", "None"});
  CHECK(grad_out == seen);
  CHECK(grad_in == Names{"tensor([3., 4.])", "tensor([0., 0.])", "None"});
  CHECK(near(x.grad(), {3, 4}));

  x = leaf({1, 2});
  const Tensor y2 = leaf({3, 4});
  const auto [product, sum, number] = module(x, y2, 5);
  CHECK(number == 7);
  CHECK(near(product, {3, 8}));
  sum.sum().backward_accumulate();
  CHECK(seen == Names{"None", "tensor([1., 1.])", "None"});
  CHECK(grad_in == Names{"tensor([1., 1.])", "tensor([0., 0.])", "None"});
  CHECK(near(x.grad(), {1, 1}));
  CHECK(near(y2.grad(), {0, 0}));
}

TEST_CASE("full backward hook: what it returns replaces the gradients of the inputs") {
  Linear layer(2, 1, false);
  layer.load_state_dict({{"weight", tensor({{2.F, 3.F}})}});
  HookHandle hook = layer.register_full_backward_hook(
      [](Module&, const Gradient& in, const Gradient&) { return Gradient{in[0] * 10.0}; });
  Tensor x = leaf({1, 1});
  layer(x).sum().backward_accumulate();
  CHECK(near(x.grad(), {20, 30}));
  CHECK(near(layer.weight->grad(), {1, 1}));  // not what the hook replaced
  hook.remove();
  x = leaf({1, 1});
  layer(x).sum().backward_accumulate();
  CHECK(near(x.grad(), {2, 3}));
}

TEST_CASE("full backward pre-hook: what it returns is the gradient of the output from then on") {
  Twice module;
  Names seen;
  module.register_full_backward_pre_hook(
      [](Module&, const Gradient& out) { return Gradient{out[0] * 3.0}; });
  module.register_full_backward_pre_hook(
      [](Module&, const Gradient& out) { return Gradient{out[0] + 1.0}; }, true);
  module.register_full_backward_hook(
      [&](Module&, const Gradient&, const Gradient& out) { seen = describe(out); });
  const Tensor x = leaf({1, 1});
  module(x).sum().backward_accumulate();
  CHECK(seen == Names{"tensor([6., 6.])"});  // (1 + 1) * 3: the prepended one first
  CHECK(near(x.grad(), {12, 12}));
}

TEST_CASE("full backward hook: fires at the outputs when no input requires a gradient") {
  Linear layer(2, 1, false);
  int runs = 0;
  HookHandle hook =
      layer.register_full_backward_hook([&](Module&, const Gradient& in, const Gradient& out) {
        ++runs;
        CHECK(in.size() == 1);
        CHECK(!in[0].defined());
        CHECK(near(out[0], {1.0}));
        return Gradient(1);
      });
  layer(ones({1, 2})).sum().backward_accumulate();
  CHECK(runs == 1);
  CHECK(layer.weight->grad().defined());
  hook.remove();
  layer.register_full_backward_hook([](Module&, const Gradient&, const Gradient&) {
    return Gradient{ones({1, 2})};
  });
  CHECK(message_of<RuntimeError>([&] {
          layer(ones({1, 2})).sum().backward_accumulate();
        }) ==
        "Backward hook for Modules where no input requires gradient should always return None or "
        "None for all gradients.");
}

TEST_CASE("full backward hook: never fires when no output requires a gradient") {
  Twice module;
  int runs = 0;
  module.register_full_backward_hook([&](Module&, const Gradient&, const Gradient&) { ++runs; });
  const Tensor x = leaf({1});
  {
    NoGradGuard no_grad;
    CHECK(!module(x).requires_grad());
  }
  CHECK(!module(ones({1})).requires_grad());
  // The input's gradient is asked for, but not through the module.
  (x * 3.0).sum().backward_accumulate();
  CHECK(runs == 0);
}

TEST_CASE("full backward hook: wrong counts and errors of hooks") {
  Twice module;
  HookHandle hook = module.register_full_backward_hook(
      [](Module&, const Gradient&, const Gradient&) { return Gradient(2); });
  CHECK(message_of<RuntimeError>([&] { module(leaf({1})).sum().backward_accumulate(); }) ==
        "Backward hook returned an invalid number of grad_input, got 2, but expected 1");
  hook.remove();
  hook =
      module.register_full_backward_pre_hook([](Module&, const Gradient&) { return Gradient(3); });
  CHECK(message_of<RuntimeError>([&] { module(leaf({1})).sum().backward_accumulate(); }) ==
        "Backward pre hook returned an invalid number of grad_output, got 3, but expected 1");
  hook.remove();
  module.register_full_backward_hook(
      [](Module&, const Gradient&, const Gradient&) { throw IndexError("mine"); });
  CHECK_THROWS_AS(module(leaf({1})).sum().backward_accumulate(), IndexError);
}

TEST_CASE("full backward hook: inputs and outputs are views that must not be written in place") {
  InPlace module;
  const Tensor x = leaf({1, 2});
  CHECK(near(module(x * 1.0), {2, 4}));
  const ScopedHook hook(
      module.register_full_backward_hook([](Module&, const Gradient&, const Gradient&) {}));
  CHECK_THROWS_AS(module(x * 1.0), AutodiffError);
  Twice twice;
  const ScopedHook other(
      twice.register_full_backward_hook([](Module&, const Gradient&, const Gradient&) {}));
  Tensor y = twice(x);
  CHECK_THROWS_AS(y.add_(1.0), AutodiffError);
  CHECK(near(y, {2, 4}));
}

TEST_CASE("full backward hook: global ones first; order of nested modules") {
  test::Block block;
  Names order;
  const auto note = [&order](std::string what) {
    return [&order, what](Module& m, const Gradient&, const Gradient&) {
      order.push_back(what + " " + m.type_name());
    };
  };
  block.register_full_backward_hook(note("own"));
  const ScopedHook global(nn::register_module_full_backward_hook(note("global")));
  const ScopedHook pre(nn::register_module_full_backward_pre_hook(
      [&order](Module& m, const Gradient&) { order.push_back("pre " + m.type_name()); }));
  block(leaf({1, 1})).sum().backward_accumulate();
  CHECK(order == Names{"pre Block", "pre ReLU", "global ReLU", "pre Linear", "global Linear",
                       "global Block", "own Block"});
}

TEST_CASE("full backward hook: can be differentiated again") {
  Twice module;
  int runs = 0;
  module.register_full_backward_hook([&](Module&, const Gradient&, const Gradient&) { ++runs; });
  const Tensor x = leaf({3});
  const Tensor y = module(x);
  const Tensor loss = (y * y).sum();  // 4 x^2
  const Tensor first = grad({loss}, {x}, {.create_graph = true})[0];
  CHECK(near(first, {24}));
  CHECK(runs == 1);
  const Tensor second = grad({first.sum()}, {x})[0];
  CHECK(near(second, {8}));
}

TEST_CASE("full backward hook: a module that is gone has no hooks") {
  int runs = 0;
  const Tensor x = leaf({1});
  Tensor y;
  {
    Twice module;
    module.register_full_backward_hook([&](Module&, const Gradient&, const Gradient&) { ++runs; });
    y = module(x);
  }
  y.sum().backward_accumulate();
  CHECK(near(x.grad(), {2}));
  CHECK(runs == 0);
  // One that moved is still there.
  Twice module;
  module.register_full_backward_hook([&](Module&, const Gradient&, const Gradient&) { ++runs; });
  y = module(x);
  const Twice moved = std::move(module);
  y.sum().backward_accumulate();
  CHECK(runs == 1);
}

TEST_CASE("backward hook (deprecated): sees the module's last op, and may replace its gradients") {
  Twice module;
  Names in, out;
  HookHandle hook =
      module.register_backward_hook([&](Module&, const Gradient& given, const Gradient& grads) {
        in = describe(given);
        out = describe(grads);
        return Gradient{given[0] + 1.0};
      });
  Tensor x = leaf({1, 1});
  module(x).sum().backward_accumulate();
  CHECK(in == Names{"tensor([2., 2.])"});
  CHECK(out == Names{"tensor([1., 1.])"});
  CHECK(near(x.grad(), {3, 3}));
  hook.remove();
  x = leaf({1, 1});
  module(x).sum().backward_accumulate();
  CHECK(near(x.grad(), {2, 2}));
}

TEST_CASE("backward hook (deprecated): does not mix with full ones") {
  Twice module;
  HookHandle hook = module.register_backward_hook([](Module&, const Gradient&, const Gradient&) {});
  CHECK(message_of<RuntimeError>([&] {
          module.register_full_backward_hook([](Module&, const Gradient&, const Gradient&) {});
        }) ==
        "Cannot use both regular backward hooks and full backward hooks on a single Module. "
        "Please use only one of them.");
  Twice other;
  other.register_full_backward_hook([](Module&, const Gradient&, const Gradient&) {});
  CHECK_THROWS_AS(other.register_backward_hook([](Module&, const Gradient&, const Gradient&) {}),
                  RuntimeError);
  const ScopedHook global(
      nn::register_module_backward_hook([](Module&, const Gradient&, const Gradient&) {}));
  CHECK_THROWS_AS(
      nn::register_module_full_backward_hook([](Module&, const Gradient&, const Gradient&) {}),
      RuntimeError);
}

TEST_CASE("backward hook (deprecated): global, on every module with a gradient") {
  test::Block block;
  Names order;
  const ScopedHook global(nn::register_module_backward_hook(
      [&](Module& m, const Gradient&, const Gradient&) { order.push_back(m.type_name()); }));
  block(leaf({1, 1})).sum().backward_accumulate();
  // Block's result is made by the op of its ReLU.
  CHECK(order == Names{"ReLU", "Block", "Linear"});
}
