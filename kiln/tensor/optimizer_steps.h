// Optimizer steps over all parameters in one pass. Internal: kiln/optim calls them.
#pragma once

#include <span>

#include "kiln/backend/options.h"
#include "kiln/tensor/tensor.h"

namespace kiln::detail {

// Writes the parameters and the state in place; not recorded. All spans are of one length, but
// `momentum` and `vmax` may be empty where the step does not use them. Tensors at one index are
// alike.
void sgd_step(std::span<Tensor> params, std::span<const Tensor> grads, std::span<Tensor> momentum,
              const SgdStep& step);
void adam_step(std::span<Tensor> params, std::span<const Tensor> grads, std::span<Tensor> m,
               std::span<Tensor> v, std::span<Tensor> vmax, const AdamStep& step);

}  // namespace kiln::detail
