#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kiln/backend/cpu/elementwise/quantize_kernels.cpp"
#include <algorithm>
#include <cmath>
#include <limits>

#include <hwy/foreach_target.h>
// Highway's order: the above includes this file once for each target.
#include <hwy/highway.h>

#include "kiln/backend/cpu/elementwise/quantize_kernels.h"
#include "kiln/backend/cpu/kernel_table.h"
#include "kiln/backend/cpu/masked-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kiln::cpu::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

using QuantTag = hn::ScalableTag<float>;
using QuantVec = hn::Vec<QuantTag>;

float quant_largest(const float* x, int64_t n) {
  const QuantTag d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const QuantVec infinity = hn::Set(d, std::numeric_limits<float>::infinity());
  QuantVec most = hn::Zero(d);
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const QuantVec value = hn::Abs(hn::LoadU(d, x + i));
    most = hn::Max(most, hn::IfThenElseZero(hn::Lt(value, infinity), value));
  }
  float all = hn::GetLane(hn::MaxOfLanes(d, most));
  for (; i < n; ++i) {
    const float value = std::fabs(x[i]);
    if (value < std::numeric_limits<float>::infinity()) all = std::max(all, value);
  }
  return all;
}

#if HWY_TARGET != HWY_SCALAR && HWY_HAVE_FLOAT64

using WideTag = hn::ScalableTag<double>;
using WideVec = hn::Vec<WideTag>;

// Integers of the quotients that `quotient` gives for lanes of x.
template <class Quotient>
HWY_INLINE void quantize_lanes(const float* x, int8_t* out, int64_t n, int limit,
                               Quotient&& quotient) {
  const WideTag d;
  const hn::Rebind<float, WideTag> df;
  const hn::Rebind<int32_t, WideTag> di;
  const hn::Rebind<int8_t, WideTag> d8;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const WideVec high = hn::Set(d, static_cast<double>(limit));
  const WideVec low = hn::Neg(high);
  for (int64_t i = 0; i + lanes <= n; i += lanes) {
    WideVec q = quotient(hn::PromoteTo(d, hn::LoadU(df, x + i)));
    q = hn::IfThenElseZero(hn::Eq(q, q), q);
    q = hn::Round(hn::Min(hn::Max(q, low), high));
    hn::StoreU(hn::DemoteTo(d8, hn::DemoteTo(di, q)), d8, out + i);
  }
}

// A quotient by way of the reciprocal is off by 2^-52 of itself. One of two floats that is no
// multiple of a half is 2^-26 and more away from all of them: rounded to multiples of 2^-40 first,
// it falls on a half when and only when the exact one does.
HWY_INLINE void quantize_by_reciprocal(const float* x, int8_t* out, int64_t n, double reciprocal,
                                       int limit) {
  const WideTag d;
  const WideVec inverse = hn::Set(d, reciprocal);
  const WideVec beyond = hn::Set(d, static_cast<double>(limit) + 1.0);
  const WideVec grid = hn::Set(d, 0x1.8p12);  // its last bit is 2^-40
  quantize_lanes(x, out, n, limit, [&](WideVec v) HWY_ATTR {
    const WideVec q = hn::Min(hn::Max(hn::Mul(v, inverse), hn::Neg(beyond)), beyond);
    return hn::IfThenElse(hn::Eq(v, v), hn::Sub(hn::Add(q, grid), grid), v);
  });
}

#endif

