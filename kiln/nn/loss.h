// Losses as modules; functional::cross_entropy and functional::mse_loss are the same without one.
#pragma once

#include <utility>

#include "kiln/nn/layer.h"
#include "kiln/nn/real.h"
#include "kiln/tensor/nn/losses.h"
#include "kiln/tensor/ops.h"

namespace kiln::nn {

struct CrossEntropyLossConfig {
  Tensor weight = {};           // [C] or undefined
  int64_t ignore_index = -100;  // class indices only
  kiln::functional::Reduction reduction = kiln::functional::Reduction::mean;
  Real label_smoothing = 0.0;
  KILN_CONFIG(CrossEntropyLossConfig, weight, ignore_index, reduction, label_smoothing)
};

// Softmax cross-entropy of logits [N, C] (or [C], or [N, C, d1, ..]) with class indices [N] (or [],
// or [N, d1, ..]) or with probabilities in the shape of the logits.
class CrossEntropyLoss : public Layer<CrossEntropyLossConfig> {
 public:
  using Options = CrossEntropyLossConfig;
  explicit CrossEntropyLoss(Options options = {});

  Buffer weight;  // [C], a factor for each class, or undefined
  KILN_MODULE_DECLARED(CrossEntropyLoss)

  Tensor forward(TensorArg logits, const Tensor& target) const;
};

struct MSELossConfig {
  kiln::functional::Reduction reduction = kiln::functional::Reduction::mean;
  KILN_CONFIG(MSELossConfig, reduction)
};

// The mean (or sum, or each) of (input - target)^2; both have the same shape.
class MSELoss : public Layer<MSELossConfig> {
 public:
  using Reduction = kiln::functional::Reduction;
  explicit MSELoss(MSELossConfig config = {}) : Layer(config) {}
  KILN_MODULE_DECLARED(MSELoss)

  Tensor forward(TensorArg input, const Tensor& target) const {
    return kiln::functional::mse_loss(input, target, config_.reduction);
  }
};

}  // namespace kiln::nn
