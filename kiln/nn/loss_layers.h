// The losses as layers; kiln/tensor/nn/losses.h says what each computes, of which shapes,
// and what it throws. nn::HuberLoss({.delta = 0.5})(input, target).
//
// `reduction`: functional::Reduction::sum or "sum"; none gives the losses themselves, mean and sum
// one number. A `weight` is a buffer.
#pragma once

#include <functional>

#include "kiln/nn/loss.h"

namespace kiln::nn {

// ---- Options, shared by losses that have the same

struct LossConfig {
  functional::Reduction reduction = functional::Reduction::mean;
  KILN_CONFIG(LossConfig, reduction)
};
struct WeightedLossConfig {
  Tensor weight = {};  // broadcasts to the losses, or undefined
  functional::Reduction reduction = functional::Reduction::mean;
  KILN_CONFIG(WeightedLossConfig, weight, reduction)
};
struct MarginLossConfig {
  Real margin = 0.0;
  functional::Reduction reduction = functional::Reduction::mean;
  KILN_CONFIG(MarginLossConfig, margin, reduction)
};
struct SmoothL1LossConfig {
  functional::Reduction reduction = functional::Reduction::mean;
  Real beta = 1.0;
  KILN_CONFIG(SmoothL1LossConfig, reduction, doc(beta, "where the loss becomes linear"))
};
struct HuberLossConfig {
  functional::Reduction reduction = functional::Reduction::mean;
  Real delta = 1.0;
  KILN_CONFIG(HuberLossConfig, reduction, doc(delta, "where the loss becomes linear"))
};
struct NLLLossConfig {
  Tensor weight = {};           // [C] or undefined
  int64_t ignore_index = -100;  // entries of this class count for nothing
  functional::Reduction reduction = functional::Reduction::mean;
  KILN_CONFIG(NLLLossConfig, weight, ignore_index, reduction)
};
struct BCEWithLogitsLossConfig {
  Tensor weight = {};  // broadcasts to the losses, or undefined
  functional::Reduction reduction = functional::Reduction::mean;
  Tensor pos_weight = {};  // a factor for positive targets, or undefined
  KILN_CONFIG(BCEWithLogitsLossConfig, weight, reduction, pos_weight)
};
struct KLDivLossConfig {
  functional::KLDivReduction reduction = functional::KLDivReduction::mean;
  bool log_target = false;
  KILN_CONFIG(KLDivLossConfig, doc(reduction, "batchmean: the sum over the first size"),
              doc(log_target, "the target holds logarithms too"))
};
struct PoissonNLLLossConfig {
  bool log_input = true;
  bool full = false;
  Real eps = 1e-8;
  functional::Reduction reduction = functional::Reduction::mean;
  KILN_CONFIG(PoissonNLLLossConfig, log_input, doc(full, "with Stirling's term"), eps, reduction)
};
struct GaussianNLLLossConfig {
  bool full = false;
  Real eps = 1e-6;
  functional::Reduction reduction = functional::Reduction::mean;
  static constexpr bool kAllKeywordOnly = true;  // in Python, as in PyTorch
  KILN_CONFIG(GaussianNLLLossConfig, doc(full, "with the constant term"), eps, reduction)
};
struct HingeEmbeddingLossConfig {
  Real margin = 1.0;
  functional::Reduction reduction = functional::Reduction::mean;
  KILN_CONFIG(HingeEmbeddingLossConfig, margin, reduction)
};
struct MultiMarginLossConfig {
  int64_t p = 1;
  Real margin = 1.0;
  Tensor weight = {};  // [C] or undefined
  functional::Reduction reduction = functional::Reduction::mean;
  KILN_CONFIG(MultiMarginLossConfig, doc(p, "1 or 2"), margin, weight, reduction)
};
struct TripletMarginLossConfig {
  Real margin = 1.0;
  Real p = 2.0;
  Real eps = 1e-6;
  bool swap = false;
  functional::Reduction reduction = functional::Reduction::mean;
  KILN_CONFIG(TripletMarginLossConfig, margin, p, eps, swap, reduction)
};
struct CTCLossConfig {
  int64_t blank = 0;
  functional::Reduction reduction = functional::Reduction::mean;
  bool zero_infinity = false;
  KILN_CONFIG(CTCLossConfig, blank, reduction, zero_infinity)
};

// ---- Of input and target

class L1Loss : public Layer<LossConfig> {
 public:
  explicit L1Loss(LossConfig config = {}) : Layer(config) {}
  KILN_MODULE_DECLARED(L1Loss)
  Tensor forward(const Tensor& input, const Tensor& target) const;
};

class SmoothL1Loss : public Layer<SmoothL1LossConfig> {
 public:
  explicit SmoothL1Loss(SmoothL1LossConfig config = {}) : Layer(config) {}
  KILN_MODULE_DECLARED(SmoothL1Loss)
  Tensor forward(const Tensor& input, const Tensor& target) const;
};

class HuberLoss : public Layer<HuberLossConfig> {
 public:
  explicit HuberLoss(HuberLossConfig config = {}) : Layer(config) {}
  KILN_MODULE_DECLARED(HuberLoss)
  Tensor forward(const Tensor& input, const Tensor& target) const;
};

class NLLLoss : public Layer<NLLLossConfig> {
 public:
  explicit NLLLoss(NLLLossConfig config = {});
  Buffer weight;
  KILN_MODULE_DECLARED(NLLLoss)
  Tensor forward(const Tensor& input, const Tensor& target) const;
};

class BCELoss : public Layer<WeightedLossConfig> {
 public:
  explicit BCELoss(WeightedLossConfig config = {});
  Buffer weight;
  KILN_MODULE_DECLARED(BCELoss)
  Tensor forward(const Tensor& input, const Tensor& target) const;
};

class BCEWithLogitsLoss : public Layer<BCEWithLogitsLossConfig> {
 public:
  explicit BCEWithLogitsLoss(BCEWithLogitsLossConfig config = {});
  Buffer weight;
  Buffer pos_weight;
  KILN_MODULE_DECLARED(BCEWithLogitsLoss)
  Tensor forward(const Tensor& input, const Tensor& target) const;
};

class KLDivLoss : public Layer<KLDivLossConfig> {
 public:
  explicit KLDivLoss(KLDivLossConfig config = {}) : Layer(config) {}
  KILN_MODULE_DECLARED(KLDivLoss)
  Tensor forward(const Tensor& input, const Tensor& target) const;
};

class PoissonNLLLoss : public Layer<PoissonNLLLossConfig> {
 public:
  explicit PoissonNLLLoss(PoissonNLLLossConfig config = {}) : Layer(config) {}
  KILN_MODULE_DECLARED(PoissonNLLLoss)
  Tensor forward(const Tensor& log_input, const Tensor& target) const;
};

class HingeEmbeddingLoss : public Layer<HingeEmbeddingLossConfig> {
 public:
  explicit HingeEmbeddingLoss(HingeEmbeddingLossConfig config = {}) : Layer(config) {}
  KILN_MODULE_DECLARED(HingeEmbeddingLoss)
  Tensor forward(const Tensor& input, const Tensor& target) const;
};

// Throws ValueError unless p is 1 or 2, and for a weight that is no vector.
class MultiMarginLoss : public Layer<MultiMarginLossConfig> {
 public:
  explicit MultiMarginLoss(MultiMarginLossConfig config = {});
  Buffer weight;
  KILN_MODULE_DECLARED(MultiMarginLoss)
  Tensor forward(const Tensor& input, const Tensor& target) const;
};

class MultiLabelMarginLoss : public Layer<LossConfig> {
 public:
  explicit MultiLabelMarginLoss(LossConfig config = {}) : Layer(config) {}
  KILN_MODULE_DECLARED(MultiLabelMarginLoss)
  Tensor forward(const Tensor& input, const Tensor& target) const;
};

class MultiLabelSoftMarginLoss : public Layer<WeightedLossConfig> {
 public:
  explicit MultiLabelSoftMarginLoss(WeightedLossConfig config = {});
  Buffer weight;
  KILN_MODULE_DECLARED(MultiLabelSoftMarginLoss)
  Tensor forward(const Tensor& input, const Tensor& target) const;
};

class SoftMarginLoss : public Layer<LossConfig> {
 public:
  explicit SoftMarginLoss(LossConfig config = {}) : Layer(config) {}
  KILN_MODULE_DECLARED(SoftMarginLoss)
  Tensor forward(const Tensor& input, const Tensor& target) const;
};

// ---- Of more than two tensors

class GaussianNLLLoss : public Layer<GaussianNLLLossConfig> {
 public:
  explicit GaussianNLLLoss(GaussianNLLLossConfig config = {}) : Layer(config) {}
  KILN_MODULE_DECLARED(GaussianNLLLoss)
  Tensor forward(const Tensor& input, const Tensor& target, const Tensor& var) const;
};

class MarginRankingLoss : public Layer<MarginLossConfig> {
 public:
  explicit MarginRankingLoss(MarginLossConfig config = {}) : Layer(config) {}
  KILN_MODULE_DECLARED(MarginRankingLoss)
  Tensor forward(const Tensor& input1, const Tensor& input2, const Tensor& target) const;
};

class CosineEmbeddingLoss : public Layer<MarginLossConfig> {
 public:
  explicit CosineEmbeddingLoss(MarginLossConfig config = {}) : Layer(config) {}
  KILN_MODULE_DECLARED(CosineEmbeddingLoss)
  Tensor forward(const Tensor& input1, const Tensor& input2, const Tensor& target) const;
};

// Throws ValueError unless margin > 0.
class TripletMarginLoss : public Layer<TripletMarginLossConfig> {
 public:
  explicit TripletMarginLoss(TripletMarginLossConfig config = {});
  KILN_MODULE_DECLARED(TripletMarginLoss)
  Tensor forward(const Tensor& anchor, const Tensor& positive, const Tensor& negative) const;
};

struct TripletMarginWithDistanceLossOptions {
  std::function<Tensor(const Tensor&, const Tensor&)> distance_function = {};  // empty: Euclidean
  double margin = 1.0;
  bool swap = false;
  functional::Reduction reduction = functional::Reduction::mean;
};

// Throws ValueError unless margin > 0.
class TripletMarginWithDistanceLoss : public Module {
 public:
  using Options = TripletMarginWithDistanceLossOptions;
  explicit TripletMarginWithDistanceLoss(Options options = {});
  KILN_MODULE_DECLARED(TripletMarginWithDistanceLoss)
  Tensor forward(const Tensor& anchor, const Tensor& positive, const Tensor& negative) const;

 private:
  Options options_;
};

// log_probs [T, N, C], targets [N, S] or [sum of target_lengths], the lengths [N]; see
// functional::ctc_loss.
class CTCLoss : public Layer<CTCLossConfig> {
 public:
  explicit CTCLoss(CTCLossConfig config = {}) : Layer(config) {}
  KILN_MODULE_DECLARED(CTCLoss)
  Tensor forward(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths,
                 const Tensor& target_lengths) const;
};

}  // namespace kiln::nn