void quant_quantize(const float* x, int8_t* out, int64_t n, double scale, int limit) {
  int64_t i = 0;
#if HWY_TARGET != HWY_SCALAR && HWY_HAVE_FLOAT64
  const double reciprocal = 1.0 / scale;
  const auto wide_lanes = static_cast<int64_t>(hn::Lanes(WideTag()));
  if (static_cast<double>(static_cast<float>(scale)) == scale &&
      reciprocal <= static_cast<double>(std::numeric_limits<float>::max())) {
    // In float the quotient is off by 2^-16 where it matters: near a half it is computed again.
    const QuantTag d;
    const hn::Rebind<int32_t, QuantTag> di;
    const hn::Rebind<int8_t, QuantTag> d8;
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    const QuantVec inverse = hn::Set(d, static_cast<float>(reciprocal));
    const QuantVec high = hn::Set(d, static_cast<float>(limit));
    const QuantVec low = hn::Neg(high);
    const QuantVec near_half = hn::Set(d, 0.5f - 0x1p-15f);
    for (; i + lanes <= n; i += lanes) {
      QuantVec q = hn::Mul(hn::LoadU(d, x + i), inverse);
      q = hn::IfThenElseZero(hn::Eq(q, q), q);
      q = hn::Min(hn::Max(q, low), high);
      const QuantVec rounded = hn::Round(q);
      if (HWY_LIKELY(hn::AllFalse(d, hn::Gt(hn::Abs(hn::Sub(q, rounded)), near_half)))) {
        hn::StoreU(hn::DemoteTo(d8, hn::ConvertTo(di, rounded)), d8, out + i);
      } else {
        quantize_by_reciprocal(x + i, out + i, lanes, reciprocal, limit);
      }
    }
    if (n - i >= wide_lanes) {
      quantize_by_reciprocal(x + i, out + i, n - i, reciprocal, limit);
      i += (n - i) / wide_lanes * wide_lanes;
    }
  } else {
    const WideVec divisor = hn::Set(WideTag(), scale);
    quantize_lanes(x, out, n, limit, [&](WideVec v) HWY_ATTR { return hn::Div(v, divisor); });
    i = n / wide_lanes * wide_lanes;
  }
#endif
  const auto most = static_cast<double>(limit);
  for (; i < n; ++i) {
    const double q = std::nearbyint(static_cast<double>(x[i]) / scale);
    out[i] = q != q ? int8_t{0} : static_cast<int8_t>(std::clamp(q, -most, most));
  }
}

HWY_INLINE QuantVec load_int8(const int8_t* from) {
  const hn::Rebind<int8_t, QuantTag> d8;
  const hn::Rebind<int32_t, QuantTag> d32;
  return hn::ConvertTo(QuantTag(), hn::PromoteTo(d32, hn::LoadU(d8, from)));
}

void quant_dequantize(const int8_t* q, float* out, int64_t n, float scale) {
  const QuantTag d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const QuantVec factor = hn::Set(d, scale);
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(hn::Mul(load_int8(q + i), factor), d, out + i);
  for (; i < n; ++i) out[i] = scale * static_cast<float>(q[i]);
}

void quant_unpack(const uint8_t* bytes, int8_t* out, int64_t n) {
  int64_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::Full128<uint8_t> d;
  const auto mask = hn::Set(d, 15);
  const auto sign = hn::Set(d, 8);
  for (; i + 32 <= n; i += 32) {
    const auto both = hn::LoadU(d, bytes + i / 2);
    const auto first = hn::Sub(hn::Xor(hn::And(both, mask), sign), sign);
    const hn::Repartition<uint16_t, decltype(d)> d16;
    const auto upper = hn::And(hn::BitCast(d, hn::ShiftRight<4>(hn::BitCast(d16, both))), mask);
    const auto second = hn::Sub(hn::Xor(upper, sign), sign);
    auto* to = reinterpret_cast<uint8_t*>(out + i);
    hn::StoreU(hn::InterleaveLower(d, first, second), d, to);
    hn::StoreU(hn::InterleaveUpper(d, first, second), d, to + 16);
  }
#endif
  for (; i < n; ++i) {
    const int half = i % 2 == 0 ? bytes[i / 2] & 15 : bytes[i / 2] >> 4;
    out[i] = static_cast<int8_t>((half ^ 8) - 8);
  }
}

