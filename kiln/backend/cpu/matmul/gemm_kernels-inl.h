// The table of matrix product kernels, and packing. Included once for each instruction set by
// gemm_f32_kernels.cpp and gemm_f64_kernels.cpp.

#if defined(KILN_BACKEND_CPU_GEMM_KERNELS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KILN_BACKEND_CPU_GEMM_KERNELS_INL_H_
#undef KILN_BACKEND_CPU_GEMM_KERNELS_INL_H_
#else
#define KILN_BACKEND_CPU_GEMM_KERNELS_INL_H_
#endif

#include <algorithm>
#include <cstdint>

#include <hwy/highway.h>

#include "kiln/backend/cpu/copy/transpose-inl.h"
#include "kiln/backend/cpu/masked-inl.h"
#include "kiln/backend/cpu/matmul/gemm_conv-inl.h"
#include "kiln/backend/cpu/matmul/gemm_dots-inl.h"
#include "kiln/backend/cpu/matmul/gemm_kernels.h"
#include "kiln/backend/cpu/matmul/gemm_tiles-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kiln::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET != HWY_SCALAR

// pack() of `lanes` or fewer rows of adjacent elements; returns how far it came.
template <class T>
HWY_INLINE int64_t pack_transposed(int64_t count, int64_t k, const T* from, int64_t row, T* to,
                                   int64_t width, bool may_spill) {
  const hn::ScalableTag<T> d;
  constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(d));
  constexpr int64_t kDepth = 16 / sizeof(T);
  int64_t rows[kLanes];
  for (int64_t r = 0; r < kLanes; ++r) rows[r] = std::min(r, count - 1) * row;  // the last again
  int64_t p = 0;
  if (may_spill) {
    for (; p + kDepth <= k; p += kDepth) {
      transpose_blocks(d, from + p, rows, [&](hn::Vec<decltype(d)> v, int64_t i) HWY_ATTR {
        hn::StoreU(v, d, to + (p + i) * width);
      });
    }
  } else {
    const auto valid = hn::FirstN(d, static_cast<size_t>(count));
    for (; p + kDepth <= k; p += kDepth) {
      transpose_blocks(d, from + p, rows, [&](hn::Vec<decltype(d)> v, int64_t i) HWY_ATTR {
        masked_store(v, valid, d, to + (p + i) * width);
      });
    }
  }
  return p;
}

#endif

template <class T>
void pack(int64_t count, int64_t k, const T* from, int64_t row, int64_t step, T* to,
          int64_t width) {
  const hn::ScalableTag<T> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  if (row == 1) {  // what becomes adjacent is adjacent
    const int64_t whole = count / lanes * lanes;
    const auto rest = hn::FirstN(d, static_cast<size_t>(count - whole));
    // Zeros up to `width`, and nothing beyond: the last element may end its memory.
    const auto written = hn::FirstN(d, static_cast<size_t>(std::min(lanes, width - whole)));
    for (int64_t p = 0; p < k; ++p, from += step, to += width) {
      for (int64_t i = 0; i < whole; i += lanes) hn::StoreU(hn::LoadU(d, from + i), d, to + i);
      if (whole != count) {
        masked_store(masked_load(rest, d, from + whole), written, d, to + whole);
      }
    }
    return;
  }
  for (int64_t i = 0; i < count; i += lanes) {
    int64_t p = 0;
    const T* rows = from + i * row;
#if HWY_TARGET != HWY_SCALAR
    // The first vector of an element may reach into the next element, which is written later.
    if (step == 1) {
      p = pack_transposed(std::min(lanes, count - i), k, rows, row, to + i, width,
                          i == 0 || i + lanes <= width);
    }
#endif
    const int64_t valid = std::min(lanes, count - i);
    const int64_t padded = std::min(lanes, width - i);
    for (; p < k; ++p) {
      T* out = to + p * width + i;
      for (int64_t r = 0; r < valid; ++r) out[r] = rows[r * row + p * step];
      for (int64_t r = valid; r < padded; ++r) out[r] = T(0);
    }
  }
}

template <class T>
const GemmKernels<T>* kernels() {
  static const GemmKernels<T> kKernels = {static_cast<int>(hn::Lanes(hn::ScalableTag<T>())),
                                          2 * static_cast<int>(hn::Lanes(hn::ScalableTag<T>())),
                                          kMaxRows,
                                          kMaxStridedRows,
                                          &block_product<T>,
                                          &conv_block<T>,
                                          &patch_block<T>,
                                          &dots<T>,
                                          &dots_of_rows<T>,
                                          &weighted_sum<T>,
                                          &weighted_sums<T>,
                                          &narrow_sums<T>,
                                          &pack<T>};
  return &kKernels;
}

}  // namespace kiln::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard of each target
