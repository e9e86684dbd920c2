// Joining tensors.
#include "tests/support/tensor_check.h"

using namespace kiln;
using namespace kiln::test;

TEST_CASE("cat, for every dtype and layout") {
  on_devices(kAllTypes, [](Device device, DType dtype) {
    const TensorOptions on{dtype, device};
    const Tensor a = tensor({{0, 1}, {1, 0}}, on);
    const Tensor b = tensor({{1, 1}}, on);
    CHECK(mismatch(cat({a, b}), {3, 2}, {0, 1, 1, 0, 1, 1}) == "");
    CHECK(mismatch(cat({scattered(a), b, scattered(b)}, -2), {4, 2}, {0, 1, 1, 0, 1, 1, 1, 1}) ==
          "");
    CHECK(mismatch(cat({a, b.t().contiguous().expand({2, 2})}, 1), {2, 4},
                   {0, 1, 1, 1, 1, 0, 1, 1}) == "");
    CHECK(mismatch(cat({a, b.t()}, -1), {2, 3}, {0, 1, 1, 1, 0, 1}) == "");
    CHECK(mismatch(cat({a}), {2, 2}, {0, 1, 1, 0}) == "");
    CHECK(mismatch(cat({zeros({0, 2}, on), a, zeros({0, 2}, on)}), {2, 2}, {0, 1, 1, 0}) == "");
    CHECK(cat({zeros({2, 0}, on), zeros({2, 0}, on)}).shape() == Shape{4, 0});
    CHECK(cat({a, b}).dtype() == dtype);
    Tensor joined = cat({a});
    joined.fill_(1);
    CHECK(mismatch(a, {2, 2}, {0, 1, 1, 0}) == "");  // memory of its own
  });
  CHECK(cat({tensor({1}), tensor({0.5})}).dtype() == f32);
  CHECK(cat({tensor({1}, {u8}), tensor({1}, {i8})}).dtype() == i16);
  CHECK(mismatch(cat({tensor({true}), tensor({7})}), {2}, {1, 7}) == "");
  CHECK_THROWS_AS(cat({}), ValueError);
  CHECK_THROWS_AS(cat({tensor(1.0), tensor(2.0)}), ShapeError);
  CHECK_THROWS_AS(cat({zeros({2}), zeros({2, 2})}), ShapeError);
  CHECK_THROWS_AS(cat({zeros({2, 3}), zeros({2, 4})}), ShapeError);
  CHECK_THROWS_AS(cat({zeros({2})}, 1), IndexError);
}

TEST_CASE("stack") {
  on_devices(kAllTypes, [](Device device, DType dtype) {
    const Tensor a = tensor({0, 1}, {dtype, device});
    const Tensor b = tensor({1, 1}, {dtype, device});
    CHECK(mismatch(stack({a, b}), {2, 2}, {0, 1, 1, 1}) == "");
    CHECK(mismatch(stack({a, b}, 1), {2, 2}, {0, 1, 1, 1}) == "");
    CHECK(mismatch(stack({a, b, a}, -1), {2, 3}, {0, 1, 0, 1, 1, 1}) == "");
    CHECK(mismatch(stack({a[0], b[0]}), {2}, {0, 1}) == "");
    CHECK(stack({zeros({0}, {dtype, device})}).shape() == Shape{1, 0});
  });
  CHECK_THROWS_AS(stack({}), ValueError);
  CHECK_THROWS_AS(stack({zeros({2}), zeros({3})}), ShapeError);
  CHECK_THROWS_AS(stack({zeros({2})}, 2), IndexError);
}

TEST_CASE("gradients") {
  on_devices([](Device device) {
    const TensorOptions on{f64, device};
    Tensor a = tensor({{1.0, 2.0}, {3.0, 4.0}}, on).requires_grad_();
    Tensor b = tensor({{5.0, 6.0}}, on).requires_grad_();
    const Tensor fixed = zeros({1, 2}, on);
    const Tensor y = cat({a, fixed, b, a});
    const Gradients grads = y.backward(arange(12, on).reshape({6, 2}));
    CHECK(mismatch(*a.grad(grads), {2, 2}, {8, 10, 12, 14}) == "");
    CHECK(mismatch(*b.grad(grads), {1, 2}, {6, 7}) == "");
    Tensor c = tensor({1.0, 2.0}, {f32, device}).requires_grad_();
    const Tensor z = stack({c, c * 2.0}, 1);
    CHECK(mismatch(*c.grad(z.backward(tensor({{1.0, 10.0}, {100.0, 1000.0}}, {f32, device}))), {2},
                   {21, 2100}) == "");
    // A part of another dtype gets its gradient in that.
    const Tensor mixed = cat({b, c.unsqueeze(0)});
    CHECK(mixed.dtype() == f64);
    CHECK(c.grad(mixed.sum().backward())->dtype() == f32);
  });
}
