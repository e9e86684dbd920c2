// What the kernels over rows share: loops by whole vectors with a masked rest, sums, maxima, and
// e^x for x <= 0. Included once for each instruction set by *_kernels.cpp files.

#if defined(KILN_BACKEND_CPU_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KILN_BACKEND_CPU_ROWS_INL_H_
#undef KILN_BACKEND_CPU_ROWS_INL_H_
#else
#define KILN_BACKEND_CPU_ROWS_INL_H_
#endif

#include <cmath>
#include <cstdint>
#include <limits>

#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

#include "kiln/backend/cpu/masked-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kiln::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// FirstN for any count.
template <class D>
HWY_INLINE hn::Mask<D> first_lanes(D d, int64_t count) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  return hn::FirstN(d, static_cast<size_t>(count < lanes ? count : lanes));
}

template <class D>
struct WholeVector {
  using T = hn::TFromD<D>;
  D d;
  HWY_INLINE hn::Vec<D> load(const T* from) const { return hn::LoadU(d, from); }
  HWY_INLINE void store(hn::Vec<D> v, T* to) const { hn::StoreU(v, d, to); }
  HWY_INLINE hn::Vec<D> only_valid(hn::Vec<D> v) const { return v; }
};

// The lanes of a row's end: the others load as 0 and are not stored.
template <class D>
struct PartOfVector {
  using T = hn::TFromD<D>;
  D d;
  hn::Mask<D> valid;
  HWY_INLINE hn::Vec<D> load(const T* from) const { return masked_load(valid, d, from); }
  HWY_INLINE void store(hn::Vec<D> v, T* to) const { masked_store(v, valid, d, to); }
  HWY_INLINE hn::Vec<D> only_valid(hn::Vec<D> v) const { return hn::IfThenElseZero(valid, v); }
};

// Calls f(i, io) for every vector of [0, n), where io loads and stores what is valid of it.
template <class D, class F>
HWY_INLINE void for_each_vector(D d, int64_t n, F&& f) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) f(i, WholeVector<D>{d});
  if (i < n) f(i, PartOfVector<D>{d, first_lanes(d, n - i)});
}

template <class T>
HWY_INLINE T row_sum(const T* HWY_RESTRICT x, int64_t n) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  auto s0 = hn::Zero(d), s1 = hn::Zero(d), s2 = hn::Zero(d), s3 = hn::Zero(d);
  int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    s0 = hn::Add(s0, hn::LoadU(d, x + i));
    s1 = hn::Add(s1, hn::LoadU(d, x + i + lanes));
    s2 = hn::Add(s2, hn::LoadU(d, x + i + 2 * lanes));
    s3 = hn::Add(s3, hn::LoadU(d, x + i + 3 * lanes));
  }
  for (; i < n; i += lanes) s0 = hn::Add(s0, masked_load(first_lanes(d, n - i), d, x + i));
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(s0, s1), hn::Add(s2, s3))));
}

template <class T>
HWY_INLINE T row_dot(const T* x, const T* y, int64_t n) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  auto s0 = hn::Zero(d), s1 = hn::Zero(d);
  int64_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    s0 = hn::MulAdd(hn::LoadU(d, x + i), hn::LoadU(d, y + i), s0);
    s1 = hn::MulAdd(hn::LoadU(d, x + i + lanes), hn::LoadU(d, y + i + lanes), s1);
  }
  for (; i < n; i += lanes) {
    const auto valid = first_lanes(d, n - i);
    s0 = hn::MulAdd(masked_load(valid, d, x + i), masked_load(valid, d, y + i), s0);
  }
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(s0, s1)));
}

// e^x for x <= 0 (a little above is fine too), within 1 ulp; below -87.3, where it is no normal
// number, 0. NaN stays.
template <class D>
  requires(sizeof(hn::TFromD<D>) == 4)
