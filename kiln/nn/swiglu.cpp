#include "kiln/nn/swiglu.h"

namespace kiln::nn {

SwiGLU::SwiGLU(const SwiGLUConfig& config, const ParamOptions& options)
    : linear_inner(kiln::detail::with_required(config).d_input,
                   kiln::detail::with_required(config).d_output, config.bias, options),
      linear_outer(config.d_input, config.d_output, config.bias, options) {}

SwiGLU SwiGLUConfig::init(const ParamOptions& options) const { return SwiGLU(*this, options); }

Tensor SwiGLU::forward(const Tensor& x) const {
  return silu(linear_inner.forward(x)) * linear_outer.forward(x);
}

KILN_MODULE_DEFINED(SwiGLU, linear_inner, linear_outer)

}  // namespace kiln::nn
