// 16-bit floating point storage types. Arithmetic happens in float: convert, compute, convert back.
#pragma once

#include <bit>
#include <cstdint>

namespace kiln {

// IEEE 754 binary16: 1 sign, 5 exponent, 10 mantissa bits. Conversion from float rounds to nearest
// even.
struct float16 {
  uint16_t bits = 0;

  float16() = default;
  explicit float16(float value) : bits(from_float(value)) {}
  operator float() const { return to_float(bits); }

  static float16 from_bits(uint16_t b) {
    float16 h;
    h.bits = b;
    return h;
  }

  static uint16_t from_float(float value) {
    const uint32_t x = std::bit_cast<uint32_t>(value);
    const uint32_t sign = (x >> 16) & 0x8000u;
    const uint32_t magnitude = x & 0x7fffffffu;
    if (magnitude >= 0x7f800000u) {  // infinity or NaN; a NaN stays one
      return static_cast<uint16_t>(sign | 0x7c00u | (magnitude > 0x7f800000u ? 0x200u : 0u));
    }
    if (magnitude >= 0x477ff000u) {  // rounds past 65504
      return static_cast<uint16_t>(sign | 0x7c00u);
    }
    if (magnitude < 0x38800000u) {  // subnormal: adding this constant rounds at the right bit
      const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
      return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(shifted) - 0x3f000000u));
    }
    const uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u);
    return static_cast<uint16_t>(sign | ((rounded - 0x38000000u) >> 13));
  }

  static float to_float(uint16_t b) {
    const uint32_t sign = (b & 0x8000u) << 16;
    const uint32_t exponent = (b >> 10) & 0x1fu;
    const uint32_t mantissa = b & 0x3ffu;
    if (exponent == 0) {  // zero or subnormal: mantissa * 2^-24
      const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
      return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(magnitude));
    }
    if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13));
    return std::bit_cast<float>(sign | ((exponent + 112u) << 23) | (mantissa << 13));
  }
};

// The upper half of a float: 1 sign, 8 exponent, 7 mantissa bits. Conversion rounds to nearest
// even.
struct bfloat16 {
  uint16_t bits = 0;

  bfloat16() = default;
  explicit bfloat16(float value) : bits(from_float(value)) {}
  operator float() const { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

  static bfloat16 from_bits(uint16_t b) {
    bfloat16 h;
    h.bits = b;
    return h;
  }

  static uint16_t from_float(float value) {
    const uint32_t x = std::bit_cast<uint32_t>(value);
    if ((x & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>((x >> 16) | 0x40u);
    return static_cast<uint16_t>((x + 0x7fffu + ((x >> 16) & 1u)) >> 16);
  }
};

}  // namespace kiln
