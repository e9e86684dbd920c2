#include "kiln/nn/loss_layers.h"

#include "kiln/core/error.h"
#include "kiln/nn/repr.h"
#include "kiln/tensor/nn/ctc_loss.h"
#include "kiln/tensor/nn/losses.h"

namespace kiln::nn {

namespace F = functional;

namespace {

void check_margin(const char* name, double margin) {
  if (!(margin > 0.0)) {
    throw_error<ValueError>(name, ": margin must be greater than 0; got ", detail::repr(margin));
  }
}

}  // namespace

// ---- Constructors

NLLLoss::NLLLoss(NLLLossConfig config)
    : Layer(std::move(config)), weight(std::exchange(config_.weight, {})) {}
BCELoss::BCELoss(WeightedLossConfig config)
    : Layer(std::move(config)), weight(std::exchange(config_.weight, {})) {}
BCEWithLogitsLoss::BCEWithLogitsLoss(BCEWithLogitsLossConfig config)
    : Layer(std::move(config)),
      weight(std::exchange(config_.weight, {})),
      pos_weight(std::exchange(config_.pos_weight, {})) {}
MultiLabelSoftMarginLoss::MultiLabelSoftMarginLoss(WeightedLossConfig config)
    : Layer(std::move(config)), weight(std::exchange(config_.weight, {})) {}

MultiMarginLoss::MultiMarginLoss(MultiMarginLossConfig config)
    : Layer(std::move(config)), weight(std::exchange(config_.weight, {})) {
  if (config_.p != 1 && config_.p != 2) {
    throw_error<ValueError>("MultiMarginLoss: p must be 1 or 2; got ", config_.p);
  }
  if (weight.defined() && weight->dim() != 1) {
    throw_error<ValueError>("MultiMarginLoss: expected a weight of 1 dim; got shape ",
                            weight->shape());
  }
}

TripletMarginLoss::TripletMarginLoss(TripletMarginLossConfig config) : Layer(config) {
  check_margin("TripletMarginLoss", config_.margin);
}

TripletMarginWithDistanceLoss::TripletMarginWithDistanceLoss(Options options)
    : options_(std::move(options)) {
  check_margin("TripletMarginWithDistanceLoss", options_.margin);
}

// ---- The arithmetic

Tensor L1Loss::forward(const Tensor& input, const Tensor& target) const {
  return F::l1_loss(input, target, config_.reduction);
}
Tensor SmoothL1Loss::forward(const Tensor& input, const Tensor& target) const {
  return F::smooth_l1_loss(input, target, config_.reduction, config_.beta);
}
Tensor HuberLoss::forward(const Tensor& input, const Tensor& target) const {
  return F::huber_loss(input, target, config_.reduction, config_.delta);
}
Tensor NLLLoss::forward(const Tensor& input, const Tensor& target) const {
  return F::nll_loss(input, target, weight, config_.ignore_index, config_.reduction);
}
Tensor BCELoss::forward(const Tensor& input, const Tensor& target) const {
  return F::binary_cross_entropy(input, target, weight, config_.reduction);
}
Tensor BCEWithLogitsLoss::forward(const Tensor& input, const Tensor& target) const {
  return F::binary_cross_entropy_with_logits(input, target, weight, config_.reduction, pos_weight);
}
Tensor KLDivLoss::forward(const Tensor& input, const Tensor& target) const {
  return F::kl_div(input, target, config_.reduction, config_.log_target);
}
Tensor PoissonNLLLoss::forward(const Tensor& log_input, const Tensor& target) const {
  return F::poisson_nll_loss(log_input, target, config_.log_input, config_.full, config_.eps,
                             config_.reduction);
}
Tensor HingeEmbeddingLoss::forward(const Tensor& input, const Tensor& target) const {
  return F::hinge_embedding_loss(input, target, config_.margin, config_.reduction);
}
Tensor MultiMarginLoss::forward(const Tensor& input, const Tensor& target) const {
  return F::multi_margin_loss(input, target, config_.p, config_.margin, weight, config_.reduction);
}
Tensor MultiLabelMarginLoss::forward(const Tensor& input, const Tensor& target) const {
  return F::multilabel_margin_loss(input, target, config_.reduction);
}
Tensor MultiLabelSoftMarginLoss::forward(const Tensor& input, const Tensor& target) const {
  return F::multilabel_soft_margin_loss(input, target, weight, config_.reduction);
}
Tensor SoftMarginLoss::forward(const Tensor& input, const Tensor& target) const {
  return F::soft_margin_loss(input, target, config_.reduction);
}
Tensor GaussianNLLLoss::forward(const Tensor& input, const Tensor& target,
                                const Tensor& var) const {
  return F::gaussian_nll_loss(input, target, var, config_.full, config_.eps, config_.reduction);
}
Tensor MarginRankingLoss::forward(const Tensor& input1, const Tensor& input2,
                                  const Tensor& target) const {
  return F::margin_ranking_loss(input1, input2, target, config_.margin, config_.reduction);
}
Tensor CosineEmbeddingLoss::forward(const Tensor& input1, const Tensor& input2,
                                    const Tensor& target) const {
  return F::cosine_embedding_loss(input1, input2, target, config_.margin, config_.reduction);
}
Tensor TripletMarginLoss::forward(const Tensor& anchor, const Tensor& positive,
                                  const Tensor& negative) const {
  return F::triplet_margin_loss(anchor, positive, negative, config_.margin, config_.p, config_.eps,
                                config_.swap, config_.reduction);
}
Tensor TripletMarginWithDistanceLoss::forward(const Tensor& anchor, const Tensor& positive,
                                              const Tensor& negative) const {
  return F::triplet_margin_with_distance_loss(anchor, positive, negative,
                                              options_.distance_function, options_.margin,
                                              options_.swap, options_.reduction);
}
Tensor CTCLoss::forward(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths,
                        const Tensor& target_lengths) const {
  return F::ctc_loss(log_probs, targets, input_lengths, target_lengths, config_.blank,
                     config_.reduction, config_.zero_infinity);
}

KILN_MODULE_DEFINED(L1Loss)
KILN_MODULE_DEFINED(SmoothL1Loss)
KILN_MODULE_DEFINED(HuberLoss)
KILN_MODULE_DEFINED(NLLLoss, weight)
KILN_MODULE_DEFINED(BCELoss, weight)
KILN_MODULE_DEFINED(BCEWithLogitsLoss, weight, pos_weight)
KILN_MODULE_DEFINED(KLDivLoss)
KILN_MODULE_DEFINED(PoissonNLLLoss)
KILN_MODULE_DEFINED(HingeEmbeddingLoss)
KILN_MODULE_DEFINED(MultiMarginLoss, weight)
KILN_MODULE_DEFINED(MultiLabelMarginLoss)
KILN_MODULE_DEFINED(MultiLabelSoftMarginLoss, weight)
KILN_MODULE_DEFINED(SoftMarginLoss)
KILN_MODULE_DEFINED(GaussianNLLLoss)
KILN_MODULE_DEFINED(MarginRankingLoss)
KILN_MODULE_DEFINED(CosineEmbeddingLoss)
KILN_MODULE_DEFINED(TripletMarginLoss)
KILN_MODULE_DEFINED(TripletMarginWithDistanceLoss)
KILN_MODULE_DEFINED(CTCLoss)

}  // namespace kiln::nn
