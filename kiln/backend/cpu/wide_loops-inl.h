// The loops around an operation on doubles that come from floats (included once per instruction
// set).

#if defined(KILN_BACKEND_CPU_WIDE_LOOPS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KILN_BACKEND_CPU_WIDE_LOOPS_INL_H_
#undef KILN_BACKEND_CPU_WIDE_LOOPS_INL_H_
#else
#define KILN_BACKEND_CPU_WIDE_LOOPS_INL_H_
#endif

#include "kiln/backend/cpu/loops-inl.h"
#include "kiln/backend/cpu/math/wide_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kiln::cpu::HWY_NAMESPACE {
namespace wide {

// Widens Lanes(double) floats at a time. An operation as in loops-inl.h; NaN passes it by.
template <class Op>
void unary(const KernelArgs& args) {
  const hn::ScalableTag<double> d;
  const hn::Rebind<float, decltype(d)> narrow;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const float* x = static_cast<const float*>(args.in[0]);
  float* out = static_cast<float*>(args.out);
  const Op op(args.params);
  const auto compute = [&](auto v) HWY_ATTR {
    const auto y = to_float(narrow, op(d, hn::PromoteTo(d, v)));
    return hn::IfThenElse(hn::IsNaN(v), v, y);
  };
  if (args.scalars != 0) {
    const float value = hn::GetLane(compute(hn::Set(narrow, x[0])));
    return loops::fill(hn::ScalableTag<float>(), value, out, args.n);
  }
  int64_t i = 0;
  for (; i + lanes <= args.n; i += lanes) {
    hn::StoreU(compute(hn::LoadU(narrow, x + i)), narrow, out + i);
  }
  if (i < args.n) {
    const auto last = compute(loops::load_tail(narrow, x + i, args.n - i));
    loops::store_tail(last, narrow, out + i, args.n - i);
  }
}

// The same of two; NaN is the operation's.
template <class Op>
void binary(const KernelArgs& args) {
  const hn::ScalableTag<double> d;
  const hn::Rebind<float, decltype(d)> narrow;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const float* a = static_cast<const float*>(args.in[0]);
  const float* b = static_cast<const float*>(args.in[1]);
  float* out = static_cast<float*>(args.out);
  if (args.n == 0) return;
  const bool one_a = (args.scalars & 1) != 0;
  const bool one_b = (args.scalars & 2) != 0;
  const auto first = hn::Set(narrow, a[0]);
  const auto second = hn::Set(narrow, b[0]);
  const Op op(args.params);
  const auto compute = [&](auto x, auto y) HWY_ATTR {
    return to_float(narrow, op(d, hn::PromoteTo(d, x), hn::PromoteTo(d, y)));
  };
  int64_t i = 0;
  for (; i + lanes <= args.n; i += lanes) {
    const auto x = one_a ? first : hn::LoadU(narrow, a + i);
    const auto y = one_b ? second : hn::LoadU(narrow, b + i);
    hn::StoreU(compute(x, y), narrow, out + i);
  }
  if (i < args.n) {
    const int64_t left = args.n - i;
    const auto x = one_a ? first : loops::load_tail(narrow, a + i, left);
    const auto y = one_b ? second : loops::load_tail(narrow, b + i, left);
    loops::store_tail(compute(x, y), narrow, out + i, left);
  }
}

}  // namespace wide
}  // namespace kiln::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
