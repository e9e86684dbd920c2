#include "kiln/core/half.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include <doctest/doctest.h>

using namespace kiln;

namespace {

// The value of a binary16 pattern from the standard's definition.
double float16_value(uint32_t bits) {
  const double sign = (bits & 0x8000) != 0 ? -1.0 : 1.0;
  const int exponent = static_cast<int>((bits >> 10) & 31);
  const int mantissa = static_cast<int>(bits & 1023);
  if (exponent == 31) {
    return mantissa != 0 ? std::nan("") : sign * std::numeric_limits<double>::infinity();
  }
  if (exponent == 0) return sign * std::ldexp(mantissa, -24);
  return sign * std::ldexp(1024 + mantissa, exponent - 25);
}

uint16_t to_half(float v) { return float16(v).bits; }
uint16_t to_bfloat(float v) { return bfloat16(v).bits; }

constexpr float kInfinity = std::numeric_limits<float>::infinity();

}  // namespace

TEST_CASE("every float16 pattern has its value and survives the way through float") {
  int wrong_values = 0;
  int wrong_patterns = 0;
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const float value = float16::from_bits(static_cast<uint16_t>(bits));
    const double expected = float16_value(bits);
    const uint16_t back = to_half(value);
    if (std::isnan(expected)) {
      wrong_values += !std::isnan(value);
      wrong_patterns += (back & 0x7c00) != 0x7c00 || (back & 0x3ff) == 0;
      wrong_patterns += (back & 0x8000) != (bits & 0x8000);
      continue;
    }
    wrong_values += static_cast<double>(value) != expected;
    wrong_values += std::signbit(value) != std::signbit(expected);
    wrong_patterns += back != bits;
  }
  CHECK(wrong_values == 0);
  CHECK(wrong_patterns == 0);
}

TEST_CASE("float16 rounds halfway cases between all neighbours to even") {
  int wrong = 0;
  for (uint32_t bits = 0; bits < 0x7bff; ++bits) {  // both neighbours finite
    const double low = float16_value(bits);
    const double high = float16_value(bits + 1);
    const auto middle = static_cast<float>((low + high) / 2);  // exact: one bit more
    const uint32_t even = (bits & 1) == 0 ? bits : bits + 1;
    wrong += to_half(middle) != even;
    wrong += to_half(-middle) != (even | 0x8000);
    wrong += to_half(std::nextafter(middle, 0.0f)) != bits;
    wrong += to_half(std::nextafter(middle, kInfinity)) != bits + 1;
  }
  CHECK(wrong == 0);
}

TEST_CASE("float16 at the ends of its range") {
  CHECK(to_half(65504.0f) == 0x7bff);
  CHECK(to_half(65519.996f) == 0x7bff);
  CHECK(to_half(65520.0f) == 0x7c00);
  CHECK(to_half(-1e30f) == 0xfc00);
  CHECK(to_half(kInfinity) == 0x7c00);
  CHECK(to_half(0x1p-24f) == 0x0001);
  CHECK(to_half(0x1p-25f) == 0x0000);
  CHECK(to_half(0x1.000002p-25f) == 0x0001);
  CHECK(to_half(-0.0f) == 0x8000);
  CHECK(to_half(std::numeric_limits<float>::denorm_min()) == 0x0000);
  CHECK(to_half(0x1.ffep-15f) == 0x0400);  // rounds up out of the subnormal numbers
  CHECK(to_half(1.0f) == 0x3c00);
  CHECK(to_half(0.1f) == 0x2e66);
}

TEST_CASE("every bfloat16 pattern survives the way through float") {
  int wrong = 0;
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const float value = bfloat16::from_bits(static_cast<uint16_t>(bits));
    const uint16_t back = to_bfloat(value);
    if (std::isnan(std::bit_cast<float>(bits << 16))) {
      wrong += !std::isnan(value) || (back & 0x7f80) != 0x7f80 || (back & 0x7f) == 0;
      continue;
    }
    wrong += std::bit_cast<uint32_t>(value) != bits << 16 || back != bits;
  }
  CHECK(wrong == 0);
}

TEST_CASE("bfloat16 rounds to nearest even") {
  const auto from = [](uint32_t bits) { return to_bfloat(std::bit_cast<float>(bits)); };
  CHECK(from(0x3f808000) == 0x3f80);  // halfway, even below
  CHECK(from(0x3f818000) == 0x3f82);  // halfway, even above
  CHECK(from(0x3f808001) == 0x3f81);
  CHECK(from(0x3f807fff) == 0x3f80);
  CHECK(from(0x7f7fffff) == 0x7f80);  // the largest float rounds to infinity
  CHECK(from(0xff800000) == 0xff80);
  CHECK(from(0x7f800001) == 0x7fc0);  // a NaN whose payload lies in the lower half stays a NaN
  CHECK(from(0x00000001) == 0x0000);
  CHECK(to_bfloat(3.14159265f) == 0x4049);
}
