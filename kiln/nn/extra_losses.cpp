#include "kiln/nn/extra_losses.h"

#include "kiln/core/error.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/nn/losses.h"
#include "kiln/tensor/nn/normalization.h"

namespace kiln::functional {
namespace {

Tensor reduced(const Tensor& losses, Reduction reduction) {
  if (reduction == Reduction::none) return losses;
  return reduction == Reduction::sum ? losses.sum() : losses.mean();
}

void check_same(const char* op, const Tensor& a, const Tensor& b) {
  if (a.shape() == b.shape()) return;
  throw_error<ShapeError>(op, ": expected tensors of one shape; got ", a.shape(), " and ",
                          b.shape());
}

}  // namespace

Tensor focal_loss(const Tensor& input, const Tensor& target, double alpha, double gamma,
                  Reduction reduction) {
  check_same("focal_loss", input, target);
  if (!(gamma >= 0.0) || !(alpha <= 1.0)) {
    throw_error<ValueError>("focal_loss: expected gamma >= 0 and alpha <= 1; got gamma ", gamma,
                            " and alpha ", alpha);
  }
  const Tensor losses = binary_cross_entropy_with_logits(input, target, {}, Reduction::none);
  const Tensor s = sigmoid(input);
  // 1 - p.
  const Tensor miss = s + target - s * target * 2.0;
  Tensor out = gamma == 0.0 ? losses : losses * miss.pow(gamma);
  if (alpha >= 0.0) out = out * (target * (2.0 * alpha - 1.0) + (1.0 - alpha));
  return reduced(out, reduction);
}

Tensor dice_loss(const Tensor& input, const Tensor& target, double smooth, Reduction reduction) {
  check_same("dice_loss", input, target);
  if (input.dim() == 0) {
    throw_error<ShapeError>("dice_loss: expected [N, ..]; got shape ", input.shape());
  }
  if (!(smooth >= 0.0)) {
    throw_error<ValueError>("dice_loss: smooth must not be negative; got ", smooth);
  }
  const auto sums = [](const Tensor& x) { return x.dim() == 1 ? x : x.flatten(1).sum(1); };
  const Tensor both = sums(input * target), all = sums(input) + sums(target);
  return reduced(1.0 - (both * 2.0 + smooth) / (all + smooth), reduction);
}

Tensor info_nce_loss(const Tensor& query, const Tensor& positive_key, const Tensor& negative_keys,
                     double temperature, Reduction reduction) {
  check_same("info_nce_loss", query, positive_key);
  if (query.dim() != 2 || (negative_keys.defined() &&
                           (negative_keys.dim() != 2 || negative_keys.size(1) != query.size(1)))) {
    throw_error<ShapeError>("info_nce_loss: expected [N, D], and negative_keys [M, D]; got ",
                            query.shape(), negative_keys.defined() ? " and " : "",
                            negative_keys.defined() ? negative_keys.shape() : Shape{});
  }
  if (!(temperature > 0.0)) {
    throw_error<ValueError>("info_nce_loss: temperature must be greater than 0; got ", temperature);
  }
  const Tensor q = normalize(query, 2.0, {1}), k = normalize(positive_key, 2.0, {1});
  CrossEntropyLossOptions options;
  options.reduction = reduction;
  const TensorOptions classes{.dtype = i64, .device = query.device()};
  if (!negative_keys.defined()) {
    return cross_entropy(q.matmul(k.t()) / temperature, arange(0, query.size(0), 1, classes),
                         options);
  }
  const Tensor positive = (q * k).sum(1, true);
  const Tensor negative = q.matmul(normalize(negative_keys, 2.0, {1}).t());
  return cross_entropy(cat({positive, negative}, 1) / temperature, zeros({query.size(0)}, classes),
                       options);
}

}  // namespace kiln::functional

namespace kiln::nn {

Tensor FocalLoss::forward(const Tensor& input, const Tensor& target) const {
  return functional::focal_loss(input, target, config_.alpha, config_.gamma, config_.reduction);
}
Tensor DiceLoss::forward(const Tensor& input, const Tensor& target) const {
  return functional::dice_loss(input, target, config_.smooth, config_.reduction);
}
Tensor InfoNCELoss::forward(const Tensor& query, const Tensor& positive_key,
                            const Tensor& negative_keys) const {
  return functional::info_nce_loss(query, positive_key, negative_keys, config_.temperature,
                                   config_.reduction);
}

KILN_MODULE_DEFINED(FocalLoss)
KILN_MODULE_DEFINED(DiceLoss)
KILN_MODULE_DEFINED(InfoNCELoss)

}  // namespace kiln::nn
