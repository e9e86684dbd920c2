#include "kiln/backend/cpu/conv/winograd_kernels.h"

#include <algorithm>

#include "kiln/backend/cpu/kernel_table.h"

// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kiln/backend/cpu/conv/winograd_kernels.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace kiln::cpu::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

// The polynomials behind the transform are evaluated at 0, a, -a, b, -b and infinity. The usual 1
// and 2 lose four bits more than a direct sum; these, found by trying multiples of 1/16, lose less
// than one, and their powers are exact in float.
constexpr float kA = 11.0F / 16, kB = 23.0F / 16;
constexpr float kA2 = kA * kA, kB2 = kB * kB;

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

// Six inputs of a row or column -> six positions.
HWY_INLINE void transform_input(const V (&x)[6], V (&y)[6]) {
  const D d;
  const V a2 = hn::Set(d, kA2), b2 = hn::Set(d, kB2);
  const V product = hn::Set(d, kA2 * kB2), sum = hn::Set(d, kA2 + kB2);
  y[0] = hn::NegMulAdd(sum, x[2], hn::MulAdd(product, x[0], x[4]));
  const V even_a = hn::NegMulAdd(b2, x[2], x[4]);
  const V odd_a = hn::Mul(hn::Set(d, kA), hn::NegMulAdd(b2, x[1], x[3]));
  y[1] = hn::Add(even_a, odd_a);
  y[2] = hn::Sub(even_a, odd_a);
  const V even_b = hn::NegMulAdd(a2, x[2], x[4]);
  const V odd_b = hn::Mul(hn::Set(d, kB), hn::NegMulAdd(a2, x[1], x[3]));
  y[3] = hn::Add(even_b, odd_b);
  y[4] = hn::Sub(even_b, odd_b);
  y[5] = hn::NegMulAdd(sum, x[3], hn::MulAdd(product, x[1], x[5]));
}

// Three taps -> six positions.
HWY_INLINE void transform_taps(const V (&w)[3], V (&y)[6]) {
  const D d;
  const V at_a = hn::Set(d, 1.0F / (2 * kA2 * (kA2 - kB2)));
  const V at_b = hn::Set(d, 1.0F / (2 * kB2 * (kB2 - kA2)));
  y[0] = hn::Mul(w[0], hn::Set(d, 1.0F / (kA2 * kB2)));
  const V even_a = hn::MulAdd(hn::Set(d, kA2), w[2], w[0]);
  const V odd_a = hn::Mul(hn::Set(d, kA), w[1]);
  y[1] = hn::Mul(at_a, hn::Add(even_a, odd_a));
  y[2] = hn::Mul(at_a, hn::Sub(even_a, odd_a));
  const V even_b = hn::MulAdd(hn::Set(d, kB2), w[2], w[0]);
  const V odd_b = hn::Mul(hn::Set(d, kB), w[1]);
  y[3] = hn::Mul(at_b, hn::Add(even_b, odd_b));
  y[4] = hn::Mul(at_b, hn::Sub(even_b, odd_b));
  y[5] = w[2];
}

// Six positions -> four outputs.
HWY_INLINE void transform_output(const V (&m)[6], V (&y)[4]) {
  const D d;
  const V even_a = hn::Add(m[1], m[2]), odd_a = hn::Sub(m[1], m[2]);
  const V even_b = hn::Add(m[3], m[4]), odd_b = hn::Sub(m[3], m[4]);
  y[0] = hn::Add(hn::Add(m[0], even_a), even_b);
  y[1] = hn::MulAdd(hn::Set(d, kB), odd_b, hn::Mul(hn::Set(d, kA), odd_a));
  y[2] = hn::MulAdd(hn::Set(d, kB2), even_b, hn::Mul(hn::Set(d, kA2), even_a));
  y[3] =
      hn::Add(hn::MulAdd(hn::Set(d, kB2 * kB), odd_b, hn::Mul(hn::Set(d, kA2 * kA), odd_a)), m[5]);
}

