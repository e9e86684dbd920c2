// Linear: y = x W^T + b.
#pragma once

#include <string>

#include "kiln/nn/layer.h"
#include "kiln/nn/parametrization.h"
#include "kiln/tensor/ops.h"

namespace kiln::nn {

class Linear;
struct LinearConfig {
  Required<int64_t> in_features = {};
  Required<int64_t> out_features = {};
  bool bias = true;
  KILN_CONFIG(LinearConfig, in_features, out_features, bias)
  Linear init(const ParamOptions& options = {}) const;
};

// x [.., in_features] -> [.., out_features]. weight [out, in] and bias [out] start uniform within 1
// / sqrt(in).
class Linear : public Layer<LinearConfig> {
 public:
  Linear(int64_t in_features, int64_t out_features, bool bias = true,
         const ParamOptions& options = {})
      : Linear(LinearConfig{in_features, out_features, bias}, options) {}
  explicit Linear(LinearConfig config, const ParamOptions& options = {});

  Param<Tensor> weight;
  Param<Tensor> bias;  // undefined without one
  KILN_MODULE_DECLARED(Linear)

  Tensor forward(TensorArg x) const {
    if (weight.is_computed()) [[unlikely]]
      return detail::computed_linear(weight, x, bias);
    const Tensor& w = weight;  // drawn before the bias, as in parameters(), should both be lazy
    return functional::linear(x, w, bias);
  }
  // activation(x W^T + b) + residual in one go: layer(x, {.activation = Activation::gelu}).
  Tensor forward(TensorArg x, const functional::LinearOptions& options) const;
  // Draws the values again.
  void reset_parameters();
  std::string extra_repr() const override;

  int64_t in_features() const { return config_.in_features; }
  int64_t out_features() const { return config_.out_features; }
};

inline Linear LinearConfig::init(const ParamOptions& options) const {
  return Linear(*this, options);
}

}  // namespace kiln::nn
