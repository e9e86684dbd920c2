// Comparison, logic, bits, where and masked_fill.
#include <cmath>
#include <limits>

#include "tests/support/tensor_check.h"

using namespace kiln;
using namespace kiln::test;

TEST_CASE("comparisons for every dtype, in any memory layout") {
  on_devices(kNumberTypes, [](Device device, DType dtype) {
    const Tensor a = tensor({{1, 2, 3}, {4, 5, 6}}, {dtype, device});
    const Tensor b = tensor({{1, 3, 2}, {4, 4, 9}}, {dtype, device});
    for (int layout = 0; layout < 3; ++layout) {
      const Tensor x = layout == 0 ? a : scattered(a);
      const Tensor y = layout == 1 ? b : scattered(b);
      CHECK(mismatch(x == y, {2, 3}, {1, 0, 0, 1, 0, 0}) == "");
      CHECK(mismatch(x != y, {2, 3}, {0, 1, 1, 0, 1, 1}) == "");
      CHECK(mismatch(x > y, {2, 3}, {0, 0, 1, 0, 1, 0}) == "");
      CHECK(mismatch(x >= y, {2, 3}, {1, 0, 1, 1, 1, 0}) == "");
      CHECK(mismatch(x < y, {2, 3}, {0, 1, 0, 0, 0, 1}) == "");
      CHECK(mismatch(x <= y, {2, 3}, {1, 1, 0, 1, 0, 1}) == "");
      CHECK(mismatch(x == 4, {2, 3}, {0, 0, 0, 1, 0, 0}) == "");
      CHECK(mismatch(x != 4, {2, 3}, {1, 1, 1, 0, 1, 1}) == "");
      CHECK(mismatch(x > 3, {2, 3}, {0, 0, 0, 1, 1, 1}) == "");
      CHECK(mismatch(x >= 3, {2, 3}, {0, 0, 1, 1, 1, 1}) == "");
      CHECK(mismatch(x < 3, {2, 3}, {1, 1, 0, 0, 0, 0}) == "");
      CHECK(mismatch(x <= 3.5, {2, 3}, {1, 1, 1, 0, 0, 0}) == "");
      CHECK(mismatch(x > y[0], {2, 3}, {0, 0, 1, 1, 1, 1}) == "");  // broadcast
      CHECK(mismatch(x.slice(1, 0, 1) < y.slice(0, 0, 1), {2, 3}, {0, 1, 1, 0, 0, 0}) == "");
    }
    CHECK((a == b).dtype() == bool_);
    CHECK((zeros({0, 3}, {dtype, device}) == a[0]).shape() == Shape{0, 3});
    CHECK((tensor(2, {dtype, device}) > tensor(1, {dtype, device})).item<bool>());
    CHECK_FALSE((a == b).requires_grad());
  });
}

TEST_CASE("comparisons between dtypes, bools and at the edges") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double inf = std::numeric_limits<double>::infinity();
  on_devices([&](Device device) {
    const auto make = [&](std::initializer_list<NestedList> v) {
      return tensor(v, {.device = device});
    };
    CHECK(mismatch(make({1, 2}) == make({1.0, 2.5}), {2}, {1, 0}) == "");
    CHECK(mismatch(make({true, false}) > make({false, false}), {2}, {1, 0}) == "");
    CHECK(mismatch(make({true, false}) == 1, {2}, {1, 0}) == "");
    CHECK(mismatch(make({true, false}) == make({false, false}), {2}, {0, 1}) == "");
    const Tensor x = make({nan, inf, -inf, 0.0});
    CHECK(mismatch(x == x, {4}, {0, 1, 1, 1}) == "");
    CHECK(mismatch(x != x, {4}, {1, 0, 0, 0}) == "");
    CHECK(mismatch(x < inf, {4}, {0, 0, 1, 1}) == "");
    CHECK(mismatch(x >= -inf, {4}, {0, 1, 1, 1}) == "");
    CHECK(mismatch(x.isnan(), {4}, {1, 0, 0, 0}) == "");
    CHECK(mismatch(x.isinf(), {4}, {0, 1, 1, 0}) == "");
    CHECK(mismatch(x.isfinite(), {4}, {0, 0, 0, 1}) == "");
    CHECK(mismatch(make({1, 2}).isnan(), {2}, {0, 0}) == "");
    CHECK(mismatch(make({1, 2}).isfinite(), {2}, {1, 1}) == "");
    CHECK(mismatch(make({0.0}) == make({-0.0}), {1}, {1}) == "");
    // Integers beyond 2^53 compare exactly.
    const int64_t big = (int64_t{1} << 60) + 1;
    CHECK(mismatch(make({big}) > make({big - 1}), {1}, {1}) == "");
    CHECK(mismatch(make({big}) == big - 1, {1}, {0}) == "");
    // A number outside the dtype's range is compared as it is.
    CHECK(mismatch(make({255}).to(u8) == -1, {1}, {0}) == "");
    CHECK(mismatch(make({255}).to(u8) > -1, {1}, {1}) == "");
    CHECK(mismatch(make({100}).to(i8) < 300, {1}, {1}) == "");
  });
  on_devices(kFloatTypes, [&](Device device, DType dtype) {
    const Tensor x = tensor({nan, inf, 1.0}, {dtype, device});
    CHECK(mismatch(x.isnan(), {3}, {1, 0, 0}) == "");
    CHECK(mismatch(x.isinf(), {3}, {0, 1, 0}) == "");
  });
}

