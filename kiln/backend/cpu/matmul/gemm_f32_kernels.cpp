#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kiln/backend/cpu/matmul/gemm_f32_kernels.cpp"
#include <hwy/foreach_target.h>
// Highway's order: the above includes this file once for each target.
#include <hwy/highway.h>

#include "kiln/backend/cpu/kernel_table.h"
#include "kiln/backend/cpu/matmul/gemm_kernels-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kiln::cpu::HWY_NAMESPACE {
namespace {

const GemmKernels<float>* gemm_f32() { return kernels<float>(); }

}  // namespace
}  // namespace kiln::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kiln::cpu {
KILN_KERNEL_TABLE_OF(float, GemmKernels, gemm_kernels, gemm_f32)
}  // namespace kiln::cpu
#endif
