// Padding at the edges of dims.
#pragma once

#include <string>

#include "kiln/tensor/tensor.h"

namespace kiln::functional {

// x with more elements before and behind the last dims: `pad` holds two numbers for each padded
// dim, the last dim's first. Modes: "constant" (`value`), "reflect" (mirrored, without the edge),
// "replicate" (the edge again), "circular" (from the other end). Negative numbers take elements
// away (in mode "constant", "replicate" and "circular"). Any number of dims in every mode. Throws
// ValueError for a mode or a width that makes no sense.
Tensor pad(const Tensor& x, const Shape& pad, const std::string& mode = "constant",
           double value = 0.0);

}  // namespace kiln::functional
