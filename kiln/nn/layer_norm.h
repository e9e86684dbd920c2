// LayerNorm: normalizes each row over its last dims (Ba, Kiros & Hinton, 2016).
#pragma once

#include <string>

#include "kiln/core/config.h"
#include "kiln/nn/module.h"
#include "kiln/tensor/ops.h"

namespace kiln::nn {

struct LayerNormOptions {
  double eps = 1e-5;
  bool elementwise_affine = true;  // has weight and bias
  bool bias = true;                // with elementwise_affine
  KILN_CONFIG(LayerNormOptions, eps, doc(elementwise_affine, "has weight and bias"), bias)
};

// x [.., normalized_shape] -> the same shape: weight (x - mean) / sqrt(var + eps) + bias, with
// weight and bias of shape normalized_shape, which start at 1 and 0.
class LayerNorm : public Module {
 public:
  explicit LayerNorm(const Shape& normalized_shape, const LayerNormOptions& options = {},
                     const ParamOptions& param_options = {});
  explicit LayerNorm(int64_t features, const LayerNormOptions& options = {},
                     const ParamOptions& param_options = {})
      : LayerNorm(Shape{features}, options, param_options) {}

  Param<Tensor> weight;
  Param<Tensor> bias;
  KILN_MODULE(LayerNorm, weight, bias)

  Tensor forward(TensorArg x) const {
    return functional::layer_norm(x, normalized_shape_, weight, bias, options_.eps);
  }
  void reset_parameters();
  std::string extra_repr() const override;

  const Shape& normalized_shape() const { return normalized_shape_; }
  const LayerNormOptions& options() const { return options_; }

 private:
  Shape normalized_shape_;
  LayerNormOptions options_;
};

}  // namespace kiln::nn