TEST_CASE("logic and bits") {
  on_devices([](Device device) {
    const Tensor a = tensor({true, true, false, false}, {.device = device});
    const Tensor b = tensor({true, false, true, false}, {.device = device});
    CHECK(mismatch(a.logical_and(b), {4}, {1, 0, 0, 0}) == "");
    CHECK(mismatch(a.logical_or(b), {4}, {1, 1, 1, 0}) == "");
    CHECK(mismatch(a.logical_xor(b), {4}, {0, 1, 1, 0}) == "");
    CHECK(mismatch(!a, {4}, {0, 0, 1, 1}) == "");
    CHECK(mismatch(a & b, {4}, {1, 0, 0, 0}) == "");
    CHECK(mismatch(a | b, {4}, {1, 1, 1, 0}) == "");
    CHECK(mismatch(a ^ b, {4}, {0, 1, 1, 0}) == "");
    CHECK(mismatch(a.bitwise_not(), {4}, {0, 0, 1, 1}) == "");
    CHECK(
        mismatch(
            tensor({0.5, 0.0}, {.device = device}).logical_and(tensor({2, 3}, {.device = device})),
            {2}, {1, 0}) == "");
    CHECK(mismatch((a & b[0]), {4}, {1, 1, 0, 0}) == "");
    CHECK_THROWS_AS(tensor({0.5}) & tensor({0.5}), DTypeError);
    CHECK_THROWS_AS(tensor({0.5}).bitwise_not(), DTypeError);
  });
  on_devices(kIntTypes, [](Device device, DType dtype) {
    const Tensor x = tensor({12, 10, 7}, {dtype, device});
    const Tensor y = tensor({10, 12, 1}, {dtype, device});
    CHECK(mismatch(x & y, {3}, {8, 8, 1}) == "");
    CHECK(mismatch(scattered(x) | y, {3}, {14, 14, 7}) == "");
    CHECK(mismatch(x ^ scattered(y), {3}, {6, 6, 6}) == "");
    CHECK((x & y).dtype() == dtype);
    const double offset = dtype == u8 ? 256 : 0;
    CHECK(mismatch(x.bitwise_not(), {3}, {-13 + offset, -11 + offset, -8 + offset}) == "");
  });
}

TEST_CASE("where, for every dtype") {
  on_devices(kAllTypes, [](Device device, DType dtype) {
    const Tensor mask = tensor({{true, false, true}, {false, true, false}}, {.device = device});
    const Tensor x = ones({2, 3}, {dtype, device});
    const Tensor y = zeros({2, 3}, {dtype, device});
    CHECK(mismatch(where(mask, x, y), {2, 3}, {1, 0, 1, 0, 1, 0}) == "");
    CHECK(where(mask, x, y).dtype() == dtype);
    CHECK(mismatch(where(scattered(mask), scattered(x), y), {2, 3}, {1, 0, 1, 0, 1, 0}) == "");
    CHECK(mismatch(where(mask, x, 0), {2, 3}, {1, 0, 1, 0, 1, 0}) == "");
    CHECK(mismatch(where(mask, 0, x), {2, 3}, {0, 1, 0, 1, 0, 1}) == "");
    // All three broadcast.
    CHECK(mismatch(where(mask[0], x.slice(0, 0, 1), y.slice(1, 0, 1)), {2, 3},
                   {1, 0, 1, 1, 0, 1}) == "");
    CHECK(where(zeros({0, 3}, {bool_, device}), x[0], y[0]).shape() == Shape{0, 3});
    CHECK(mismatch(where(tensor(true, {.device = device}), x[0][0], y[0][0]), {}, {1}) == "");
  });
}

