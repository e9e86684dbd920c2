// Functions with a derivative of the user's own.
#include "kiln/tensor/autograd/custom_function.h"

#include <cmath>
#include <memory>

#include "tests/support/tensor_check.h"

using namespace kiln;
using namespace kiln::test;

namespace {

struct Cube : Function<Cube> {
  static Tensor forward(FunctionContext& ctx, const Tensor& x) {
    CHECK_FALSE(is_grad_enabled());
    ctx.save_for_backward({x});
    return x * x * x;
  }
  static TensorList backward(FunctionContext& ctx, const TensorList& grads) {
    return {grads[0] * ctx.saved_tensors()[0].pow(2) * 3};
  }
};

// exp(scale * x), from its own output.
struct ScaledExp : Function<ScaledExp> {
  static Tensor forward(FunctionContext& ctx, const Tensor& x, double scale) {
    ctx.saved_data()["scale"] = scale;
    Tensor y = (x * scale).exp();
    ctx.save_for_backward({y});
    return y;
  }
  static TensorList backward(FunctionContext& ctx, const TensorList& grads) {
    const double scale = std::any_cast<double>(ctx.saved_data()["scale"]);
    return {grads[0] * ctx.saved_tensors()[0] * scale, {}};
  }
};

// x * y, x + y and the indices that sort x.
struct Several : Function<Several> {
  static std::tuple<Tensor, Tensor, Tensor> forward(FunctionContext& ctx, const Tensor& x,
                                                    const Tensor& y) {
    ctx.save_for_backward({x, y});
    return {x * y, x + y, x.argsort(-1)};
  }
  static TensorList backward(FunctionContext& ctx, const TensorList& grads) {
    CHECK(grads.size() == 3);
    CHECK(grads[0].shape() == grads[1].shape());
    const TensorList saved = ctx.saved_tensors();
    TensorList out(2);
    if (ctx.needs_input_grad(0)) out[0] = grads[0] * saved[1] + grads[1];
    if (ctx.needs_input_grad(1)) out[1] = grads[0] * saved[0] + grads[1];
    return out;
  }
};

Tensor leaf(std::initializer_list<double> values) {
  return tensor(Doubles(values), {.dtype = f64, .requires_grad = true});
}

// Calls the identity with this backward.
Tensor with_backward(const Tensor& x, const FunctionBackward& backward) {
  return call_function(
      "custom", {x}, [](FunctionContext&, const TensorList& in) { return TensorList{in[0] * 1}; },
      backward)[0];
}

}  // namespace

TEST_CASE("a function of one tensor, to third order") {
  Tensor x = leaf({2.0, -1.0});
  const Tensor y = Cube::apply(x);
  CHECK(y.grad_fn() == "Cube");
  CHECK(mismatch(y, {2}, {8, -1}) == "");
  const Tensor first = grad({y.sum()}, {x}, {.create_graph = true})[0];
  const Tensor second = grad({first.sum()}, {x}, {.create_graph = true})[0];
  const Tensor third = grad({second.sum()}, {x})[0];
  CHECK(mismatch(first, {2}, {12, 3}) == "");
  CHECK(mismatch(second, {2}, {12, -6}) == "");
  CHECK(mismatch(third, {2}, {6, 6}) == "");
  CHECK_FALSE(Cube::apply(x.detach()).requires_grad());
  CHECK_FALSE(no_grad([&] { return Cube::apply(x); }).requires_grad());
}

TEST_CASE("saved outputs differentiate again, and are freed with the graph") {
  Tensor x = leaf({0.5});
  Tensor y = ScaledExp::apply(x, 2.0);
  const Tensor first = grad({y}, {x}, {.create_graph = true})[0];
  const Tensor second = grad({first}, {x}, {.create_graph = true})[0];
  CHECK(mismatch(first, {1}, {2 * std::exp(1.0)}) == "");
  CHECK(mismatch(second, {1}, {4 * std::exp(1.0)}) == "");

  auto alive = std::make_shared<int>(0);
  const std::weak_ptr<int> seen = alive;
  {
    const Tensor z = call_function(
        "keeps", {x},
        [](FunctionContext& ctx, const TensorList& in) {
          Tensor out = in[0].exp();
          ctx.save_for_backward({out, in[0]});
          return TensorList{out};
        },
        [alive = std::move(alive)](FunctionContext& ctx, const TensorList& g) {
          return TensorList{g[0] * ctx.saved_tensors()[0]};
        })[0];
    CHECK_FALSE(seen.expired());
  }
  CHECK(seen.expired());
}

