// RNNTLoss: the loss of the RNN transducer as a module.
#pragma once

#include "kiln/nn/loss.h"
#include "kiln/tensor/nn/rnnt_loss.h"

namespace kiln::nn {

struct RNNTLossOptions {
  int64_t blank = -1;  // a negative one counts from the last class; Burn's default is 0
  Real clamp = -1.0;   // > 0: bounds the elements of the gradient
  functional::Reduction reduction = functional::Reduction::mean;
  bool fused_log_softmax = true;  // false: the input holds logarithms of probabilities
  KILN_CONFIG(RNNTLossOptions, doc(blank, "a negative one counts from the last class"),
              doc(clamp, "> 0: bounds the elements of the gradient"), reduction,
              doc(fused_log_softmax, "false: the input holds logarithms of probabilities"))
};

// logits [N, T, U + 1, C], targets [N, U], logit_lengths [N], target_lengths [N] -> [] or [N].
class RNNTLoss : public Layer<RNNTLossOptions> {
 public:
  explicit RNNTLoss(const RNNTLossOptions& options = {}) : Layer(options) {}
  KILN_MODULE_DECLARED(RNNTLoss)

  Tensor forward(const Tensor& logits, const Tensor& targets, const Tensor& logit_lengths,
                 const Tensor& target_lengths) const {
    return functional::rnnt_loss(logits, targets, logit_lengths, target_lengths, config_.blank,
                                 config_.clamp, config_.reduction, config_.fused_log_softmax);
  }
};

}  // namespace kiln::nn
