// Jacobians, Hessians and their products, against derivatives worked out by hand.
#include "kiln/tensor/autograd/derivatives.h"

#include "tests/support/tensor_check.h"

namespace kiln::test {
namespace {

using autograd::DerivativeOptions;
using autograd::TensorList;

TEST_CASE("jacobian of one function: rows are results, columns inputs") {
  on_devices([](Device device) {
    const Tensor x = tensor({1.0, 2.0, 3.0}, {f64, device});
    // f = (x0 x1, x2^2): J = [[x1, x0, 0], [0, 0, 2 x2]]
    const autograd::TensorFunction f = [](const Tensor& v) {
      return stack({v[0] * v[1], v[2] * v[2]});
    };
    for (const bool forward : {false, true}) {
      const Tensor j = autograd::jacobian(f, x, {.forward_mode = forward});
      CHECK(mismatch(j, {2, 3}, {2, 1, 0, 0, 0, 6}) == "");
      CHECK_FALSE(j.requires_grad());
    }
    CHECK_FALSE(x.requires_grad());
  });
}

TEST_CASE("jacobian of lists: one block for each result and input") {
  const Tensor a = tensor({1.0, 2.0}, {f64});
  const Tensor b = tensor({3.0}, {f64});
  const autograd::ListFunction f = [](const TensorList& x) {
    return TensorList{x[0] * x[1], x[0].sum()};
  };
  for (const bool forward : {false, true}) {
    const auto j = autograd::jacobian(f, {a, b}, {.forward_mode = forward});
    REQUIRE(j.size() == 2);
    CHECK(mismatch(j[0][0], {2, 2}, {3, 0, 0, 3}) == "");
    CHECK(mismatch(j[0][1], {2, 1}, {1, 2}) == "");
    CHECK(mismatch(j[1][0], {2}, {1, 1}) == "");
    CHECK(mismatch(j[1][1], {1}, {0}) == "");
  }
  CHECK(error_lacks<AutodiffError>(
            [&] {
              autograd::jacobian(f, {a, b}, {.strict = true});
            },
            {"jacobian", "input 1", "strict"}) == "");
}

TEST_CASE("hessian, hvp: second derivatives of a cubic") {
  const Tensor x = tensor({1.0, 2.0}, {f64});
  // f = x0^2 x1 + x1^3: H = [[2 x1, 2 x0], [2 x0, 6 x1]]
  const autograd::TensorFunction f = [](const Tensor& v) {
    return v[0] * v[0] * v[1] + v[1] * v[1] * v[1];
  };
  CHECK(mismatch(autograd::hessian(f, x), {2, 2}, {4, 2, 2, 12}) == "");
  const auto [y, hv] = autograd::hvp(f, x, tensor({1.0, -1.0}, {f64}));
  CHECK(y.item() == 10);
  CHECK(mismatch(hv, {2}, {2, -10}) == "");
  CHECK(error_lacks<ValueError>([&] { autograd::hessian([](const Tensor& v) { return v; }, x); },
                                {"hessian", "one element", "[2]"}) == "");
}

TEST_CASE("vjp and jvp: products with the Jacobian on either side") {
  const Tensor x = tensor({1.0, 2.0, 3.0}, {f64});
  const autograd::TensorFunction f = [](const Tensor& v) {
    return stack({v[0] * v[1], v[2] * v[2]});
  };
  const auto [y, left] = autograd::vjp(f, x, tensor({1.0, 10.0}, {f64}));
  CHECK(mismatch(y, {2}, {2, 9}) == "");
  CHECK(mismatch(left, {3}, {2, 1, 60}) == "");
  const auto [z, right] = autograd::jvp(f, x, tensor({1.0, 1.0, -1.0}, {f64}));
  CHECK(mismatch(z, {2}, {2, 9}) == "");
  CHECK(mismatch(right, {2}, {3, -6}) == "");
  CHECK(error_lacks<ShapeError>([&] { autograd::jvp(f, x, tensor({1.0}, {f64})); },
                                {"jvp", "[1]", "[3]"}) == "");
  CHECK(error_lacks<ValueError>([&] { autograd::vjp(f, x); }, {"vjp", "one element"}) == "");
}

TEST_CASE("create_graph: a Jacobian can be differentiated with respect to the input") {
  Tensor x = tensor({1.0, 2.0}, {f64}).requires_grad_();
  const autograd::TensorFunction cube = [](const Tensor& v) { return v * v * v; };
  const Tensor j = autograd::jacobian(cube, x, {.create_graph = true});
  const Gradients grads = j.sum().backward();  // sum of 3 x^2: 6 x
  CHECK(mismatch(*x.grad(grads), {2}, {6, 12}) == "");
}

TEST_CASE("a function that ignores its input has zero derivatives; integers have none") {
  const Tensor x = tensor({1.0, 2.0}, {f64});
  const autograd::TensorFunction constant = [](const Tensor&) { return ones({2}, {f64}); };
  CHECK(mismatch(autograd::jacobian(constant, x), {2, 2}, {0, 0, 0, 0}) == "");
  CHECK(mismatch(autograd::jvp(constant, x, x).second, {2}, {0, 0}) == "");
  CHECK(error_lacks<DTypeError>(
            [&] {
              autograd::jacobian(constant, tensor({1, 2}));
            },
            {"jacobian", "int64"}) == "");
}

}  // namespace
}  // namespace kiln::test
