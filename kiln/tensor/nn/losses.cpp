#include "kiln/tensor/nn/losses.h"

#include <cmath>
#include <numbers>

#include "kiln/backend/batched/batched_tensor.h"
#include "kiln/core/warning.h"
#include "kiln/tensor/amp/op_lists.h"
#include "kiln/tensor/complex/complex_impl.h"
#include "kiln/tensor/elementwise/function_call.h"
#include "kiln/tensor/nn/activations.h"
#include "kiln/tensor/nn/functional_support.h"
#include "kiln/tensor/value_check.h"

namespace kiln::functional {

using namespace detail;

namespace {

// Throws DTypeError, DeviceError, ShapeError unless both are there and broadcast.
void check_pair(const char* op, const Tensor& input, const Tensor& target) {
  require_floating(op, input);
  const Value& x = value_of(op, input);
  const Value& y = value_of(op, target);
  check_same_device(op, x, y);
  broadcast_shapes(op, shape_of(x), shape_of(y));
}

// The same for losses of which the sizes should be equal: a prediction [n, 1] and a target [n] make
// n^2 differences, which is hardly ever meant.
void check_sizes(const char* op, const Tensor& input, const Tensor& target) {
  check_pair(op, input, target);
  if (input.shape() == target.shape()) return;
  warn(concat(op, ": Using a target size (", target.shape(),
              ") that is different to the input size (", input.shape(),
              "): the loss is of both broadcast, which is hardly ever meant. Give both the same "
              "size."));
}

void check_same_shape(const char* op, const Tensor& input, const Tensor& target) {
  check_pair(op, input, target);
  if (!(input.shape() == target.shape())) {
    throw_error<ShapeError>(op, ": input and target must have one shape; got ", input.shape(),
                            " and ", target.shape());
  }
}

// The losses times their weights; a mean is over the weights then.
Tensor weighted(const char* op, const Tensor& loss, const Tensor& weight, Reduction reduction) {
  if (!weight.defined()) return reduced_loss(loss, reduction);
  if (!(weight.shape() == loss.shape())) {
    throw_error<ShapeError>(op, ": the weight must have the input's shape; got ", weight.shape(),
                            "; expected ", loss.shape());
  }
  const Tensor scaled = loss * weight;
  return reduction == Reduction::mean ? scaled.sum() / weight.sum()
                                      : reduced_loss(scaled, reduction);
}

// f of both and its mean or sum, of which nothing is stored in between.
Tensor function_loss(const char* op, const Tensor& input, const Tensor& target,
                     const BinaryFunction& f, Reduction reduction, const Tensor& weight = {}) {
  if (reduction == Reduction::none || weight.defined()) {
    return weighted(op, binary_function(op, input, target, f), weight, reduction);
  }
  const Promoted p(op, input, target, true);
  const Shape shape = broadcast_shapes(op, input.shape(), target.shape());
  const auto divisor = reduction == Reduction::mean ? static_cast<double>(shape.numel()) : 1.0;
  return wrap(AD::float_binary_sum(p.left(), p.right(), f, divisor));
}

}  // namespace

Tensor l1_loss(const Tensor& input, const Tensor& target, Reduction reduction,
               const Tensor& weight) {
  KILN_AUTOCAST(f32, l1_loss, input, target, reduction, weight);
  if (has_complex(input, target)) {
    return weighted("l1_loss", (input - target).abs(), weight, reduction);
  }
  check_sizes("l1_loss", input, target);
  return function_loss("l1_loss", input, target, BinaryFunction::Type::absolute_difference,
                       reduction, weight);
}

Tensor mse_loss(const Tensor& input, const Tensor& target, Reduction reduction,
                const Tensor& weight) {
  KILN_AUTOCAST(f32, mse_loss, input, target, reduction, weight);
  check_sizes("mse_loss", input, target);
  return function_loss("mse_loss", input, target, BinaryFunction::Type::squared_difference,
                       reduction, weight);
}

Tensor smooth_l1_loss(const Tensor& input, const Tensor& target, Reduction reduction, double beta) {
  KILN_AUTOCAST(f32, smooth_l1_loss, input, target, reduction, beta);
  check_sizes("smooth_l1_loss", input, target);
  if (!(beta >= 0.0)) {
    throw_error<ValueError>("smooth_l1_loss: beta must not be negative; got ", beta);
  }
  // d^2 / 2 where |d| <= beta, else beta (|d| - beta / 2), over beta.
  const BinaryFunction f = beta == 0.0 ? BinaryFunction(BinaryFunction::Type::absolute_difference)
                                       : BinaryFunction(BinaryFunction::Type::huber, beta, beta);
  return function_loss("smooth_l1_loss", input, target, f, reduction);
}

Tensor huber_loss(const Tensor& input, const Tensor& target, Reduction reduction, double delta,
                  const Tensor& weight) {
  KILN_AUTOCAST(f32, huber_loss, input, target, reduction, delta, weight);
  check_sizes("huber_loss", input, target);
  if (!(delta > 0.0)) throw_error<ValueError>("huber_loss: expected delta > 0; got ", delta);
  return function_loss("huber_loss", input, target, {BinaryFunction::Type::huber, delta, 1.0},
                       reduction, weight);
}

Tensor binary_cross_entropy(const Tensor& input, const Tensor& target, const Tensor& weight,
                            Reduction reduction) {
  KILN_AUTOCAST(f32, binary_cross_entropy, input, target, weight, reduction);
  constexpr const char* op = "binary_cross_entropy";
  check_same_shape(op, input, target);
  const Tensor x = input.detach();
  // Of a batch of vmap the values cannot be told, and those of a graph differ in each replay.
  bool may_be_zero = true, may_be_one = true;
  const auto range_of = [op](const Tensor& p) {
    const double low = p.min().item(), high = p.max().item();
    if (!(low >= 0.0 && high <= 1.0)) {
      throw_error<ValueError>(op, ": expected probabilities in [0, 1]; got ", low, " to ", high);
    }
    return std::pair(low, high);
  };
  const bool known = x.numel() > 0 && batched::as_batched(value_of(op, x).inner) == nullptr;
  if (known && !check_again(op, x, range_of)) {
    const auto [low, high] = range_of(x);
    may_be_zero = low == 0.0;
    may_be_one = high == 1.0;
  }
  // Where the bound of the logarithm holds its gradient is 0, also at 0 itself.
  const auto log_of = [](const Tensor& p, bool meets_zero) {
    if (!meets_zero) return kiln::log(p).clamp(-100.0, {});
    const Tensor zero = p.eq(0.0);
    return kiln::log(p.masked_fill(zero, 1.0)).masked_fill(zero, -100.0).clamp(-100.0, {});
  };
  const Tensor loss =
      (target - 1.0) * log_of(1.0 - input, may_be_one) - target * log_of(input, may_be_zero);
  return reduced_loss(weight.defined() ? loss * weight : loss, reduction);
}

Tensor binary_cross_entropy_with_logits(const Tensor& input, const Tensor& target,
                                        const Tensor& weight, Reduction reduction,
                                        const Tensor& pos_weight) {
  KILN_AUTOCAST(f32, binary_cross_entropy_with_logits, input, target, weight, reduction,
                pos_weight);
  constexpr const char* op = "binary_cross_entropy_with_logits";
  check_same_shape(op, input, target);
  if (!pos_weight.defined() && !weight.defined()) {
    return function_loss(op, input, target, BinaryFunction::Type::bce_with_logits, reduction);
  }
  Tensor loss;
  if (pos_weight.defined()) {
    const Tensor positive = (pos_weight - 1.0) * target + 1.0;
    loss = (1.0 - target) * input - positive * logsigmoid(input);
  } else {
    loss = binary_function(op, input, target, BinaryFunction::Type::bce_with_logits);
  }
  return reduced_loss(weight.defined() ? loss * weight : loss, reduction);
}

namespace {

Tensor divergence(const Tensor& input, const Tensor& target, bool log_target) {
  check_pair("kl_div", input, target);
  if (log_target) return kiln::exp(target) * (target - input);
  // y log y, which is 0 at 0: there the logarithm of 1 stands for it.
  const Tensor none = target.eq(0.0);
  return target * kiln::log(target.masked_fill(none, 1.0)) - target * input;
}

}  // namespace

Tensor kl_div(const Tensor& input, const Tensor& target, KLDivReduction reduction,
              bool log_target) {
  if (reduction == KLDivReduction::batchmean) return kl_div_batchmean(input, target, log_target);
  KILN_AUTOCAST(f32, kl_div, input, target, reduction, log_target);
  const auto of_all = static_cast<Reduction::Value>(static_cast<KLDivReduction::Value>(reduction));
  return reduced_loss(divergence(input, target, log_target), of_all);
}

Tensor kl_div_batchmean(const Tensor& input, const Tensor& target, bool log_target) {
  KILN_AUTOCAST(f32, kl_div_batchmean, input, target, log_target);
  const Tensor loss = divergence(input, target, log_target);
  const int64_t batch = input.dim() > 0 ? input.size(0) : 1;
  return loss.sum() / static_cast<double>(batch);
}

Tensor poisson_nll_loss(const Tensor& input, const Tensor& target, bool log_input, bool full,
                        double eps, Reduction reduction) {
  KILN_AUTOCAST(f32, poisson_nll_loss, input, target, log_input, full, eps, reduction);
  check_pair("poisson_nll_loss", input, target);
  Tensor loss =
      log_input ? kiln::exp(input) - target * input : input - target * kiln::log(input + eps);
  if (full) {
    const Tensor few = target.le(1.0);
    const Tensor y = target.masked_fill(few, 1.0);
    const Tensor stirling = y * kiln::log(y) - y + kiln::log(y * (2.0 * std::numbers::pi)) * 0.5;
    loss = loss + stirling.masked_fill(few, 0.0);
  }
  return reduced_loss(loss, reduction);
}

Tensor gaussian_nll_loss(const Tensor& input, const Tensor& target, const Tensor& var, bool full,
                         double eps, Reduction reduction) {
  constexpr const char* op = "gaussian_nll_loss";
  check_pair(op, input, target);
  require_floating(op, var);
  Tensor variance = var;
  const Shape& s = input.shape();
  if (!(var.shape() == s)) {
    Shape without = s;
    if (s.rank() > 0) without.erase(s.rank() - 1);
    Shape with_one = without;
    with_one.push_back(1);
    if (s.rank() > 0 && var.shape() == without) {
      variance = var.unsqueeze(-1);
    } else if (var.dim() != 0 && !(var.shape() == with_one)) {
      throw_error<ValueError>(op, ": var does not fit the input; got ", var.shape(), "; expected ",
                              s, ", ", with_one, " or ", without);
    }
  }
  if (batched::as_batched(value_of(op, var).inner) == nullptr) {
    check_values(op, var.detach(), [op](const Tensor& v) {
      if (v.lt(0.0).any().item<bool>()) {
        throw_error<ValueError>(op, ": var must not be negative; got negative entries");
      }
    });
  }
  // The bound is no part of the graph: variances below it still get a gradient.
  const Tensor fixed = variance.detach();
  const Tensor bounded =
      variance.requires_grad() ? variance + (fixed.clamp(eps, {}) - fixed) : fixed.clamp(eps, {});
  Tensor loss = (kiln::log(bounded) + (input - target).square() / bounded) * 0.5;
  if (full) loss = loss + 0.5 * std::log(2.0 * std::numbers::pi);
  return reduced_loss(loss, reduction);
}

Tensor hinge_embedding_loss(const Tensor& input, const Tensor& target, double margin,
                            Reduction reduction) {
  KILN_AUTOCAST(f32, hinge_embedding_loss, input, target, margin, reduction);
  check_pair("hinge_embedding_loss", input, target);
  const Tensor apart = kiln::relu(margin - input);
  const Tensor zero = zeros({}, {input.dtype(), input.device()});
  // Each holds for its sign alone.
  return reduced_loss(where(target.ne(1.0), apart, zero) + where(target.ne(-1.0), input, zero),
                      reduction);
}

Tensor margin_ranking_loss(const Tensor& input1, const Tensor& input2, const Tensor& target,
                           double margin, Reduction reduction) {
  KILN_AUTOCAST(f32, margin_ranking_loss, input1, input2, target, margin, reduction);
  check_pair("margin_ranking_loss", input1, input2);
  check_pair("margin_ranking_loss", input1, target);
  if (input1.dim() != input2.dim() || input1.dim() != target.dim()) {
    throw_error<ShapeError>("margin_ranking_loss: the operands must have as many dims; got ",
                            input1.shape(), ", ", input2.shape(), " and ", target.shape());
  }
  return reduced_loss(kiln::relu((input2 - input1) * target + margin), reduction);
}

namespace {

// A row of scores for each target; `single` when there is but one, without N.
struct Scores {
  Scores(const char* op, const Tensor& input) : single(input.dim() < 2) {
    require_floating(op, input);
    if (input.dim() > 2 || (input.dim() > 0 && input.size(-1) == 0)) {
      throw_error<ShapeError>(op, ": expected an input [N, C] or [C]; got ", input.shape());
    }
    rows = single ? input.reshape({1, -1}) : input;
  }
  Tensor finished(const Tensor& loss, Reduction reduction) const {
    if (reduction != Reduction::none) return reduced_loss(loss, reduction);
    return single ? loss.squeeze(0) : loss;
  }

