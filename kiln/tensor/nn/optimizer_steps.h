// Optimizer steps over all parameters in one pass. Internal: kiln/optim calls them.
#pragma once

#include <span>

#include "kiln/backend/options.h"
#include "kiln/tensor/tensor.h"

namespace kiln::detail {

// Writes the parameters and the state in place; not recorded. All spans are of one length, but
// `momentum` and `vmax` may be empty where the step does not use them. Tensors at one index are
// of one shape, dtype and device: ShapeError, DTypeError and DeviceError otherwise.
void sgd_step(std::span<Tensor> params, std::span<const Tensor> grads, std::span<Tensor> momentum,
              const SgdStep& step);
void adam_step(std::span<Tensor> params, std::span<const Tensor> grads, std::span<Tensor> m,
               std::span<Tensor> v, std::span<Tensor> vmax, const AdamStep& step);

// Whether both are of one shape, dtype and device. Throws DTypeError for complex ones.
bool are_alike(const Tensor& a, const Tensor& b);

}  // namespace kiln::detail
