// Bilinear: y_o = sum_ij x1_i W_oij x2_j + b_o.
#pragma once

#include <string>

#include "kiln/nn/layer.h"
#include "kiln/tensor/tensor.h"

namespace kiln::nn {

struct BilinearConfig {
  Required<int64_t> in1_features = {};
  Required<int64_t> in2_features = {};
  Required<int64_t> out_features = {};
  bool bias = true;
  KILN_CONFIG(BilinearConfig, in1_features, in2_features, out_features, bias)
};

// x1 [.., in1_features], x2 [.., in2_features] -> [.., out_features]. weight [out, in1, in2] and
// bias [out] start uniform within 1 / sqrt(in1).
class Bilinear : public Layer<BilinearConfig> {
 public:
  explicit Bilinear(BilinearConfig config, const ParamOptions& options = {});

  Param<Tensor> weight;
  Param<Tensor> bias;
  KILN_MODULE_DECLARED(Bilinear)

  Tensor forward(const Tensor& x1, const Tensor& x2) const;
  void reset_parameters();
  std::string extra_repr() const override;

 private:
  std::function<void(Tensor&)> fill() const;
};

}  // namespace kiln::nn