void weights(const float* taps, int64_t depth, int64_t rows, float* to, int64_t step) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t p = 0; p < depth; ++p) {
    for (int64_t row = 0; row < rows; row += lanes) {
      const float* from = taps + p * 9 * rows + row;
      V columns[6][3];  // of taps, transformed
      for (int j = 0; j < 3; ++j) {
        V w[3], y[6];
        for (int i = 0; i < 3; ++i) w[i] = hn::LoadU(d, from + (3 * i + j) * rows);
        transform_taps(w, y);
        for (int i = 0; i < 6; ++i) columns[i][j] = y[i];
      }
      for (int i = 0; i < 6; ++i) {
        V y[6];
        transform_taps(columns[i], y);
        for (int j = 0; j < 6; ++j) {
          hn::StoreU(y[j], d, to + (6 * i + j) * step + p * rows + row);
        }
      }
    }
  }
}

void input_rows(const float* from, int64_t row, int64_t tiles, float* stages, int64_t stage_step) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int part = 0; part < 2; ++part, from += 4, stages += 6 * stage_step) {
    for (int64_t c = 0; c < 4 * tiles; c += lanes) {
      V x[6], y[6];
      for (int i = 0; i < 6; ++i) x[i] = hn::LoadU(d, from + i * row + c);
      transform_input(x, y);
      for (int i = 0; i < 6; ++i) hn::StoreU(y[i], d, stages + i * stage_step + c);
    }
  }
}

void input_columns(const float* stages, int64_t stage_step, int64_t tiles, float* to,
                   int64_t step) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t t = 0; t < tiles; t += lanes) {
    for (int i = 0; i < 6; ++i) {
      V x[6], y[6], unused[2];
      hn::LoadInterleaved4(d, stages + i * stage_step + 4 * t, x[0], x[1], x[2], x[3]);
      hn::LoadInterleaved4(d, stages + (6 + i) * stage_step + 4 * t, x[4], x[5], unused[0],
                           unused[1]);
      transform_input(x, y);
      for (int j = 0; j < 6; ++j) hn::StoreU(y[j], d, to + (6 * i + j) * step + t);
    }
  }
}

bool output(const float* from, int64_t step, int64_t tiles, float bias, float* to, int64_t row) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const V added = hn::Set(d, bias);
  V checked = hn::Zero(d);
  for (int64_t t = 0; t < tiles; t += lanes) {
    V zero = hn::Zero(d);  // but NaN where an output is not finite
    V columns[4][6];
    for (int j = 0; j < 6; ++j) {
      V m[6], y[4];
      for (int i = 0; i < 6; ++i) m[i] = hn::LoadU(d, from + (6 * i + j) * step + t);
      transform_output(m, y);
      for (int r = 0; r < 4; ++r) columns[r][j] = y[r];
    }
    for (int r = 0; r < 4; ++r) {
      V y[4];
      transform_output(columns[r], y);
      for (V& each : y) {
        zero = hn::MulAdd(each, hn::Zero(d), zero);
        each = hn::Add(each, added);
      }
      hn::StoreInterleaved4(y[0], y[1], y[2], y[3], d, to + r * row + 4 * t);
    }
    const auto real = hn::FirstN(d, static_cast<size_t>(std::min(lanes, tiles - t)));
    checked = hn::Add(checked, hn::IfThenElseZero(real, zero));
  }
  return hn::AllFalse(d, hn::IsNaN(checked));
}

const WinogradKernels* winograd_table() {
  static const WinogradKernels table = {static_cast<int64_t>(hn::Lanes(D())), weights, input_rows,
                                        input_columns, output};
  return &table;
}

}  // namespace
}  // namespace kiln::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kiln::cpu {
KILN_KERNEL_TABLE(WinogradKernels, winograd_kernels, winograd_table)
}  // namespace kiln::cpu
#endif
