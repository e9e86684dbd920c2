// Dropout of elements and of whole channels. With `training`, else they give x itself.
#pragma once

#include "kiln/tensor/tensor.h"

namespace kiln::functional {

// Zeroes each channel of each instance with probability p and scales the others by 1 / (1 - p): x
// [N, C, L] or [C, L], and with H, W or D, H, W in place of L (dropout2d takes [N, C, L] too, for 3
// dims are always a batch there; Tompson et al., 2015).
Tensor dropout1d(const Tensor& x, double p = 0.5, bool training = true);
Tensor dropout2d(const Tensor& x, double p = 0.5, bool training = true);
Tensor dropout3d(const Tensor& x, double p = 0.5, bool training = true);
// Sets elements to selu's negative limit and rescales all, which keeps mean 0 and variance 1
// (Klambauer et al., 2017).
Tensor alpha_dropout(const Tensor& x, double p = 0.5, bool training = false);
// The same for whole channels (dims 0 and 1).
Tensor feature_alpha_dropout(const Tensor& x, double p = 0.5, bool training = false);

}  // namespace kiln::functional