TEST_CASE("several outputs, some without gradient") {
  Tensor x = leaf({3.0, 1.0});
  Tensor y = leaf({5.0, 7.0});
  const auto [product, sum, order] = Several::apply(x, y);
  CHECK(mismatch(order, {2}, {1, 0}) == "");
  CHECK_FALSE(order.requires_grad());
  CHECK(mismatch(grad({sum.sum()}, {x}, {.retain_graph = true})[0], {2}, {1, 1}) == "");
  const auto both = grad({product.sum() + sum.sum()}, {x, y});
  CHECK(mismatch(both[0], {2}, {6, 8}) == "");
  CHECK(mismatch(both[1], {2}, {4, 2}) == "");
  const auto [constant, tracked, none] = Several::apply(x.detach(), y);
  CHECK(mismatch(grad({constant.sum()}, {y})[0], {2}, {3, 1}) == "");
  CHECK_FALSE(none.requires_grad());
}

TEST_CASE("gradients that nothing depends on: zeros, or undefined when asked") {
  for (const bool materialize : {true, false}) {
    Tensor x = leaf({1.0});
    bool defined = false;
    const TensorList y = call_function(
        "two", {x, {}},
        [&](FunctionContext& ctx, const TensorList& in) {
          CHECK(ctx.needs_input_grad(0));
          CHECK_FALSE(ctx.needs_input_grad(1));
          CHECK_THROWS_AS((void)ctx.needs_input_grad(2), IndexError);
          ctx.set_materialize_grads(materialize);
          ctx.save_for_backward({{}, in[0]});
          return TensorList{in[0] * 2, in[0] * 3, {}};
        },
        [&](FunctionContext& ctx, const TensorList& g) {
          defined = g[1].defined();
          CHECK_FALSE(g[2].defined());
          CHECK_FALSE(ctx.saved_tensors()[0].defined());
          return TensorList{g[0] * 2, {}};
        });
    CHECK_FALSE(y[2].defined());
    CHECK(mismatch(grad({y[0]}, {x})[0], {1}, {2}) == "");
    CHECK(defined == materialize);
  }
  Tensor x = leaf({1.0, 2.0});
  const TensorList y = call_function(
      "marks", {x},
      [](FunctionContext& ctx, const TensorList& in) {
        const Tensor constant = in[0] * 3;
        ctx.mark_non_differentiable({constant});
        return TensorList{constant, in[0] * 2};
      },
      [](FunctionContext&, const TensorList& g) { return TensorList{g[1] * 2}; });
  CHECK_FALSE(y[0].requires_grad());
  CHECK(mismatch(grad({y[1].sum()}, {x})[0], {2}, {2, 2}) == "");
}

TEST_CASE("lists of tensors as arguments") {
  struct Sum : Function<Sum> {
    static Tensor forward(FunctionContext&, const TensorList& xs, int factor) {
      return (xs[0] + xs[1]) * factor;
    }
    static TensorList backward(FunctionContext&, const TensorList& g) { return {g[0], g[0], {}}; }
  };
  Tensor x = leaf({1.0});
  Tensor y = leaf({2.0});
  const Tensor z = Sum::apply(TensorList{x, y}, 3);
  CHECK(z.item() == 9);
  CHECK(grad({z}, {y})[0].item() == 1);
}

TEST_CASE("a gradient is summed over what broadcasting made, and cast") {
  Tensor x = ones({1, 2}, {.dtype = f32, .requires_grad = true});
  const auto wide = [](FunctionContext&, const TensorList&) { return TensorList{ones({3, 2})}; };
  const auto grads = grad({with_backward(x, wide).sum()}, {x});
  CHECK(mismatch(grads[0], {1, 2}, {3, 3}) == "");
  const auto precise = [](FunctionContext&, const TensorList&) {
    return TensorList{ones({1, 2}, {f64})};
  };
  CHECK(grad({with_backward(x, precise).sum()}, {x})[0].dtype() == f32);
  const auto nothing = [](FunctionContext&, const TensorList&) { return TensorList{{}}; };
  CHECK_FALSE(grad({with_backward(x, nothing).sum()}, {x}, {.allow_unused = true})[0].defined());
}

