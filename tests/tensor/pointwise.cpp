// Errors and corner cases of the elementwise functions; their values are in tests/ops.
#include "kiln/tensor/elementwise/pointwise.h"

#include <limits>
#include <vector>

#include "kiln/kiln.h"
#include "tests/support/tensor_check.h"

using namespace kiln;
using namespace kiln::test;

TEST_CASE("gcd and lcm of the smallest integer, whose magnitude no integer of its size has") {
  // PyTorch's values; over all others they are the common definitions.
  const Tensor x = tensor({-32768, -32768, -32768, 0}, {.dtype = i16});
  const Tensor y = tensor({-32768, 3, 0, 0}, {.dtype = i16});
  CHECK(gcd(x, y).to_vector<int64_t>() == std::vector<int64_t>{-32768, 1, -32768, 0});
  CHECK(lcm(x, y).to_vector<int64_t>() == std::vector<int64_t>{-32768, -32768, 0, 0});
  const Tensor least = tensor({std::numeric_limits<int64_t>::min()}, {.dtype = i64});
  CHECK(lcm(least, least).to_vector<int64_t>() == least.to_vector<int64_t>());
}

TEST_CASE("pointwise: arguments that make no sense") {
  const Tensor x = ones({2, 3});
  const Tensor whole = ones({2, 3}, {i64});
  CHECK_THROWS_AS(polygamma(-1, x), ValueError);
  CHECK_THROWS_AS(mvlgamma(x, 0), ValueError);
  CHECK_THROWS_AS(hypot(x, ones({4})), ShapeError);
  CHECK_THROWS_AS(div(x, x, "up"), ValueError);
  CHECK_THROWS_AS(frac(whole), DTypeError);
  CHECK_THROWS_AS(round(whole, 2), DTypeError);
  CHECK_THROWS_AS(nextafter(whole, whole), DTypeError);
  CHECK_THROWS_AS(heaviside(x, whole), DTypeError);
  CHECK_THROWS_AS(lerp(x, whole, 0.5), DTypeError);
  CHECK_THROWS_AS(addcdiv(whole, whole, whole), DTypeError);
  CHECK_THROWS_AS(clamp(x, Tensor(), Tensor()), ValueError);
  CHECK_THROWS_AS(positive(ones({2}, {bool_})), DTypeError);
  CHECK_THROWS_AS(exp2(Tensor()), ValueError);
  CHECK_THROWS_AS(gcd(x, x), DTypeError);
  CHECK_THROWS_AS(bitwise_left_shift(x, 1), DTypeError);
  CHECK_THROWS_AS(bitwise_and(whole, 1.5), DTypeError);
  CHECK_THROWS_AS(fmod(whole, zeros({3}, {i64})), ValueError);
  CHECK_THROWS_AS(floor_divide(whole, zeros({3}, {i64})), ValueError);
  CHECK_THROWS_AS(isclose(x, whole), DTypeError);
  CHECK_THROWS_AS(isclose(x, x, -1.0), ValueError);
  CHECK_THROWS_AS(is_nonzero(x), ValueError);
}

TEST_CASE("pointwise: in place keeps dtype and shape") {
  Tensor whole = tensor({1, 2, 3});
  CHECK_THROWS_AS(exp2_(whole), DTypeError);
  CHECK_THROWS_AS(fmod_(whole, 1.5), DTypeError);
  Tensor small = ones({3});
  CHECK_THROWS_AS(hypot_(small, ones({2, 3})), ShapeError);
  Tensor leaf = ones({3}).requires_grad_();
  CHECK_THROWS_AS(lerp_(leaf, ones({3}), 0.5), AutodiffError);
  Tensor row = ones({1, 3}).expand({2, 3});
  CHECK_THROWS_AS(addcmul_(row, row, row), ValueError);
  // A view sees the write.
  Tensor x = zeros({2, 2});
  Tensor part = x[0];
  addcmul_(part, ones({2}), ones({2}), 3);
  CHECK(mismatch(x, {2, 2}, {3, 3, 0, 0}) == "");
}

TEST_CASE("pointwise: nothing to compute") {
  const Tensor none = empty({0, 3});
  CHECK(lgamma(none).shape() == Shape{0, 3});
  CHECK(hypot(none, ones({3})).shape() == Shape{0, 3});
  CHECK(lerp(none, none, 0.5).shape() == Shape{0, 3});
  CHECK(frexp(none).second.dtype() == i32);
  CHECK(dist(none, none).item() == 0.0);
  CHECK(isin(none, none).shape() == Shape{0, 3});
}

TEST_CASE("pointwise: derivatives that do not exist say so") {
  Tensor order = ones({2}).requires_grad_();
  const Tensor x = ones({2});
  CHECK_THROWS_AS((void)igamma(order, x).sum().backward(), NotImplementedError);
  CHECK_THROWS_AS((void)special::zeta(order + 1, x).sum().backward(), NotImplementedError);
  CHECK_THROWS_AS((void)special::airy_ai(order).sum().backward(), NotImplementedError);
}

// Of both ends by series: log x - x / 2 near 0, -e^-x far away.
TEST_CASE("log1mexp is exact where log and expm1 alone are not") {
  on_devices([](Device device) {
    const Tensor x = tensor({1e-10, 1e-300, 0.6931471805599453, 40.0, 700.0}, {f64, device});
    const Doubles got = special::log1mexp(x).to_data().to_doubles();
    const double expected[] = {-23.025850929990457, -690.7755278982137, -0.6931471805599453,
                               -4.248354255291589e-18, -9.85967654375977e-305};
    for (size_t i = 0; i < got.size(); ++i) {
      CHECK(std::abs(got[i] / expected[i] - 1.0) < 1e-14);
    }
  });
  CHECK(mismatch(special::log1mexp(tensor({0.0, -1.0, INFINITY})), {3}, {-INFINITY, NAN, 0}) == "");
}

TEST_CASE("frexp takes subnormal numbers apart") {
  const double tiny = 0x1p-1074;
  const auto [mantissa, exponent] = frexp(tensor({tiny, -3 * tiny, 0x1p-1022}, {f64}));
  CHECK(mismatch(mantissa, {3}, {0.5, -0.75, 0.5}) == "");
  CHECK(mismatch(exponent, {3}, {-1073, -1072, -1021}) == "");
}

TEST_CASE("nextafter steps through every float dtype") {
  for (const DType dtype : {f64, f32, f16, bf16}) {
    const Tensor x = tensor({1.0, -1.0, 0.0}, {dtype});
    const Tensor up = nextafter(x, full({}, INFINITY, {dtype}));
    CHECK(up.gt(x).all().item<bool>());
    CHECK(nextafter(up, full({}, -INFINITY, {dtype})).equal(x));
  }
}
