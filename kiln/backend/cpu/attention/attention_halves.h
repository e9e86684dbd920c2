// Attention of 16-bit floats that are not widened first. Internal to the Cpu backend.
#pragma once

#include "kiln/backend/attention_options.h"
#include "kiln/backend/cpu/cpu.h"

namespace kiln::cpu {

// Whether attend_halves() takes so many queries: a few always, more of bf16 where the machine has
// an instruction for its products.
bool attends_halves(DType dtype, int64_t queries);

// out and lse as float_attention gives them, of operands of one 16-bit dtype with adjacent rows;
// the mask is of floats. Products are exact, scores, softmax and sums are floats. Of many queries
// each weight is rounded to bf16 before it meets the values, and numbers below 2^-126 count as
// zero.
void attend_halves(const HostTensor& q, const HostTensor& k, const HostTensor& v,
                   const HostHandle* mask, const HostTensor& out, const HostTensor& lse,
                   const AttentionOptions& options);

}  // namespace kiln::cpu
