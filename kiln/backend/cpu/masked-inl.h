// Loads and stores of some lanes of a vector, which touch no memory of the others (included once
// per instruction set).
//
// Highway's MaskedLoad and BlendedStore do that where the processor has such instructions.
// Elsewhere they read a whole vector, which may reach into a page that is not there, or write one
// back, which undoes what another thread has just written beside it.

#if defined(KILN_BACKEND_CPU_MASKED_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KILN_BACKEND_CPU_MASKED_INL_H_
#undef KILN_BACKEND_CPU_MASKED_INL_H_
#else
#define KILN_BACKEND_CPU_MASKED_INL_H_
#endif

#include <cstddef>
#include <cstdint>
#include <cstring>

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace kiln::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Whether hn::MaskedLoad of elements T reads the lanes of its mask alone. AVX2 has masked loads of
// 32 and 64 bits.
template <class T>
inline constexpr bool kExactMaskedLoad =
    !HWY_MEM_OPS_MIGHT_FAULT || (HWY_TARGET == HWY_AVX2 && sizeof(T) >= 4);

// Calls f(lane) for each lane of the mask.
template <class D, class F>
HWY_INLINE void for_each_lane(D d, hn::Mask<D> mask, F&& f) {
  alignas(8) uint8_t bytes[8] = {};
  hn::StoreMaskBits(d, mask, bytes);
  uint64_t bits = 0;
  std::memcpy(&bits, bytes, sizeof(bits));
  if constexpr (hn::MaxLanes(D()) < 64) bits &= (uint64_t{1} << hn::Lanes(d)) - 1;
  for (; bits != 0; bits &= bits - 1) f(static_cast<size_t>(__builtin_ctzll(bits)));
}

// The lanes of the mask from memory, 0 in the others.
template <class D>
HWY_INLINE hn::Vec<D> masked_load(hn::Mask<D> mask, D d, const hn::TFromD<D>* from) {
  using T = hn::TFromD<D>;
  if constexpr (kExactMaskedLoad<T>) {
    return hn::MaskedLoad(mask, d, from);
  } else {
    // A page holds at least one lane that is asked for, or is not touched.
    constexpr uintptr_t kPage = 4096;
    const bool one_page =
        (reinterpret_cast<uintptr_t>(from) & (kPage - 1)) <= kPage - sizeof(T) * hn::MaxLanes(d);
    if (HWY_LIKELY(!HWY_IS_ASAN && one_page && !hn::AllFalse(d, mask))) {
      return hn::IfThenElseZero(mask, hn::LoadU(d, from));
    }
    HWY_ALIGN T lanes[hn::MaxLanes(D())] = {};
    for_each_lane(d, mask, [&](size_t i) { lanes[i] = from[i]; });
    return hn::Load(d, lanes);
  }
}

// Writes the lanes of the mask.
template <class D>
HWY_INLINE void masked_store(hn::Vec<D> v, hn::Mask<D> mask, D d, hn::TFromD<D>* to) {
  if constexpr (HWY_ARCH_X86 || !HWY_MEM_OPS_MIGHT_FAULT) {
    hn::BlendedStore(v, mask, d, to);
  } else {
    HWY_ALIGN hn::TFromD<D> lanes[hn::MaxLanes(D())];
    hn::Store(v, d, lanes);
    for_each_lane(d, mask, [&](size_t i) { to[i] = lanes[i]; });
  }
}

}  // namespace kiln::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard of each target
