// The loss of the RNN transducer.
#pragma once

#include "kiln/tensor/ops.h"

namespace kiln::functional {

// -log of the probability that a transducer spells the target, over all alignments: at each step it
// emits the next label, or the blank, which goes on to the next step (Graves, 2012). logits
// [N, T, U + 1, C]; targets [N, U] (padded), integers; logit_lengths and target_lengths [N] say how
// much of T and of U counts. A negative blank counts from the last class. clamp > 0 bounds the
// elements of the gradient. Without fused_log_softmax the logits are taken for logarithms of
// probabilities. -> [N]; sequences add up or are averaged by `reduction`. Computed in the log
// domain, in double precision. Names and defaults are torchaudio's. Throws ShapeError, ValueError,
// DTypeError.
Tensor rnnt_loss(const Tensor& logits, const Tensor& targets, const Tensor& logit_lengths,
                 const Tensor& target_lengths, int64_t blank = -1, double clamp = -1.0,
                 Reduction reduction = Reduction::mean, bool fused_log_softmax = true);

}  // namespace kiln::functional
