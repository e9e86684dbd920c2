// Plain loops, compiled for each instruction set: the compiler vectorizes them, narrowing to bytes
// included.
#include "kiln/backend/cpu/elementwise/compare_kernels.h"

#include <limits>

#include "kiln/backend/cpu/kernel_table.h"

// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kiln/backend/cpu/elementwise/compare_kernels.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace kiln::cpu::HWY_NAMESPACE {
namespace {

template <CompareOp kOp, class T>
HWY_INLINE bool holds(T a, T b) {
  if constexpr (kOp == CompareOp::equal) return a == b;
  if constexpr (kOp == CompareOp::not_equal) return a != b;
  if constexpr (kOp == CompareOp::greater) return a > b;
  if constexpr (kOp == CompareOp::greater_equal) return a >= b;
}

template <CompareOp kOp, class T, bool kScalarA, bool kScalarB>
HWY_INLINE void form(const T* HWY_RESTRICT a, const T* HWY_RESTRICT b, uint8_t* HWY_RESTRICT out,
                     int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = holds<kOp, T>(a[kScalarA ? 0 : i], b[kScalarB ? 0 : i]);
}

template <CompareOp kOp, class T>
void compare(const KernelArgs& args) {
  const T* a = static_cast<const T*>(args.in[0]);
  const T* b = static_cast<const T*>(args.in[1]);
  auto* out = static_cast<uint8_t*>(args.out);
  switch (args.scalars) {
    case 0:
      return form<kOp, T, false, false>(a, b, out, args.n);
    case 1:
      return form<kOp, T, true, false>(a, b, out, args.n);
    case 2:
      return form<kOp, T, false, true>(a, b, out, args.n);
    default:
      return form<kOp, T, true, true>(a, b, out, args.n);
  }
}

template <class T>
void is_inf(const KernelArgs& args) {
  const T* HWY_RESTRICT x = static_cast<const T*>(args.in[0]);
  auto* HWY_RESTRICT out = static_cast<uint8_t*>(args.out);
  constexpr T inf = std::numeric_limits<T>::infinity();
  const int64_t n = args.n;
  if (args.scalars != 0) {
    for (int64_t i = 0; i < n; ++i) out[i] = (x[0] == inf) | (x[0] == -inf);
    return;
  }
  for (int64_t i = 0; i < n; ++i) out[i] = (x[i] == inf) | (x[i] == -inf);
}

#define KILN_ROW(op) \
  { compare<CompareOp::op, float>, compare<CompareOp::op, double> }

const CompareKernels* compare_table() {
  static constexpr CompareKernels table = {
      {KILN_ROW(equal), KILN_ROW(not_equal), KILN_ROW(greater), KILN_ROW(greater_equal)},
      {is_inf<float>, is_inf<double>}};
  return &table;
}
#undef KILN_ROW

}  // namespace
}  // namespace kiln::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kiln::cpu {
KILN_KERNEL_TABLE(CompareKernels, compare_kernels, compare_table)
}  // namespace kiln::cpu
#endif
