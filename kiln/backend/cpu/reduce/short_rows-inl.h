// Rows of a few elements, as many at a time as a vector has lanes. Included once for each
// instruction set.

#if defined(KILN_BACKEND_CPU_REDUCE_SHORT_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KILN_BACKEND_CPU_REDUCE_SHORT_ROWS_INL_H_
#undef KILN_BACKEND_CPU_REDUCE_SHORT_ROWS_INL_H_
#else
#define KILN_BACKEND_CPU_REDUCE_SHORT_ROWS_INL_H_
#endif

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace kiln::cpu::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// Rows of so few elements that what is done across a vector's lanes would be most of the work.
constexpr int kShortRow = 8;

// Element i of each row, of rows of kLength elements that begin at x, in column[i].
template <int kLength, class D>
HWY_INLINE void load_rows(D d, const hn::TFromD<D>* x, hn::Vec<D>* column) {
  if constexpr (kLength == 1) {
    column[0] = hn::LoadU(d, x);
  } else if constexpr (kLength == 2) {
    hn::LoadInterleaved2(d, x, column[0], column[1]);
  } else if constexpr (kLength == 3) {
    hn::LoadInterleaved3(d, x, column[0], column[1], column[2]);
  } else if constexpr (kLength == 4) {
    hn::LoadInterleaved4(d, x, column[0], column[1], column[2], column[3]);
  } else {
    const hn::RebindToSigned<D> di;
    const auto first = hn::Mul(hn::Iota(di, 0), hn::Set(di, kLength));
#pragma GCC unroll 8
    for (int i = 0; i < kLength; ++i) column[i] = hn::GatherIndex(d, x + i, first);
  }
}

}  // namespace
}  // namespace kiln::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard of each target
