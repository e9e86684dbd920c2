// Optimizer steps over all parameters in one pass. Internal: kiln/optim calls them.
#pragma once

#include <span>

#include "kiln/backend/optimizer_step.h"
#include "kiln/tensor/tensor.h"

namespace kiln::detail {

// Writes the parameters and the state in place; not recorded. `slots` has a span for each slot that
// the step names, with one tensor for each parameter. Tensors at one index are of one shape, dtype
// and device: ShapeError, DTypeError and DeviceError otherwise, and ValueError for other counts.
void optimizer_step(std::span<Tensor> params, std::span<const Tensor> grads,
                    std::span<const std::span<Tensor>> slots, const OptimizerStep& step);

// AdamW with coded state: codes u8 in p's shape, of m and of v, and the largest magnitudes of their
// blocks, f32 [blocks]. Writes p and the state in place; not recorded. ShapeError, DTypeError,
// DeviceError and, for a block below 1, ValueError.
void adamw_8bit_step(Tensor& p, const Tensor& g, std::span<Tensor> codes, std::span<Tensor> largest,
                     const AdamW8bitStep& step);

// Whether both are of one shape, dtype and device. Throws DTypeError for complex ones.
bool are_alike(const Tensor& a, const Tensor& b);

}  // namespace kiln::detail