  bool single;
  Tensor rows;
};

}  // namespace

Tensor multi_margin_loss(const Tensor& input, const Tensor& target, int64_t p, double margin,
                         const Tensor& weight, Reduction reduction) {
  KILN_AUTOCAST(f32, multi_margin_loss, input, target, p, margin, weight, reduction);
  constexpr const char* op = "multi_margin_loss";
  const Scores scores(op, input);
  if (p != 1 && p != 2) throw_error<ValueError>(op, ": expected p = 1 or 2; got ", p);
  const Tensor index = wrap(index_value(op, target, value_of(op, input)));
  const int64_t count = scores.rows.size(0), classes = scores.rows.size(1);
  if (index.dim() > 1 || index.numel() != count) {
    throw_error<ShapeError>(op, ": the classes do not fit the input; got input ", input.shape(),
                            " and target ", target.shape());
  }
  require_param(op, input, weight, "weight", Shape{classes});
  const Tensor y = index.reshape({count, 1});
  const Tensor own = naming<IndexError>(op, [&] { return scores.rows.gather(1, y); });
  Tensor gap = kiln::relu(scores.rows - own + margin);
  if (p == 2) gap = gap.square();
  if (weight.defined()) gap = gap * weight.index_select(0, y.reshape({-1})).unsqueeze(1);
  const Tensor is_own = arange(classes, {i64, input.device()}).unsqueeze(0).eq(y);
  const Tensor loss = gap.masked_fill(is_own, 0.0).sum({1}) / static_cast<double>(classes);
  return scores.finished(loss, reduction);
}

Tensor multilabel_margin_loss(const Tensor& input, const Tensor& target, Reduction reduction) {
  KILN_AUTOCAST(f32, multilabel_margin_loss, input, target, reduction);
  constexpr const char* op = "multilabel_margin_loss";
  const Scores scores(op, input);
  const Tensor labels = wrap(index_value(op, target, value_of(op, input)));
  if (!(labels.shape() == input.shape())) {
    throw_error<ShapeError>(op, ": the targets must have the input's shape; got ", labels.shape(),
                            "; expected ", input.shape());
  }
  const Tensor y = labels.reshape(scores.rows.shape());
  const int64_t classes = scores.rows.size(1);
  const Tensor ended = y.lt(0).to(i64).cumsum(1).gt(0);
  const Tensor safe = y.masked_fill(ended, 0);
  const Tensor none = zeros(scores.rows.shape(), {i64, input.device()});
  Tensor own, is_target;
  naming<IndexError>(op, [&] {
    own = scores.rows.gather(1, safe);
    is_target = none.scatter_add(1, safe, ended.logical_not().to(i64)).gt(0);
  });
  // [N, target, other].
  const Tensor gap = kiln::relu(scores.rows.unsqueeze(1) - own.unsqueeze(2) + 1.0);
  const Tensor counts = ended.unsqueeze(2).logical_or(is_target.unsqueeze(1));
  const Tensor loss = gap.masked_fill(counts, 0.0).sum({1, 2}) / static_cast<double>(classes);
  return scores.finished(loss, reduction);
}

Tensor multilabel_soft_margin_loss(const Tensor& input, const Tensor& target, const Tensor& weight,
                                   Reduction reduction) {
  constexpr const char* op = "multilabel_soft_margin_loss";
  check_same_shape(op, input, target);
  if (input.dim() == 0) throw_error<ShapeError>(op, ": expected an input [.., C]; got []");
  const Tensor loss = binary_cross_entropy_with_logits(input, target, weight, Reduction::none);
  return reduced_loss(loss.mean(-1), reduction);
}

Tensor soft_margin_loss(const Tensor& input, const Tensor& target, Reduction reduction) {
  KILN_AUTOCAST(f32, soft_margin_loss, input, target, reduction);
  check_pair("soft_margin_loss", input, target);
  const Tensor z = -target * input;
  return reduced_loss(softplus(z, 1.0, std::numeric_limits<double>::infinity()), reduction);
}

Tensor triplet_margin_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative,
                           double margin, double p, double eps, bool swap, Reduction reduction) {
  KILN_AUTOCAST(f32, triplet_margin_loss, anchor, positive, negative, margin, p, eps, swap,
                reduction);
  if (!has_complex(anchor, positive)) check_pair("triplet_margin_loss", anchor, positive);
  if (!has_complex(anchor, negative)) check_pair("triplet_margin_loss", anchor, negative);
  if (!(margin > 0.0)) {
    throw_error<ValueError>("triplet_margin_loss: expected margin > 0; got ", margin);
  }
  const auto distance = [&](const Tensor& a, const Tensor& b) {
    return pairwise_distance(a, b, p, eps);
  };
  return triplet_margin_with_distance_loss(anchor, positive, negative, distance, margin, swap,
                                           reduction);
}

