#include "kiln/tensor/nn/rnnt_loss.h"

#include "kiln/tensor/nn/functional_support.h"
#include "kiln/tensor/nn/sequence_targets.h"

namespace kiln::functional {

using namespace detail;

Tensor rnnt_loss(const Tensor& logits, const Tensor& targets, const Tensor& logit_lengths,
                 const Tensor& target_lengths, int64_t blank, double clamp, Reduction reduction,
                 bool fused_log_softmax) {
  constexpr const char* op = "rnnt_loss";
  require_floating(op, logits);
  if (logits.dim() != 4 || logits.size(2) < 1 || logits.size(3) < 1) {
    throw_error<ShapeError>(op, ": expected logits [N, T, U + 1, C]; got ", logits.shape());
  }
  const int64_t batch = logits.size(0), columns = logits.size(2), classes = logits.size(3);
  const int64_t none = blank < 0 ? blank + classes : blank;
  if (none < 0 || none >= classes) {
    throw_error<ValueError>(op, ": blank is no class; got ", blank, "; expected ", -classes,
                            " <= blank < ", classes);
  }
  const Tensor x = logits.to(wide_dtype(logits.dtype()));
  const SequenceOp of{op, x, batch};
  const Tensor ends = sequence_lengths(of, logit_lengths, 1, logits.size(1), "logit_lengths");
  const Tensor sizes = sequence_lengths(of, target_lengths, 0, columns - 1, "target_lengths");
  Tensor labels = wrap(index_value(op, targets));
  if (!(labels.shape() == Shape{batch, columns - 1})) {
    throw_error<ShapeError>(op, ": the targets do not fit; got ", targets.shape(),
                            "; expected [N, U] = [", batch, ", ", columns - 1, "]");
  }
  check_labels(op, labels, sizes, classes, none);
  labels = labels.to(x.device());
  const Tensor loss = wrap(AD::float_rnnt_loss(value_of(op, x), value_of(op, labels).inner,
                                               value_of(op, ends).inner, value_of(op, sizes).inner,
                                               none, clamp, fused_log_softmax));
  return reduced_loss(loss, reduction).to(logits.dtype());
}

}  // namespace kiln::functional
