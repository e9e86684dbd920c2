// Rows into columns by whole vectors. Included once for each instruction set by *_kernels.cpp
// files.

#if defined(KILN_BACKEND_CPU_TRANSPOSE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KILN_BACKEND_CPU_TRANSPOSE_INL_H_
#undef KILN_BACKEND_CPU_TRANSPOSE_INL_H_
#else
#define KILN_BACKEND_CPU_TRANSPOSE_INL_H_
#endif

#include <cstdint>

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace kiln::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET != HWY_SCALAR

// A vector whose blocks of 128 bits come from p + offsets[0], p + offsets[step], p + offsets[2
// step], ...
template <class D, class T = hn::TFromD<D>>
HWY_INLINE hn::Vec<D> load_blocks(D d, const T* HWY_RESTRICT p, const int64_t* offsets, int step) {
  if constexpr (hn::MaxLanes(D()) * sizeof(T) <= 16) {
    return hn::LoadU(d, p + offsets[0]);
  } else {
    const hn::Half<D> half;
    constexpr auto blocks = static_cast<int>(hn::MaxLanes(D()) * sizeof(T) / 16);
    return hn::Combine(d, load_blocks(half, p, offsets + blocks / 2 * step, step),
                       load_blocks(half, p, offsets, step));
  }
}

// As many rows as a vector has lanes, of one block (128 bits) each, transposed: a vector of all
// rows' first elements, then the second... Row r starts at from + rows[r]; store(v, p) takes the
// vector of elements p. Elements have 4 or 8 bytes.
template <class D, class T = hn::TFromD<D>, class Store>
HWY_INLINE void transpose_blocks(D d, const T* HWY_RESTRICT from, const int64_t* rows,
                                 Store&& store) {
  if constexpr (sizeof(T) == 4) {
    const hn::Repartition<uint64_t, D> d64;
    const auto r0 = load_blocks(d, from, rows, 4);
    const auto r1 = load_blocks(d, from, rows + 1, 4);
    const auto r2 = load_blocks(d, from, rows + 2, 4);
    const auto r3 = load_blocks(d, from, rows + 3, 4);
    const auto low01 = hn::BitCast(d64, hn::InterleaveLower(d, r0, r1));
    const auto low23 = hn::BitCast(d64, hn::InterleaveLower(d, r2, r3));
    const auto high01 = hn::BitCast(d64, hn::InterleaveUpper(d, r0, r1));
    const auto high23 = hn::BitCast(d64, hn::InterleaveUpper(d, r2, r3));
    store(hn::BitCast(d, hn::InterleaveLower(d64, low01, low23)), 0);
    store(hn::BitCast(d, hn::InterleaveUpper(d64, low01, low23)), 1);
    store(hn::BitCast(d, hn::InterleaveLower(d64, high01, high23)), 2);
    store(hn::BitCast(d, hn::InterleaveUpper(d64, high01, high23)), 3);
  } else {
    const auto r0 = load_blocks(d, from, rows, 2);
    const auto r1 = load_blocks(d, from, rows + 1, 2);
    store(hn::InterleaveLower(d, r0, r1), 0);
    store(hn::InterleaveUpper(d, r0, r1), 1);
  }
}

#endif  // HWY_TARGET != HWY_SCALAR

}  // namespace kiln::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
