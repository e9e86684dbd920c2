// Small helpers for tests of the reference backend against worked-out values.
#pragma once

#include <cmath>
#include <limits>
#include <vector>

#include <doctest/doctest.h>

#include "kiln/backend/reference/reference.h"

namespace reference_test {

inline constexpr double kInf = std::numeric_limits<double>::infinity();
inline constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

inline kiln::HostHandle tensor(const std::vector<double>& values, const kiln::Shape& shape,
                               kiln::DType dtype) {
  return kiln::host::from_data(kiln::TensorData(values, shape).cast(dtype), kiln::kReference);
}
inline kiln::HostHandle floats(const std::vector<double>& values, const kiln::Shape& shape) {
  return tensor(values, shape, kiln::f64);
}
inline kiln::HostHandle ints(const std::vector<double>& values, const kiln::Shape& shape) {
  return tensor(values, shape, kiln::i64);
}
inline kiln::HostHandle bools(const std::vector<double>& values, const kiln::Shape& shape) {
  return tensor(values, shape, kiln::bool_);
}

// The literals have 12 decimals.
inline void expect(const kiln::HostHandle& got, const std::vector<double>& want,
                   const kiln::Shape& shape) {
  REQUIRE(got->shape() == shape);
  const std::vector<double> values = kiln::host::into_data(got).to_doubles();
  REQUIRE(values.size() == want.size());
  for (size_t i = 0; i < want.size(); ++i) {
    CAPTURE(i);
    if (std::isnan(want[i])) {
      CHECK(std::isnan(values[i]));
    } else if (std::isinf(want[i])) {
      CHECK(values[i] == want[i]);
    } else {
      CHECK(std::abs(values[i] - want[i]) <= 1e-10 * (1.0 + std::abs(want[i])));
    }
  }
}

}  // namespace reference_test
