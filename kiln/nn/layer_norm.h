// LayerNorm: normalizes each row over its last dims (Ba, Kiros & Hinton, 2016).
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "kiln/nn/layer.h"
#include "kiln/nn/real.h"
#include "kiln/tensor/ops.h"

namespace kiln::nn {

struct LayerNormOptions {
  Real eps = 1e-5;
  bool elementwise_affine = true;  // has weight and bias
  bool bias = true;                // with elementwise_affine
  KILN_CONFIG(LayerNormOptions, eps, doc(elementwise_affine, "has weight and bias"), bias)
};

class LayerNorm;
struct LayerNormConfig {
  Required<std::vector<int64_t>> normalized_shape = {};
  LayerNormOptions options = {};
  KILN_CONFIG(LayerNormConfig, doc(normalized_shape, "the sizes of the last dims"), options)
  LayerNorm init(const ParamOptions& param_options = {}) const;
};

// x [.., normalized_shape] -> the same shape: weight (x - mean) / sqrt(var + eps) + bias, with
// weight and bias of shape normalized_shape, which start at 1 and 0.
class LayerNorm : public Layer<LayerNormConfig> {
 public:
  // Templates, so that braces that name an option are the configuration's.
  template <class Sizes>
    requires std::same_as<Sizes, Shape> || std::same_as<Sizes, std::vector<int64_t>>
  explicit LayerNorm(const Sizes& normalized_shape, const LayerNormOptions& options = {},
                     const ParamOptions& param_options = {})
      : LayerNorm(
            LayerNormConfig{std::vector<int64_t>(normalized_shape.begin(), normalized_shape.end()),
                            options},
            param_options) {}
  template <std::integral T, size_t kCount>
  explicit LayerNorm(const T (&normalized_shape)[kCount], const LayerNormOptions& options = {},
                     const ParamOptions& param_options = {})
      : LayerNorm(std::vector<int64_t>(normalized_shape, normalized_shape + kCount), options,
                  param_options) {}
  explicit LayerNorm(int64_t features, const LayerNormOptions& options = {},
                     const ParamOptions& param_options = {})
      : LayerNorm(Shape{features}, options, param_options) {}
  explicit LayerNorm(LayerNormConfig config, const ParamOptions& param_options = {});

  Param<Tensor> weight;
  Param<Tensor> bias;
  KILN_MODULE_DECLARED(LayerNorm)

  Tensor forward(TensorArg x) const {
    return functional::layer_norm(x, normalized_shape(), weight, bias, options().eps);
  }
  void reset_parameters();
  std::string extra_repr() const override;

  Shape normalized_shape() const;
  const LayerNormOptions& options() const { return config_.options; }
};

inline LayerNorm LayerNormConfig::init(const ParamOptions& param_options) const {
  return LayerNorm(*this, param_options);
}

}  // namespace kiln::nn
