#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kiln/backend/cpu/gemm_f64_kernels.cpp"
#include <hwy/foreach_target.h>
// Highway's order: the above includes this file once for each target.
#include <hwy/highway.h>

#include "kiln/backend/cpu/gemm_kernels-inl.h"
#include "kiln/backend/cpu/kernel_table.h"

HWY_BEFORE_NAMESPACE();
namespace kiln::cpu::HWY_NAMESPACE {

const GemmKernels<double>* gemm_f64() { return kernels<double>(); }

}  // namespace kiln::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kiln::cpu {

HWY_EXPORT(gemm_f64);

template <>
const GemmKernels<double>& gemm_kernels<double>() {
  static constinit KernelTable<GemmKernels<double>> table(
      [] { return HWY_DYNAMIC_DISPATCH(gemm_f64)(); });
  return table.get();
}

}  // namespace kiln::cpu
#endif
