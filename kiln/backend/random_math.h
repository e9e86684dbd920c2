// The elementary functions behind random normals, in f32. Internal.
//
// Only exactly rounded operations in a fixed order (and no contraction into fused ones, which the
// library's flags rule out), so that every machine, and vector code that follows the same order,
// gives the same bits. Polynomials: Cephes.
#pragma once

#include <bit>
#include <cstdint>

namespace kiln::host {

// log x for a normal x > 0; relative error below 1e-7.
inline float random_log(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  // The mantissa goes to [sqrt(1/2), sqrt(2)).
  const uint32_t shifted = bits - 0x3f3504f3u;
  const auto exponent = static_cast<float>(static_cast<int32_t>(shifted) >> 23);
  const float m = std::bit_cast<float>((shifted & 0x7fffffu) + 0x3f3504f3u) - 1.0f;
  const float square = m * m;
  float y = 7.0376836292e-2f;
  y = y * m - 1.1514610310e-1f;
  y = y * m + 1.1676998740e-1f;
  y = y * m - 1.2420140846e-1f;
  y = y * m + 1.4249322787e-1f;
  y = y * m - 1.6668057665e-1f;
  y = y * m + 2.0000714765e-1f;
  y = y * m - 2.4999993993e-1f;
  y = y * m + 3.3333331174e-1f;
  y = y * m * square;
  y = y + exponent * -2.12194440e-4f;
  y = y - 0.5f * square;
  return (m + y) + exponent * 0.693359375f;
}

// sin and cos of 2 pi turns, for turns in [0, 1) with at most 24 bits.
inline void random_sincos(float turns, float* sin, float* cos) {
  const float quarters = turns * 4.0f;
  const auto quadrant = static_cast<int32_t>(quarters + 0.5f);
  const float x = (quarters - static_cast<float>(quadrant)) * 1.57079632679f;
  const float square = x * x;
  float s = -1.9515295891e-4f;
  s = s * square + 8.3321608736e-3f;
  s = s * square - 1.6666654611e-1f;
  s = s * square * x + x;
  float c = 2.443315711809948e-5f;
  c = c * square - 1.388731625493765e-3f;
  c = c * square + 4.166664568298827e-2f;
  c = (c * square * square - 0.5f * square) + 1.0f;
  const bool swapped = (quadrant & 1) != 0;
  const float first = swapped ? c : s;
  const float second = swapped ? s : c;
  *sin = (quadrant & 2) != 0 ? -first : first;
  *cos = ((quadrant + 1) & 2) != 0 ? -second : second;
}

}  // namespace kiln::host
