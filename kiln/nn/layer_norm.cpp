#include "kiln/nn/layer_norm.h"

#include "kiln/core/error.h"
#include "kiln/nn/init.h"
#include "kiln/nn/repr.h"

namespace kiln::nn {

LayerNorm::LayerNorm(const Shape& normalized_shape, const LayerNormOptions& options,
                     const ParamOptions& param_options)
    : normalized_shape_(normalized_shape), options_(options) {
  if (normalized_shape.empty()) {
    throw_error<ValueError>("LayerNorm: normalized_shape must have at least one dim; got ",
                            normalized_shape);
  }
  if (!options.elementwise_affine) return;
  weight = parameter(normalized_shape, init::ones_, param_options);
  if (options.bias) bias = parameter(normalized_shape, init::zeros_, param_options);
}

void LayerNorm::reset_parameters() {
  refill(weight, init::ones_);
  refill(bias, init::zeros_);
}

std::string LayerNorm::extra_repr() const {
  using detail::repr;
  return concat(repr(normalized_shape_), ", eps=", repr(options_.eps),
                ", elementwise_affine=", repr(options_.elementwise_affine),
                ", bias=", repr(bias.defined()));
}

}  // namespace kiln::nn