TEST_CASE("gradients of where and masked_fill") {
  on_devices([](Device device) {
    const TensorOptions on{f64, device};
    const Tensor mask = tensor({{true, false}, {true, true}}, {.device = device});
    Tensor x = tensor({1.0, 2.0}, on).requires_grad_();      // broadcast over rows
    Tensor y = tensor({{3.0}, {4.0}}, on).requires_grad_();  // broadcast over columns
    const Tensor out = where(mask, x, y);
    CHECK(mismatch(out, {2, 2}, {1, 3, 1, 2}) == "");
    const Gradients grads = out.backward(tensor({{1.0, 10.0}, {100.0, 1000.0}}, on));
    CHECK(mismatch(*x.grad(grads), {2}, {101, 1000}) == "");
    CHECK(mismatch(*y.grad(grads), {2, 1}, {10, 0}) == "");

    Tensor z = tensor({{1.0, 2.0}, {3.0, 4.0}}, on).requires_grad_();
    const Tensor filled = z.masked_fill(mask, -5.0);
    CHECK(mismatch(filled, {2, 2}, {-5, 2, -5, -5}) == "");
    CHECK(mismatch(*z.grad(filled.backward(ones({2, 2}, on))), {2, 2}, {0, 1, 0, 0}) == "");
    // A NaN on the side that was not taken does not reach the gradient.
    Tensor w = tensor({-1.0, 4.0}, on).requires_grad_();
    const Tensor safe = where(w > 0, w, 1.0).sqrt();
    CHECK(mismatch(*w.grad(safe.sum().backward()), {2}, {0, 0.25}) == "");
  });
}

TEST_CASE("masked_fill, for every dtype") {
  on_devices(kAllTypes, [](Device device, DType dtype) {
    const Tensor x = zeros({2, 3}, {dtype, device});
    const Tensor mask = tensor({true, false, true}, {.device = device});
    CHECK(mismatch(x.masked_fill(mask, 1), {2, 3}, {1, 0, 1, 1, 0, 1}) == "");
    CHECK(x.masked_fill(mask, 1).dtype() == dtype);
    CHECK(mismatch(scattered(x).masked_fill(mask, true), {2, 3}, {1, 0, 1, 1, 0, 1}) == "");
    CHECK(mismatch(x, {2, 3}, {0, 0, 0, 0, 0, 0}) == "");
    CHECK(x[0][0].masked_fill(mask, 1).shape() == Shape{3});
    // Integers take what is left of a number without its fraction, as in PyTorch.
    const double fraction = is_floating_point(dtype) ? 1.5 : 1;
    CHECK(mismatch(x.masked_fill(mask, 1.5), {2, 3},
                   {fraction, 0, fraction, fraction, 0, fraction}) == "");
    if (is_integral(dtype)) CHECK_THROWS_AS(x.masked_fill(mask, NAN), ValueError);
  });
  CHECK_THROWS_AS(zeros({2}).masked_fill(tensor({1, 0}), 1), DTypeError);
  CHECK_THROWS_AS(zeros({2}).masked_fill(zeros({3}, {bool_}), 1), ShapeError);
  CHECK_THROWS_AS(where(tensor({1, 0}), zeros({2}), 1), DTypeError);
}

TEST_CASE("equal and allclose") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double inf = std::numeric_limits<double>::infinity();
  on_devices([&](Device device) {
    const Tensor x = tensor({1.0, 2.0}, {.device = device});
    CHECK(x.equal(tensor({1.0, 2.0}, {.device = device})));
    CHECK(x.equal(tensor({1, 2}, {.device = device})));
    CHECK_FALSE(x.equal(tensor({1.0, 2.5}, {.device = device})));
    CHECK_FALSE(x.equal(tensor({{1.0, 2.0}}, {.device = device})));
    CHECK(zeros({0}, {.device = device}).equal(zeros({0}, {.device = device})));
    CHECK(x.allclose(x + 1e-6));
    CHECK_FALSE(x.allclose(x + 1e-3));
    CHECK(x.allclose(x + 1e-3, 0, 1e-2));
    const Tensor odd = tensor({nan, inf, -inf}, {.device = device});
    CHECK_FALSE(odd.allclose(odd));
    CHECK(odd.allclose(odd, 1e-5, 1e-8, true));
    CHECK_FALSE(tensor({inf}, {.device = device}).allclose(tensor({1.0}, {.device = device})));
    CHECK_FALSE(tensor({inf}, {.device = device}).allclose(tensor({-inf}, {.device = device})));
  });
}
