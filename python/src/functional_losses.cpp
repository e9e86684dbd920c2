// kiln.nn.functional: losses and distances. Arguments that PyTorch has deprecated (size_average,
// reduce) are not taken; what follows them there is given by name.
#include "functional.h"
#include "kiln/nn/extra_losses.h"

namespace kiln::python {

namespace {

using Loss = Tensor (*)(const Tensor&, const Tensor&, F::Reduction);

void def_loss(nb::module_& m, const char* name, Loss f, const char* doc) {
  m.def(
      name,
      [name, f](const Tensor& input, const Tensor& target, const std::string& reduction) {
        Unlocked lock(input);
        return f(input, target, reduction_of(name, reduction));
      },
      "input"_a, "target"_a, nb::kw_only(), "reduction"_a = "mean", doc);
}

using WeightedLoss = Tensor (*)(const Tensor&, const Tensor&, F::Reduction, const Tensor&);

void def_weighted(nb::module_& m, const char* name, WeightedLoss f, const char* doc) {
  m.def(
      name,
      [name, f](const Tensor& input, const Tensor& target, const std::string& reduction,
                const OptionalTensor& weight) {
        Unlocked lock(input);
        return f(input, target, reduction_of(name, reduction), weight);
      },
      "input"_a, "target"_a, nb::kw_only(), "reduction"_a = "mean", optional_arg("weight"), doc);
}

void bind_class_losses(nb::module_& m) {
  m.def(
      "cross_entropy",
      [](const Tensor& input, const Tensor& target, const OptionalTensor& weight,
         int64_t ignore_index, const std::string& reduction, double label_smoothing) {
        F::CrossEntropyLossOptions options;
        options.weight = weight.value;
        options.ignore_index = ignore_index;
        options.reduction = reduction_of("cross_entropy", reduction);
        options.label_smoothing = label_smoothing;
        Unlocked lock(input);
        return F::cross_entropy(input, target, options);
      },
      "input"_a, "target"_a, optional_arg("weight"), nb::kw_only(), "ignore_index"_a = -100,
      "reduction"_a = "mean", "label_smoothing"_a = 0.0,
      "Of logits, with class indices or probabilities.");
  m.def(
      "nll_loss",
      [](const Tensor& input, const Tensor& target, const OptionalTensor& weight,
         int64_t ignore_index, const std::string& reduction) {
        Unlocked lock(input);
        return F::nll_loss(input, target, weight, ignore_index,
                           reduction_of("nll_loss", reduction));
      },
      "input"_a, "target"_a, optional_arg("weight"), nb::kw_only(), "ignore_index"_a = -100,
      "reduction"_a = "mean", "-weight[y] x[y] of log-probabilities x.");
  m.def(
      "binary_cross_entropy",
      [](const Tensor& input, const Tensor& target, const OptionalTensor& weight,
         const std::string& reduction) {
        Unlocked lock(input);
        return F::binary_cross_entropy(input, target, weight,
                                       reduction_of("binary_cross_entropy", reduction));
      },
      "input"_a, "target"_a, optional_arg("weight"), nb::kw_only(), "reduction"_a = "mean",
      "-(y log x + (1 - y) log(1 - x)) of probabilities x.");
  m.def(
      "binary_cross_entropy_with_logits",
      [](const Tensor& input, const Tensor& target, const OptionalTensor& weight,
         const std::string& reduction, const OptionalTensor& pos_weight) {
        Unlocked lock(input);
        return F::binary_cross_entropy_with_logits(
            input, target, weight, reduction_of("binary_cross_entropy_with_logits", reduction),
            pos_weight);
      },
      "input"_a, "target"_a, optional_arg("weight"), nb::kw_only(), "reduction"_a = "mean",
      optional_arg("pos_weight"), "binary_cross_entropy of sigmoid(x), without overflow.");
  m.def(
      "kl_div",
      [](const Tensor& input, const Tensor& target, const std::string& reduction, bool log_target) {
        Unlocked lock(input);
        if (reduction == "batchmean") return F::kl_div_batchmean(input, target, log_target);
        return F::kl_div(input, target, reduction_of("kl_div", reduction), log_target);
      },
      "input"_a, "target"_a, nb::kw_only(), "reduction"_a = "mean", "log_target"_a = false,
      "y (log y - x) of log-probabilities x; reduction 'batchmean' is the divergence.");
  m.def(
      "multi_margin_loss",
      [](const Tensor& input, const Tensor& target, int64_t p, double margin,
         const OptionalTensor& weight, const std::string& reduction) {
        Unlocked lock(input);
        return F::multi_margin_loss(input, target, p, margin, weight,
                                    reduction_of("multi_margin_loss", reduction));
      },
      "input"_a, "target"_a, "p"_a = 1, "margin"_a = 1.0, optional_arg("weight"), nb::kw_only(),
      "reduction"_a = "mean", "sum over i != y of max(0, margin - x[y] + x[i])^p / C.");
  def_loss(m, "multilabel_margin_loss", &F::multilabel_margin_loss,
           "sum over targets j and others i of max(0, 1 - x[j] + x[i]) / C.");
  m.def(
      "multilabel_soft_margin_loss",
      [](const Tensor& input, const Tensor& target, const OptionalTensor& weight,
         const std::string& reduction) {
        Unlocked lock(input);
        return F::multilabel_soft_margin_loss(
            input, target, weight, reduction_of("multilabel_soft_margin_loss", reduction));
      },
      "input"_a, "target"_a, optional_arg("weight"), nb::kw_only(), "reduction"_a = "mean",
      "The mean of binary_cross_entropy_with_logits over classes.");
  m.def(
      "ctc_loss",
      [](const Tensor& log_probs, const Tensor& targets, const nb::object& input_lengths,
         const nb::object& target_lengths, int64_t blank, const std::string& reduction,
         bool zero_infinity) {
        const auto lengths = [](const nb::object& value) {
          Tensor x;
          if (try_value(value, x)) return x;
          const auto numbers =
              value_arg<std::vector<int64_t>>("ctc_loss", value, "lengths in a tensor or list");
          return from_vector(numbers, {static_cast<int64_t>(numbers.size())});
        };
        const Tensor steps = lengths(input_lengths), sizes = lengths(target_lengths);
        Unlocked lock;
        return F::ctc_loss(log_probs, targets, steps, sizes, blank,
                           reduction_of("ctc_loss", reduction), zero_infinity);
      },
      "log_probs"_a, "targets"_a, "input_lengths"_a, "target_lengths"_a, "blank"_a = 0,
      "reduction"_a = "mean", "zero_infinity"_a = false,
      "Connectionist temporal classification: log_probs [T, N, C].");
  m.def(
      "rnnt_loss",
      [](const Tensor& logits, const Tensor& targets, const Tensor& logit_lengths,
         const Tensor& target_lengths, int64_t blank, double clamp, const std::string& reduction,
         bool fused_log_softmax) {
        Unlocked lock(logits);
        return F::rnnt_loss(logits, targets, logit_lengths, target_lengths, blank, clamp,
                            reduction_of("rnnt_loss", reduction), fused_log_softmax);
      },
      "logits"_a, "targets"_a, "logit_lengths"_a, "target_lengths"_a, "blank"_a = -1,
      "clamp"_a = -1.0, "reduction"_a = "mean", "fused_log_softmax"_a = true,
      "The loss of the RNN transducer: logits [N, T, U + 1, C], targets [N, U].");
}

void bind_value_losses(nb::module_& m) {
  def_weighted(m, "l1_loss", &F::l1_loss, "|x - y|.");
  def_weighted(
      m, "mse_loss",
      [](const Tensor& x, const Tensor& y, F::Reduction reduction, const Tensor& weight) {
        return F::mse_loss(x, y, reduction, weight);
      },
      "(x - y)^2.");
  m.def(
      "smooth_l1_loss",
      [](const Tensor& input, const Tensor& target, const std::string& reduction, double beta) {
        Unlocked lock(input);
        return F::smooth_l1_loss(input, target, reduction_of("smooth_l1_loss", reduction), beta);
      },
      "input"_a, "target"_a, nb::kw_only(), "reduction"_a = "mean", "beta"_a = 1.0,
      "d^2 / (2 beta) where d = |x - y| < beta, else d - beta / 2.");
  m.def(
      "huber_loss",
      [](const Tensor& input, const Tensor& target, const std::string& reduction, double delta,
         const OptionalTensor& weight) {
        Unlocked lock(input);
        return F::huber_loss(input, target, reduction_of("huber_loss", reduction), delta, weight);
      },
      "input"_a, "target"_a, "reduction"_a = "mean", "delta"_a = 1.0, optional_arg("weight"),
      "d^2 / 2 where d = |x - y| <= delta, else delta (d - delta / 2).");
  m.def(
      "poisson_nll_loss",
      [](const Tensor& input, const Tensor& target, bool log_input, bool full, double eps,
         const std::string& reduction) {
        Unlocked lock(input);
        return F::poisson_nll_loss(input, target, log_input, full, eps,
                                   reduction_of("poisson_nll_loss", reduction));
      },
      "input"_a, "target"_a, "log_input"_a = true, "full"_a = false, nb::kw_only(), "eps"_a = 1e-8,
      "reduction"_a = "mean", "e^x - y x, or without log_input x - y log(x + eps).");
  m.def(
      "gaussian_nll_loss",
      [](const Tensor& input, const Tensor& target, const Operand& var, bool full, double eps,
         const std::string& reduction) {
        const Tensor variance = var.is_tensor() ? var.tensor() : full_like(input, var.scalar());
        Unlocked lock(input);
        return F::gaussian_nll_loss(input, target, variance, full, eps,
                                    reduction_of("gaussian_nll_loss", reduction));
      },
      "input"_a, "target"_a, "var"_a, "full"_a = false, "eps"_a = 1e-6, "reduction"_a = "mean",
      "(log var + (x - y)^2 / var) / 2.");
  m.def(
      "hinge_embedding_loss",
      [](const Tensor& input, const Tensor& target, double margin, const std::string& reduction) {
        Unlocked lock(input);
        return F::hinge_embedding_loss(input, target, margin,
                                       reduction_of("hinge_embedding_loss", reduction));
      },
      "input"_a, "target"_a, "margin"_a = 1.0, nb::kw_only(), "reduction"_a = "mean",
      "x where y = 1, max(0, margin - x) where y = -1.");
  def_loss(m, "soft_margin_loss", &F::soft_margin_loss, "log(1 + e^(-y x)).");
}

void bind_pair_losses(nb::module_& m) {
  m.def(
      "margin_ranking_loss",
      [](const Tensor& input1, const Tensor& input2, const Tensor& target, double margin,
         const std::string& reduction) {
        Unlocked lock(input1);
        return F::margin_ranking_loss(input1, input2, target, margin,
                                      reduction_of("margin_ranking_loss", reduction));
      },
      "input1"_a, "input2"_a, "target"_a, "margin"_a = 0.0, nb::kw_only(), "reduction"_a = "mean",
      "max(0, -y (a - b) + margin).");
  m.def(
      "cosine_embedding_loss",
      [](const Tensor& input1, const Tensor& input2, const Tensor& target, double margin,
         const std::string& reduction) {
        Unlocked lock(input1);
        return F::cosine_embedding_loss(input1, input2, target, margin,
                                        reduction_of("cosine_embedding_loss", reduction));
      },
      "input1"_a, "input2"_a, "target"_a, "margin"_a = 0.0, nb::kw_only(), "reduction"_a = "mean",
      "1 - cos(a, b) where y = 1, max(0, cos(a, b) - margin) where y = -1.");
  m.def(
      "triplet_margin_loss",
      [](const Tensor& anchor, const Tensor& positive, const Tensor& negative, double margin,
         double p, double eps, bool swap, const std::string& reduction) {
        Unlocked lock(anchor);
        return F::triplet_margin_loss(anchor, positive, negative, margin, p, eps, swap,
                                      reduction_of("triplet_margin_loss", reduction));
      },
      "anchor"_a, "positive"_a, "negative"_a, "margin"_a = 1.0, "p"_a = 2.0, "eps"_a = 1e-6,
      "swap"_a = false, nb::kw_only(), "reduction"_a = "mean",
      "max(0, d(anchor, positive) - d(anchor, negative) + margin).");
  m.def(
      "triplet_margin_with_distance_loss",
      [](const Tensor& anchor, const Tensor& positive, const Tensor& negative,
         const std::optional<nb::callable>& distance_function, double margin, bool swap,
         const std::string& reduction) {
        std::function<Tensor(const Tensor&, const Tensor&)> distance;
        if (distance_function) {
          distance = [&](const Tensor& a, const Tensor& b) {
            const nb::object distance = (*distance_function)(a, b);
            return tensor_arg("triplet_margin_with_distance_loss", distance);
          };
        }
        return F::triplet_margin_with_distance_loss(
            anchor, positive, negative, distance, margin, swap,
            reduction_of("triplet_margin_with_distance_loss", reduction));
      },
      "anchor"_a, "positive"_a, "negative"_a, nb::kw_only(), "distance_function"_a = nb::none(),
      "margin"_a = 1.0, "swap"_a = false, "reduction"_a = "mean",
      "triplet_margin_loss with another distance.");
  m.def(
      "cosine_similarity",
      [](const Tensor& x1, const Tensor& x2, int64_t dim, double eps) {
        Unlocked lock(x1, x2);
        return F::cosine_similarity(x1, x2, dim, eps);
      },
      "x1"_a, "x2"_a, "dim"_a = 1, "eps"_a = 1e-8, "The cosine between the vectors along dim.");
  m.def(
      "pairwise_distance",
      [](const Tensor& x1, const Tensor& x2, double p, double eps, bool keepdim) {
        Unlocked lock(x1, x2);
        return F::pairwise_distance(x1, x2, p, eps, keepdim);
      },
      "x1"_a, "x2"_a, "p"_a = 2.0, "eps"_a = 1e-6, "keepdim"_a = false,
      "|x1 - x2 + eps|_p of the vectors along the last dim.");
}

}  // namespace

void bind_functional_losses(nb::module_& m) {
  bind_class_losses(m);
  bind_value_losses(m);
  bind_pair_losses(m);
  m.def(
      "focal_loss",
      [](const Tensor& input, const Tensor& target, double alpha, double gamma,
         const std::string& reduction) {
        Unlocked lock(input);
        return F::focal_loss(input, target, alpha, gamma, reduction_of("focal_loss", reduction));
      },
      "input"_a, "target"_a, "alpha"_a = 0.25, "gamma"_a = 2.0, "reduction"_a = "mean",
      "binary_cross_entropy_with_logits, less where it is small already.");
  m.def(
      "dice_loss",
      [](const Tensor& input, const Tensor& target, double smooth, const std::string& reduction) {
        Unlocked lock(input);
        return F::dice_loss(input, target, smooth, reduction_of("dice_loss", reduction));
      },
      "input"_a, "target"_a, "smooth"_a = 1.0, "reduction"_a = "mean",
      "1 - (2 sum(x y) + smooth) / (sum(x) + sum(y) + smooth), for each sample.");
  m.def(
      "info_nce_loss",
      [](const Tensor& query, const Tensor& positive_key, const OptionalTensor& negative_keys,
         double temperature, const std::string& reduction) {
        Unlocked lock(query);
        return F::info_nce_loss(query, positive_key, negative_keys, temperature,
                                reduction_of("info_nce_loss", reduction));
      },
      "query"_a, "positive_key"_a, optional_arg("negative_keys"), "temperature"_a = 0.1,
      "reduction"_a = "mean", "How badly queries [N, D] find their own keys [N, D] among all.");
}

}  // namespace kiln::python
