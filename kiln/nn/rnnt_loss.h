// RNNTLoss: the loss of the RNN transducer as a module.
#pragma once

#include "kiln/nn/module.h"
#include "kiln/tensor/rnnt_loss.h"

namespace kiln::nn {

struct RNNTLossOptions {
  int64_t blank = -1;   // a negative one counts from the last class; Burn's default is 0
  double clamp = -1.0;  // > 0: bounds the elements of the gradient
  functional::Reduction reduction = functional::Reduction::mean;
  bool fused_log_softmax = true;  // false: the input holds logarithms of probabilities
};

// logits [N, T, U + 1, C], targets [N, U], logit_lengths [N], target_lengths [N] -> [] or [N].
class RNNTLoss : public Module {
 public:
  explicit RNNTLoss(const RNNTLossOptions& options = {}) : options_(options) {}
  KILN_MODULE(RNNTLoss)

  Tensor forward(const Tensor& logits, const Tensor& targets, const Tensor& logit_lengths,
                 const Tensor& target_lengths) const {
    return functional::rnnt_loss(logits, targets, logit_lengths, target_lengths, options_.blank,
                                 options_.clamp, options_.reduction, options_.fused_log_softmax);
  }

 private:
  RNNTLossOptions options_;
};

}  // namespace kiln::nn
