// Connectionist temporal classification.
#pragma once

#include "kiln/tensor/ops.h"

namespace kiln::functional {

// -log of the probability that a sequence of outputs spells the target, over all alignments:
// repeated labels merge, then blanks vanish (Graves et al., 2006). log_probs [T, N, C] or [T, C],
// logarithms of probabilities; targets [N, S] (padded), or all of them in one row [sum of
// target_lengths]; the lengths [N] (or []) say how much of each counts. -> [N]; the mean divides
// each loss by its target's length first. A target that fits no alignment costs infinity, or 0 with
// zero_infinity. Computed in the log domain, in f32 at least. Throws ShapeError, ValueError,
// DTypeError.
Tensor ctc_loss(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths,
                const Tensor& target_lengths, int64_t blank = 0,
                Reduction reduction = Reduction::mean, bool zero_infinity = false);

}  // namespace kiln::functional