TEST_CASE("what a wrong backward throws") {
  Tensor x = leaf({1.0, 2.0});
  const auto run = [&](TensorList result) {
    const auto backward = [&](FunctionContext&, const TensorList&) { return result; };
    (void)with_backward(x, backward).sum().backward();
  };
  CHECK(error_lacks<AutodiffError>([&] { run({}); }, {"custom", "got 0", "expected 1"}) == "");
  CHECK(error_lacks<AutodiffError>([&] { run({x, x}); }, {"input 1", "does not exist"}) == "");
  CHECK(error_lacks<ShapeError>([&] { run({ones({3})}); }, {"got [3]", "expected [2]"}) == "");
  CHECK_THROWS_AS(run({ones({2}, {i64})}), DTypeError);
  CHECK_THROWS_AS(run({ones({2}, {f64, Device(kReference)})}), DeviceError);
  struct ForNumber : Function<ForNumber> {
    static Tensor forward(FunctionContext&, const Tensor& x, double) { return x * 2; }
    static TensorList backward(FunctionContext&, const TensorList& g) { return {g[0], g[0]}; }
  };
  CHECK(error_lacks<AutodiffError>([&] { (void)ForNumber::apply(x, 1.0).sum().backward(); },
                                   {"ForNumber", "input 1", "no tensor"}) == "");
  CHECK_THROWS_AS(Cube::apply(Tensor()), ValueError);
}

TEST_CASE("a write into what was saved is found, and so is a second pass") {
  Tensor x = leaf({1.0, 2.0});
  const Tensor moved = x * 1;
  const Tensor y = Cube::apply(moved);
  no_grad([&] { return Tensor(moved).add_(1); });
  CHECK(error_lacks<AutodiffError>([&] { (void)y.sum().backward(); }, {"Cube", "in place"}) == "");

  Tensor out = ScaledExp::apply(x, 1.0);
  no_grad([&] { return out.add_(1); });
  CHECK_THROWS_AS((void)out.sum().backward(), AutodiffError);

  const Tensor z = Cube::apply(leaf({2.0}));
  (void)z.backward();
  CHECK(error_lacks<AutodiffError>([&] { (void)z.backward(); }, {"Cube", "freed"}) == "");
}

TEST_CASE("an input as output is another name of it, unless it was written to") {
  Tensor x = leaf({1.0, 2.0});
  const Tensor y = call_function(
      "through", {x}, [](FunctionContext&, const TensorList& in) { return in; },
      [](FunctionContext&, const TensorList& g) { return TensorList{g[0] * 5}; })[0];
  CHECK(x.is_leaf());
  CHECK(y.data_ptr<double>() == x.data_ptr<double>());
  CHECK(mismatch(grad({y.sum()}, {x})[0], {2}, {5, 5}) == "");

  const auto doubled = [](const Tensor& z) {
    return call_function(
        "double_", {z},
        [](FunctionContext& ctx, const TensorList& in) {
          Tensor out = in[0];
          out.mul_(2);
          ctx.mark_dirty({out});
          return TensorList{out};
        },
        [](FunctionContext&, const TensorList& g) { return TensorList{g[0] * 2}; })[0];
  };
  const Tensor z = x * 3;
  const Tensor w = doubled(z);
  CHECK(w.is_same(z));
  CHECK(mismatch(z, {2}, {6, 12}) == "");
  CHECK(mismatch(grad({z.sum()}, {x})[0], {2}, {6, 6}) == "");
  CHECK_THROWS_AS(doubled(x), AutodiffError);
  CHECK_THROWS_AS(call_function(
                      "lost", {x * 1},
                      [](FunctionContext& ctx, const TensorList& in) {
                        ctx.mark_dirty(in);
                        return TensorList{in[0] * 1};
                      },
                      [](FunctionContext&, const TensorList& g) { return g; }),
                  AutodiffError);
}

TEST_CASE("a backward may run a pass of its own, over the same graph too") {
  Tensor x = leaf({2.0});
  const Tensor inner = Cube::apply(x);
  const auto again = [&](FunctionContext&, const TensorList& g) {
    EnableGradGuard guard;
    return TensorList{g[0] * grad({inner}, {x}, {.retain_graph = true})[0]};
  };
  CHECK(grad({with_backward(x, again)}, {x})[0].item() == 12);
}
