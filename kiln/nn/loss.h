// Losses as modules; functional::cross_entropy and functional::mse_loss are the same without one.
#pragma once

#include <utility>

#include "kiln/nn/module.h"
#include "kiln/tensor/ops.h"

namespace kiln::nn {

// Softmax cross-entropy of logits [N, C] (or [C], or [N, C, d1, ..]) with class indices [N] (or [],
// or [N, d1, ..]) or with probabilities in the shape of the logits.
class CrossEntropyLoss : public Module {
 public:
  using Options = kiln::functional::CrossEntropyLossOptions;
  explicit CrossEntropyLoss(Options options = {});

  Buffer weight;  // [C], a factor for each class, or undefined
  KILN_MODULE(CrossEntropyLoss, weight)

  Tensor forward(TensorArg logits, const Tensor& target) const;

 private:
  Options options_;
};

// The mean (or sum, or each) of (input - target)^2; both have the same shape.
class MSELoss : public Module {
 public:
  using Reduction = kiln::functional::Reduction;
  explicit MSELoss(Reduction reduction = Reduction::mean) : reduction_(reduction) {}
  KILN_MODULE(MSELoss)

  Tensor forward(TensorArg input, const Tensor& target) const {
    return kiln::functional::mse_loss(input, target, reduction_);
  }

 private:
  Reduction reduction_;
};

}  // namespace kiln::nn