Tensor triplet_margin_with_distance_loss(
    const Tensor& anchor, const Tensor& positive, const Tensor& negative,
    const std::function<Tensor(const Tensor&, const Tensor&)>& distance_function, double margin,
    bool swap, Reduction reduction) {
  constexpr const char* op = "triplet_margin_with_distance_loss";
  if (!has_complex(anchor, positive)) check_pair(op, anchor, positive);
  if (!has_complex(anchor, negative)) check_pair(op, anchor, negative);
  if (!(margin > 0.0)) throw_error<ValueError>(op, ": expected margin > 0; got ", margin);
  const auto distance = [&](const Tensor& a, const Tensor& b) {
    return distance_function ? distance_function(a, b) : pairwise_distance(a, b);
  };
  const Tensor near = distance(anchor, positive);
  Tensor far = distance(anchor, negative);
  if (swap) far = kiln::minimum(far, distance(positive, negative));
  return reduced_loss(kiln::relu(near - far + margin), reduction);
}

Tensor cosine_embedding_loss(const Tensor& input1, const Tensor& input2, const Tensor& target,
                             double margin, Reduction reduction) {
  KILN_AUTOCAST(f32, cosine_embedding_loss, input1, input2, target, margin, reduction);
  constexpr const char* op = "cosine_embedding_loss";
  check_pair(op, input1, input2);
  if (target.dim() > 1 || input1.dim() != target.dim() + 1 || input2.dim() != target.dim() + 1) {
    throw_error<ShapeError>(op, ": expected vectors [N, D] and a target [N], or [D] and []; got ",
                            input1.shape(), ", ", input2.shape(), " and ", target.shape());
  }
  // One eps under the root, as PyTorch has it here.
  const DType dtype = input1.dtype();
  const double eps = 1e-12;
  const Tensor size1 = input1.square().sum(-1) + eps, size2 = input2.square().sum(-1) + eps;
  const Tensor cosine = (input1 * input2).sum(-1) / (size1 * size2).sqrt();
  const Tensor zero = zeros({}, {dtype, input1.device()});
  const Tensor loss = where(target.eq(1), 1.0 - cosine, zero) +
                      where(target.eq(-1), kiln::relu(cosine - margin), zero);
  return reduced_loss(loss, reduction);
}

