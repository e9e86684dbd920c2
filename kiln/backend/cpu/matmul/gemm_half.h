// Matrix products of 16-bit floats that are not widened first. Internal to the Cpu backend.
#pragma once

#include <memory>

#include "kiln/backend/cpu/matmul/gemm.h"
#include "kiln/core/dtype.h"
#include "kiln/core/half.h"
#include "kiln/core/storage.h"

namespace kiln::cpu {

// Whether gemm and gemm_serial take products of this size: those with a vector always do, of bf16
// all where the machine has an instruction for them. Widen and multiply in float elsewhere.
bool multiplies_half(DType dtype, int64_t m, int64_t n);

// Whether gemm applies an activation and a residual, with the numbers that the ops by themselves
// give; `activation` is a kernel of floats.
bool finishes_half(DType dtype, int64_t m, int64_t n);

// B of the product, which lies in `storage`, as packed_b takes it (Note [Kept data]); null where
// none is kept.
std::shared_ptr<const void> kept_half_columns(const Storage& storage, const Gemm<bfloat16>& g);

// As for float. Products of two elements are exact in float; their sums are rounded to float, and
// results (with the biases) once more. Where the instruction for bf16 is used, numbers and partial
// sums below 2^-126 count as zero. Every element of C sums in an order that depends on the size of
// the whole product alone.
template <>
void gemm(const Gemm<bfloat16>& g);
template <>
void gemm_serial(const Gemm<bfloat16>& g);
template <>
void gemm(const Gemm<float16>& g);
template <>
void gemm_serial(const Gemm<float16>& g);

}  // namespace kiln::cpu