// Whole vectors of a block are added up in lanes and scaled there, in four sums that do not wait
// for one another; the rest apart.
float quant_dot(const float* x, const int8_t* q, int64_t n, const float* scales, int64_t block) {
  const QuantTag d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  QuantVec sum0 = hn::Zero(d), sum1 = sum0, sum2 = sum0, sum3 = sum0;
  float rest = 0.0f;
  const auto product = [&](int64_t i)
                           HWY_ATTR { return hn::Mul(hn::LoadU(d, x + i), load_int8(q + i)); };
  const auto add_product = [&](int64_t i, QuantVec to) HWY_ATTR {
    return hn::MulAdd(hn::LoadU(d, x + i), load_int8(q + i), to);
  };
  for (int64_t begin = 0, b = 0; begin < n; begin += block, ++b) {
    const int64_t end = std::min(begin + block, n);
    const QuantVec scale = hn::Set(d, scales[b]);
    int64_t i = begin;
    if (i + 4 * lanes <= end) {
      QuantVec s0 = product(i), s1 = product(i + lanes);
      QuantVec s2 = product(i + 2 * lanes), s3 = product(i + 3 * lanes);
      for (i += 4 * lanes; i + 4 * lanes <= end; i += 4 * lanes) {
        s0 = add_product(i, s0);
        s1 = add_product(i + lanes, s1);
        s2 = add_product(i + 2 * lanes, s2);
        s3 = add_product(i + 3 * lanes, s3);
      }
      sum0 = hn::MulAdd(s0, scale, sum0);
      sum1 = hn::MulAdd(s1, scale, sum1);
      sum2 = hn::MulAdd(s2, scale, sum2);
      sum3 = hn::MulAdd(s3, scale, sum3);
    }
    for (; i + 2 * lanes <= end; i += 2 * lanes) {
      sum0 = hn::MulAdd(product(i), scale, sum0);
      sum1 = hn::MulAdd(product(i + lanes), scale, sum1);
    }
    if (i + lanes <= end) {
      sum2 = hn::MulAdd(product(i), scale, sum2);
      i += lanes;
    }
    if (i < end) {
      float left = 0.0f;
      for (; i < end; ++i) left += x[i] * static_cast<float>(q[i]);
      rest += left * scales[b];
    }
  }
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(sum0, sum1), hn::Add(sum2, sum3)))) + rest;
}

void quant_scale_sums(const int32_t* sums, int64_t sums_row, int64_t rows, int64_t columns,
                      const float* row_scales, const float* column_scales, const float* bias,
                      bool accumulate, float* c, int64_t c_row) {
  const QuantTag d;
  const hn::RebindToSigned<QuantTag> di;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t j = 0; j < columns; j += lanes) {
    const auto valid = hn::FirstN(d, static_cast<size_t>(std::min(lanes, columns - j)));
    const QuantVec scale = masked_load(valid, d, column_scales + j);
    const QuantVec first = bias == nullptr ? hn::Zero(d) : masked_load(valid, d, bias + j);
    for (int64_t i = 0; i < rows; ++i) {
      float* to = c + i * c_row + j;
      const QuantVec sum = hn::ConvertTo(d, hn::LoadU(di, sums + i * sums_row + j));
      const QuantVec before = accumulate ? masked_load(valid, d, to) : first;
      masked_store(hn::MulAdd(sum, hn::Mul(scale, hn::Set(d, row_scales[i])), before), valid, d,
                   to);
    }
  }
}

const QuantizeKernels* quantize_table() {
  static constexpr QuantizeKernels kKernels = {&quant_largest, &quant_quantize, &quant_dequantize,
                                               &quant_unpack,  &quant_dot,      &quant_scale_sums};
  return &kKernels;
}

}  // namespace
}  // namespace kiln::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kiln::cpu {
KILN_KERNEL_TABLE(QuantizeKernels, quantize_kernels, quantize_table)
}  // namespace kiln::cpu
#endif
