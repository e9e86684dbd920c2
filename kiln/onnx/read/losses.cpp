// Losses.
#include <cmath>
#include <limits>

#include "kiln/onnx/read/call.h"

namespace kiln::onnx {

namespace {

// Of log probabilities [N, C, ..] and classes [N, ..], with a weight for each class.
Tensor negative_log_likelihood(Call& c, const Tensor& logs, const Tensor& target,
                               const Tensor& weight) {
  if (logs.dim() < 2 || target.dim() != logs.dim() - 1) {
    c.fail("expected [N, C, ..] and classes [N, ..]");
  }
  const std::string reduction = c.s("reduction", "mean");
  const Tensor classes = target.to(DType::i64);
  Tensor counts = ones(classes.shape(), {.dtype = DType::boolean});
  if (c.has("ignore_index")) counts = classes.ne(c.i("ignore_index", 0));
  const Tensor index = kiln::where(counts, classes, zeros_like(classes));
  Tensor w = counts.to(logs.dtype());
  if (weight.defined()) {
    const Tensor each = weight.index_select(0, index.reshape({index.numel()}));
    w = w.mul(each.reshape(index.shape()));
  }
  Tensor loss = logs.gather(1, index.unsqueeze(1)).squeeze(1).neg().mul(w);
  if (reduction == "none") return loss;
  if (reduction == "sum") return loss.sum();
  return loss.sum().div(w.sum());
}

void nll_loss(Call& c) { c.out(negative_log_likelihood(c, c.in(0), c.in(1), c.maybe(2))); }
void softmax_cross_entropy(Call& c) {
  if (c.in(0).dim() < 2) c.fail("expected logits [N, C, ..]");
  const Tensor logs = c.in(0).log_softmax(1);
  c.out(negative_log_likelihood(c, logs, c.in(1), c.maybe(2)), 0);
  c.out(logs, 1);
}

constexpr Operator kLossesOperators[] = {
    {"NegativeLogLikelihoodLoss", nll_loss},
    {"SoftmaxCrossEntropyLoss", softmax_cross_entropy},
};

}  // namespace

std::span<const Operator> loss_operators() { return kLossesOperators; }

}  // namespace kiln::onnx
