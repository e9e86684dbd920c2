#include "kiln/nn/loss.h"

namespace kiln::nn {

CrossEntropyLoss::CrossEntropyLoss(Options options)
    : weight(std::move(options.weight)), options_(std::move(options)) {
  options_.weight = {};
}

Tensor CrossEntropyLoss::forward(TensorArg logits, const Tensor& target) const {
  if (!weight.defined()) return kiln::functional::cross_entropy(logits, target, options_);
  Options options = options_;
  options.weight = weight;
  return kiln::functional::cross_entropy(logits, target, options);
}

}  // namespace kiln::nn
