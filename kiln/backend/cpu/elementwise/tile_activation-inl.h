// TileActivation of vectors. Included once for each instruction set.

#if defined(KILN_BACKEND_CPU_ELEMENTWISE_TILE_ACTIVATION_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KILN_BACKEND_CPU_ELEMENTWISE_TILE_ACTIVATION_INL_H_
#undef KILN_BACKEND_CPU_ELEMENTWISE_TILE_ACTIVATION_INL_H_
#else
#define KILN_BACKEND_CPU_ELEMENTWISE_TILE_ACTIVATION_INL_H_
#endif

#include <hwy/highway.h>

#include "kiln/backend/cpu/elementwise/tile_activation.h"

HWY_BEFORE_NAMESPACE();
namespace kiln::cpu::HWY_NAMESPACE {

// TileActivation says what NaN and -0 become. (Of equal numbers, and where one is NaN, x86's minima
// and maxima are the second.)
template <class D, class V>
HWY_INLINE V clamped(D d, V x, V low, V high) {
  (void)d;
#if HWY_ARCH_X86 && HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
  return hwy::HWY_NAMESPACE::Min(high, hwy::HWY_NAMESPACE::Max(low, x));
#else
  namespace hn = hwy::HWY_NAMESPACE;
  return hn::IfThenElse(hn::Lt(x, low), low, hn::IfThenElse(hn::Gt(x, high), high, x));
#endif
}

// The numbers of the op hardswish.
template <class D, class V>
HWY_INLINE V hardswish(D d, V x) {
  namespace hn = hwy::HWY_NAMESPACE;
  using T = hn::TFromD<D>;
  const V within = clamped(d, hn::Add(x, hn::Set(d, T(3))), hn::Zero(d), hn::Set(d, T(6)));
  return hn::Mul(x, hn::Mul(within, hn::Set(d, T(1.0 / 6.0))));
}

template <class D, class V>
HWY_INLINE V activated(D d, V x, const TileActivation<hwy::HWY_NAMESPACE::TFromD<D>>& f) {
  namespace hn = hwy::HWY_NAMESPACE;
  if (f.is_hardswish) return hardswish(d, x);
  return clamped(d, x, hn::Set(d, f.low), hn::Set(d, f.high));
}

}  // namespace kiln::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard of each target
