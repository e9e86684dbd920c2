// The kernels of special functions (kernels/special_*.k) as plain C++: each function once, whose
// rows of the op table would take an hour together.
#include <algorithm>
#include <cmath>

#include <doctest/doctest.h>

#include "kiln/backend/dispatch/dispatch.h"
#include "tests/gpu/device_under_test.h"

using namespace kiln;

namespace {

using Unary = UnaryFunction::Type;
using Binary = BinaryFunction::Type;

ErasedTensor between(double low, double high, Device device) {
  std::vector<double> values;
  constexpr int kCount = 37;
  for (int i = 0; i < kCount; ++i) values.push_back(low + (high - low) * i / (kCount - 1));
  return Dispatch::float_from_data(TensorData(values, Shape{kCount}), device);
}

// As the reference has it.
void check_same(const ErasedTensor& got, const ErasedTensor& want) {
  const TensorData a = Dispatch::float_into_data(got);
  const TensorData b = Dispatch::float_into_data(want);
  for (int64_t i = 0; i < a.numel(); ++i) {
    const double x = a.item(i), y = b.item(i);
    const bool same = x == y || (std::isnan(x) && std::isnan(y)) ||
                      std::abs(x - y) <= 1e-9 * std::max(1.0, std::abs(y));
    if (!same) FAIL_CHECK("element ", i, ": got ", x, "; expected ", y);
  }
}

}  // namespace

TEST_CASE("kernels of special functions as C++: one operand") {
  struct Case {
    UnaryFunction f;
    double low, high;
  };
  const Case cases[] = {
      {{Unary::erfcx}, -3, 30},
      {{Unary::erfinv}, -0.99, 0.99},
      {{Unary::ndtri}, 0.01, 0.99},
      {{Unary::log_ndtr}, -30, 5},
      {{Unary::sinc, 0}, -3, 3},
      {{Unary::sinc, 2}, -3, 3},
      {{Unary::lgamma}, -4.3, 20},
      {{Unary::digamma}, -4.3, 20},
      {{Unary::polygamma, 2}, 0.2, 20},
      {{Unary::bessel_i0}, -20, 20},
      {{Unary::bessel_i0e}, -40, 40},
      {{Unary::bessel_i1}, -20, 20},
      {{Unary::bessel_i1e}, -40, 40},
      {{Unary::bessel_j0}, -40, 40},
      {{Unary::bessel_j1}, -40, 40},
      {{Unary::bessel_j_over, 3}, -20, 20},
      {{Unary::bessel_i_over, 3, 1}, -20, 20},
      {{Unary::bessel_y0}, 0.1, 40},
      {{Unary::bessel_y1}, 0.1, 40},
      {{Unary::bessel_k0}, 0.1, 20},
      {{Unary::bessel_k1}, 0.1, 20},
      {{Unary::bessel_k0e}, 0.1, 40},
      {{Unary::bessel_k1e}, 0.1, 40},
      {{Unary::airy_ai}, -12, 8},
  };
  for (const Case& c : cases) {
    INFO(static_cast<int>(c.f.type));
    const auto value = [&](Device device) {
      return Dispatch::float_unary(between(c.low, c.high, device), c.f);
    };
    check_same(value(test::gpu_device()), value(Device(kReference)));
  }
}

TEST_CASE("kernels of special functions as C++: two operands") {
  struct Case {
    BinaryFunction f;
    double x_low, x_high, y_low, y_high;
  };
  std::vector<Case> cases = {
      {{Binary::zeta}, 1.5, 9, 0.3, 12},
      {{Binary::gammainc}, 0.2, 20, 0.1, 30},
      {{Binary::gammaincc}, 0.2, 20, 0.1, 30},
  };
  for (int family = 0; family <= static_cast<int>(PolynomialFamily::legendre_p); ++family) {
    cases.push_back({{Binary::polynomial, static_cast<double>(family)}, 0.05, 0.95, 0, 9});
    cases.push_back({{Binary::polynomial, static_cast<double>(family), 1}, 0.05, 0.95, 0, 9});
  }
  for (const Case& c : cases) {
    INFO(static_cast<int>(c.f.type), " ", c.f.a, " ", c.f.b);
    const auto value = [&](Device device) {
      return Dispatch::float_binary(between(c.x_low, c.x_high, device),
                                    between(c.y_low, c.y_high, device), c.f);
    };
    check_same(value(test::gpu_device()), value(Device(kReference)));
  }
}
