#include "kiln/nn/loss.h"

#include "kiln/nn/rnnt_loss.h"

namespace kiln::nn {

CrossEntropyLoss::CrossEntropyLoss(Options options)
    : Layer(std::move(options)), weight(std::exchange(config_.weight, {})) {}

Tensor CrossEntropyLoss::forward(TensorArg logits, const Tensor& target) const {
  return kiln::functional::cross_entropy(logits, target,
                                         {.weight = weight,
                                          .ignore_index = config_.ignore_index,
                                          .reduction = config_.reduction,
                                          .label_smoothing = config_.label_smoothing});
}

KILN_MODULE_DEFINED(CrossEntropyLoss, weight)
KILN_MODULE_DEFINED(MSELoss)
KILN_MODULE_DEFINED(RNNTLoss)

}  // namespace kiln::nn