HWY_INLINE hn::Vec<D> exp_below_one(D d, hn::Vec<D> x) {
  const hn::RebindToSigned<D> di;
  // Adding 1.5 * 2^23 rounds to an integer and leaves it in the low bits.
  const auto magic = hn::Set(d, 12582912.0f);
  const auto shifted = hn::MulAdd(x, hn::Set(d, 1.44269504088896341f), magic);
  const auto n = hn::Sub(shifted, magic);
  auto r = hn::NegMulAdd(n, hn::Set(d, 0.693359375f), x);
  r = hn::NegMulAdd(n, hn::Set(d, -2.12194440054690583e-4f), r);
  // (e^r - 1 - r) / r^2, from Cephes.
  auto q = hn::MulAdd(hn::Set(d, 1.9875691500e-4f), r, hn::Set(d, 1.3981999507e-3f));
  q = hn::MulAdd(q, r, hn::Set(d, 8.3334519073e-3f));
  q = hn::MulAdd(q, r, hn::Set(d, 4.1665795894e-2f));
  q = hn::MulAdd(q, r, hn::Set(d, 1.6666665459e-1f));
  q = hn::MulAdd(q, r, hn::Set(d, 5.0000001201e-1f));
  const auto y = hn::Add(hn::MulAdd(q, hn::Mul(r, r), r), hn::Set(d, 1.0f));
  const auto scaled =
      hn::BitCast(d, hn::Add(hn::BitCast(di, y), hn::ShiftLeft<23>(hn::BitCast(di, shifted))));
  // Adding to the exponent of a NaN may turn it into a number: those lanes take x itself.
  const auto result = hn::IfThenElse(hn::Eq(x, x), scaled, x);
  return hn::IfThenZeroElse(hn::Lt(x, hn::Set(d, -87.3f)), result);
}

template <class D>
  requires(sizeof(hn::TFromD<D>) == 8)
HWY_INLINE hn::Vec<D> exp_below_one(D d, hn::Vec<D> x) {
  return hn::IfThenElse(hn::Eq(x, x), hn::Exp(d, x), x);
}

// The largest element; which of them where one is NaN does not matter to the callers, since the sum
// is NaN then.
template <class T>
HWY_INLINE T row_max(const T* HWY_RESTRICT x, int64_t n) {
  const hn::ScalableTag<T> d;
  const auto lowest = hn::Set(d, -std::numeric_limits<T>::infinity());
  auto m0 = lowest, m1 = lowest, m2 = lowest, m3 = lowest;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    m0 = hn::Max(m0, hn::LoadU(d, x + i));
    m1 = hn::Max(m1, hn::LoadU(d, x + i + lanes));
    m2 = hn::Max(m2, hn::LoadU(d, x + i + 2 * lanes));
    m3 = hn::Max(m3, hn::LoadU(d, x + i + 3 * lanes));
  }
  for (; i < n; i += lanes) {
    const auto valid = first_lanes(d, n - i);
    m0 = hn::Max(m0, hn::IfThenElse(valid, masked_load(valid, d, x + i), lowest));
  }
  return hn::GetLane(hn::MaxOfLanes(d, hn::Max(hn::Max(m0, m1), hn::Max(m2, m3))));
}

// The sum of e^(x - m) over the row; those terms go to y unless it is null.
template <class T, bool kStore>
HWY_INLINE T row_sum_exp(const T* x, T m, T* y, int64_t n) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto shift = hn::Set(d, m);
  auto s0 = hn::Zero(d), s1 = hn::Zero(d);
  int64_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    const auto e0 = exp_below_one(d, hn::Sub(hn::LoadU(d, x + i), shift));
    const auto e1 = exp_below_one(d, hn::Sub(hn::LoadU(d, x + i + lanes), shift));
    if constexpr (kStore) {
      hn::StoreU(e0, d, y + i);
      hn::StoreU(e1, d, y + i + lanes);
    }
    s0 = hn::Add(s0, e0);
    s1 = hn::Add(s1, e1);
  }
  for (; i < n; i += lanes) {
    const auto valid = first_lanes(d, n - i);
    const auto e = exp_below_one(d, hn::Sub(masked_load(valid, d, x + i), shift));
    if constexpr (kStore) masked_store(e, valid, d, y + i);
    s0 = hn::Add(s0, hn::IfThenElseZero(valid, e));
  }
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(s0, s1)));
}

}  // namespace kiln::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard of each target
