#include "kiln/core/scalar.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include <doctest/doctest.h>

#include "kiln/core/error.h"

using namespace kiln;

TEST_CASE("a scalar keeps its kind") {
  CHECK(Scalar().is_integral());
  CHECK(Scalar(true).is_bool());
  CHECK(Scalar(3).is_integral());
  CHECK(Scalar(uint8_t{3}).is_integral());
  CHECK(Scalar(3.0f).is_floating_point());
  CHECK(Scalar(float16(1.5f)).is_floating_point());
  CHECK(Scalar(bfloat16(1.5f)).to_double() == 1.5);
  CHECK_FALSE(std::is_constructible_v<Scalar, const char*>);
}

TEST_CASE("a scalar converts") {
  CHECK(Scalar(3).to_double() == 3.0);
  CHECK(Scalar(true).to_int() == 1);
  CHECK(Scalar(INT64_MIN).to_int() == INT64_MIN);
  CHECK(Scalar(2.9).to_int() == 2);
  CHECK(Scalar(-2.9).to_int() == -2);
  CHECK(Scalar(0.25).to_bool());
  CHECK_FALSE(Scalar(-0.0).to_bool());
  CHECK(Scalar(-7).to_bool());
  CHECK(Scalar(std::nan("")).to_bool());
}

TEST_CASE("a floating point scalar saturates to int64") {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  CHECK(Scalar(0x1p63).to_int() == INT64_MAX);
  CHECK(Scalar(0x1.fffffffffffffp62).to_int() == INT64_MAX - 1023);
  CHECK(Scalar(-0x1p63).to_int() == INT64_MIN);
  CHECK(Scalar(-1e300).to_int() == INT64_MIN);
  CHECK(Scalar(kInfinity).to_int() == INT64_MAX);
  CHECK(Scalar(-kInfinity).to_int() == INT64_MIN);
  CHECK(Scalar(std::nan("")).to_int() == 0);
}

TEST_CASE("a number beyond int64 is an error, not another number") {
  CHECK(Scalar(uint64_t{INT64_MAX}).to_int() == INT64_MAX);
  CHECK(Scalar(uint32_t{4294967295u}).to_int() == 4294967295);
  CHECK_THROWS_WITH_AS(
      Scalar(UINT64_MAX),
      "Scalar: the number is too large; got 18446744073709551615; expected at most "
      "9223372036854775807",
      ValueError);
}
