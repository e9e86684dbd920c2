// Loss functions. cross_entropy is in ops.h, ctc_loss in ctc_loss.h.
//
// Inputs and targets are floating point tensors that broadcast to one shape unless it says
// otherwise; the result is the mean or the sum of the losses, or with Reduction::none the losses
// themselves. A reduction may also be its name, "sum". Throws ShapeError, DTypeError, ValueError.
#pragma once

#include <functional>
#include <optional>

#include "kiln/tensor/ops.h"

namespace kiln::functional {

// |x - y|.
Tensor l1_loss(const Tensor& input, const Tensor& target, Reduction reduction = Reduction::mean,
               const Tensor& weight = {});
// (x - y)^2 weight.
Tensor mse_loss(const Tensor& input, const Tensor& target, Reduction reduction = Reduction::mean,
                const Tensor& weight = {});
// d^2 / (2 beta) where d = |x - y| < beta, else d - beta / 2 (Girshick, 2015).
Tensor smooth_l1_loss(const Tensor& input, const Tensor& target,
                      Reduction reduction = Reduction::mean, double beta = 1.0);
// d^2 / 2 where d = |x - y| <= delta, else delta (d - delta / 2) (Huber, 1964).
Tensor huber_loss(const Tensor& input, const Tensor& target, Reduction reduction = Reduction::mean,
                  double delta = 1.0, const Tensor& weight = {});
// -weight[y] x[y] of log-probabilities x [N, C], [C] or [N, C, d1, ..] and classes y without C; the
// mean is over the weights. Entries whose class is ignore_index count for nothing.
Tensor nll_loss(const Tensor& input, const Tensor& target, const Tensor& weight = {},
                int64_t ignore_index = -100, Reduction reduction = Reduction::mean);
// -weight (y log x + (1 - y) log(1 - x)) of probabilities x, with logarithms of at least -100. x
// and y have one shape. Throws ValueError for x outside [0, 1].
Tensor binary_cross_entropy(const Tensor& input, const Tensor& target, const Tensor& weight = {},
                            Reduction reduction = Reduction::mean);
// The same of logits: -weight (pos_weight y log s(x) + (1 - y) log(1 - s(x))), s the sigmoid.
Tensor binary_cross_entropy_with_logits(const Tensor& input, const Tensor& target,
                                        const Tensor& weight = {},
                                        Reduction reduction = Reduction::mean,
                                        const Tensor& pos_weight = {});
// What becomes of the parts of kl_div: a Reduction, or batchmean.
class KLDivReduction {
  KILN_CHOICE(KLDivReduction, none, mean, sum, batchmean)
  constexpr KLDivReduction(Reduction::Value value) : value_(static_cast<Value>(value)) {}
  constexpr KLDivReduction(Reduction reduction)
      : KLDivReduction(static_cast<Reduction::Value>(reduction)) {}
};
// y (log y - x) of log-probabilities x, or with log_target e^y (y - x). `batchmean` divides the sum
// by the first size, as the divergence is defined.
Tensor kl_div(const Tensor& input, const Tensor& target,
              KLDivReduction reduction = KLDivReduction::mean, bool log_target = false);
Tensor kl_div_batchmean(const Tensor& input, const Tensor& target, bool log_target = false);
// e^x - y x, or without log_input x - y log(x + eps); `full` adds Stirling's term for y > 1.
Tensor poisson_nll_loss(const Tensor& input, const Tensor& target, bool log_input = true,
                        bool full = false, double eps = 1e-8,
                        Reduction reduction = Reduction::mean);
// (log var + (x - y)^2 / var) / 2 with var at least eps; `full` adds log(2 pi) / 2. var has x's
// shape, or 1 in its last dim, or lacks it. Throws ValueError for a negative var.
Tensor gaussian_nll_loss(const Tensor& input, const Tensor& target, const Tensor& var,
                         bool full = false, double eps = 1e-6,
                         Reduction reduction = Reduction::mean);
// x where y = 1, max(0, margin - x) where y = -1.
Tensor hinge_embedding_loss(const Tensor& input, const Tensor& target, double margin = 1.0,
                            Reduction reduction = Reduction::mean);
// max(0, -y (a - b) + margin).
Tensor margin_ranking_loss(const Tensor& input1, const Tensor& input2, const Tensor& target,
                           double margin = 0.0, Reduction reduction = Reduction::mean);
// sum over i != y of weight[y] max(0, margin - x[y] + x[i])^p / C: x [N, C] or [C], y [N] or [].
Tensor multi_margin_loss(const Tensor& input, const Tensor& target, int64_t p = 1,
                         double margin = 1.0, const Tensor& weight = {},
                         Reduction reduction = Reduction::mean);
// sum over targets j and all other i of max(0, 1 - x[j] + x[i]) / C: x [N, C] or [C]; the targets
// of a row (i64, x's shape) end at the first -1.
Tensor multilabel_margin_loss(const Tensor& input, const Tensor& target,
                              Reduction reduction = Reduction::mean);
// The mean over classes (the last dim) of binary_cross_entropy_with_logits times weight [C].
Tensor multilabel_soft_margin_loss(const Tensor& input, const Tensor& target,
                                   const Tensor& weight = {},
                                   Reduction reduction = Reduction::mean);
// log(1 + e^(-y x)).
Tensor soft_margin_loss(const Tensor& input, const Tensor& target,
                        Reduction reduction = Reduction::mean);
// max(0, d(a, p) - d(a, n) + margin) of vectors [N, D] or [D], d the p-norm of the difference; with
// `swap` also d(p, n), when it is less, stands for d(a, n).
Tensor triplet_margin_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative,
                           double margin = 1.0, double p = 2.0, double eps = 1e-6,
                           bool swap = false, Reduction reduction = Reduction::mean);
// The same with another distance; Euclidean when it is empty.
Tensor triplet_margin_with_distance_loss(
    const Tensor& anchor, const Tensor& positive, const Tensor& negative,
    const std::function<Tensor(const Tensor&, const Tensor&)>& distance_function = {},
    double margin = 1.0, bool swap = false, Reduction reduction = Reduction::mean);
// 1 - cos(a, b) where y = 1, max(0, cos(a, b) - margin) where y = -1: a and b [N, D] or [D], y [N]
// or [].
Tensor cosine_embedding_loss(const Tensor& input1, const Tensor& input2, const Tensor& target,
                             double margin = 0.0, Reduction reduction = Reduction::mean);

// a b / (max(|a|, eps) max(|b|, eps)) of the vectors along dim.
Tensor cosine_similarity(const Tensor& x1, const Tensor& x2, int64_t dim = 1, double eps = 1e-8);
// |a - b + eps|_p of the vectors along the last dim.
Tensor pairwise_distance(const Tensor& x1, const Tensor& x2, double p = 2.0, double eps = 1e-6,
                         bool keepdim = false);

}  // namespace kiln::functional
