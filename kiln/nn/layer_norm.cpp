#include "kiln/nn/layer_norm.h"

#include "kiln/core/error.h"
#include "kiln/nn/init.h"
#include "kiln/nn/repr.h"

namespace kiln::nn {

LayerNorm::LayerNorm(LayerNormConfig config, const ParamOptions& param_options)
    : Layer(std::move(config)) {
  const Shape shape = normalized_shape();
  if (shape.empty()) {
    throw_error<ValueError>("LayerNorm: normalized_shape must have at least one dim; got ", shape);
  }
  for (const int64_t size : shape) {
    if (size < 0) {
      throw_error<ValueError>("LayerNorm: normalized_shape must not be negative; got ", shape);
    }
  }
  if (!options().elementwise_affine) return;
  weight = parameter(shape, init::ones_, param_options);
  if (options().bias) bias = parameter(shape, init::zeros_, param_options);
}

Shape LayerNorm::normalized_shape() const {
  Shape shape;
  for (const int64_t size : config_.normalized_shape.value()) shape.push_back(size);
  return shape;
}

void LayerNorm::reset_parameters() {
  refill(weight, init::ones_);
  refill(bias, init::zeros_);
}

std::string LayerNorm::extra_repr() const {
  using detail::repr;
  return concat(repr(normalized_shape()), ", eps=", repr(options().eps),
                ", elementwise_affine=", repr(options().elementwise_affine),
                ", bias=", repr(bias.defined()));
}

KILN_MODULE_DEFINED(LayerNorm, weight, bias)

}  // namespace kiln::nn