Tensor cosine_similarity(const Tensor& x1, const Tensor& x2, int64_t dim, double eps) {
  constexpr const char* op = "cosine_similarity";
  check_pair(op, x1, x2);
  require_floating(op, x2);
  const int rank = std::max(x1.dim(), x2.dim());
  const int d = normalize_dim(op, dim, rank);
  const Shape common = broadcast_shapes(op, x1.shape(), x2.shape());
  const auto unit = [&](const Tensor& x) {
    const Tensor wide = x.expand(common);
    const Tensor norm = p_norm(wide, 2.0, rank == 0 ? Dims{} : Dims{d}, true);
    // The bound is no part of the graph, so that a vector of zeros gets a gradient.
    const Tensor fixed = norm.detach();
    const Tensor bounded =
        norm.requires_grad() ? norm + (fixed.clamp(eps, {}) - fixed) : fixed.clamp(eps, {});
    return wide / bounded;
  };
  const Tensor product = unit(x1) * unit(x2);
  return rank == 0 ? product : product.sum({d});
}

Tensor pairwise_distance(const Tensor& x1, const Tensor& x2, double p, double eps, bool keepdim) {
  constexpr const char* op = "pairwise_distance";
  if (!has_complex(x1, x2)) check_pair(op, x1, x2);
  const Tensor difference = x1 - x2 + eps;
  return p_norm(difference, p, difference.dim() == 0 ? Dims{} : Dims{difference.dim() - 1},
                keepdim);
}

}  // namespace kiln::functional
