// Threshold: replaces what does not exceed a threshold.
#pragma once

#include <string>

#include "kiln/nn/layer.h"
#include "kiln/tensor/ops.h"

namespace kiln::nn {

struct ThresholdConfig {
  Required<Scalar> threshold = {};
  Required<Scalar> value = {};
  bool inplace = false;
  KILN_CONFIG(ThresholdConfig, threshold, value, inplace)
};

// x where x > threshold, else value; NaN stays. Integers are legal. With `inplace`, x itself is
// changed and returned.
class Threshold : public Layer<ThresholdConfig> {
 public:
  Threshold(Scalar threshold, Scalar value, bool inplace = false)
      : Threshold(ThresholdConfig{threshold, value, inplace}) {}
  explicit Threshold(ThresholdConfig config) : Layer(config) {}
  KILN_MODULE_DECLARED(Threshold)

  Tensor forward(const Tensor& x) const;
  std::string extra_repr() const override;
};

}  // namespace kiln::nn
