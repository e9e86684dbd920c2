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

// Whether both are of one shape, dtype and device. Throws DTypeError for complex ones.
bool are_alike(const Tensor& a, const Tensor& b);

}  // namespace kiln::detail
