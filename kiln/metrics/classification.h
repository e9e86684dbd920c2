// Metrics of decided classes: they count how often each class or label was right and wrong.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "kiln/metrics/class_inputs.h"
#include "kiln/metrics/metric.h"

namespace kiln::metrics {

// True and false positives and negatives, of one class or of all together.
struct StatCounts {
  int64_t tp = 0, fp = 0, tn = 0, fn = 0;
};

class ClassMetric : public Metric {
 public:
  // See ClassOptions for what fits. Throws ShapeError, DTypeError, IndexError; nothing is counted
  // then.
  void update(const Tensor& preds, const Tensor& target);
  // 0-d; [C] or [L] for average = "none".
  Tensor compute() const override;
  std::string description() const override { return describe(name_, options_); }
  const ClassOptions& options() const { return options_; }
  // Of class or label `column`.
  StatCounts counts(size_t column) const;

 protected:
  // Throws ValueError.
  ClassMetric(const char* name, ClassOptions options, const char* average = "micro");

  virtual double score(const StatCounts& counts) const = 0;
  // Whether a class takes no part in averages.
  virtual bool is_left_out(size_t) const { return false; }
  // Whether a class that was predicted and has no sample takes part in the mean over classes.
  virtual bool counts_predicted() const { return options_.top_k == 1; }
  void visit_state(StateVisitor& visitor) override;

  // For score(): rights over all decisions, as labels have it.
  bool counts_negatives() const { return task_ != Task::multiclass; }
  double zero_division() const { return options_.zero_division; }

 private:
  const char* name_;
  ClassOptions options_;
  Task task_;
  std::vector<int64_t> tp_, fp_, tn_, fn_;
};

// The share of right decisions. With classes it is the share of a class's samples that were
// recognized, averaged as `average` says: "micro" is what is usually called accuracy.
class Accuracy final : public Cloned<Accuracy, ClassMetric> {
 public:
  explicit Accuracy(ClassOptions o) : Cloned("Accuracy", std::move(o)) {}

 private:
  double score(const StatCounts& c) const override;
};

// 1 - accuracy: the share of decisions that are wrong.
class HammingDistance final : public Cloned<HammingDistance, ClassMetric> {
 public:
  explicit HammingDistance(ClassOptions o) : Cloned("HammingDistance", std::move(o)) {}

 private:
  double score(const StatCounts& c) const override;
};

// tp / (tp + fp).
class Precision final : public Cloned<Precision, ClassMetric> {
 public:
  explicit Precision(ClassOptions o) : Cloned("Precision", std::move(o)) {}

 private:
  double score(const StatCounts& c) const override;
};

// tp / (tp + fn).
class Recall final : public Cloned<Recall, ClassMetric> {
 public:
  explicit Recall(ClassOptions o) : Cloned("Recall", std::move(o)) {}

 private:
  double score(const StatCounts& c) const override;
};

// tn / (tn + fp).
class Specificity final : public Cloned<Specificity, ClassMetric> {
 public:
  explicit Specificity(ClassOptions o) : Cloned("Specificity", std::move(o)) {}

 private:
  double score(const StatCounts& c) const override;
};

// (1 + beta^2) precision recall / (beta^2 precision + recall); beta = 1: F1, which is also Dice's
// coefficient of all samples together.
class FBetaScore : public Cloned<FBetaScore, ClassMetric> {
 public:
  // Throws ValueError unless beta > 0.
  explicit FBetaScore(double beta, ClassOptions o);
  double beta() const { return beta_; }
  std::string description() const override;

 private:
  double score(const StatCounts& c) const override;
  bool counts_predicted() const override { return true; }
  double beta_;
};

class F1Score final : public Cloned<F1Score, FBetaScore> {
 public:
  explicit F1Score(ClassOptions o) : Cloned(1.0, std::move(o)) {}
};

// Intersection over union: tp / (tp + fp + fn). An ignored class takes no part in averages.
class JaccardIndex final : public Cloned<JaccardIndex, ClassMetric> {
 public:
  explicit JaccardIndex(ClassOptions o) : Cloned("JaccardIndex", std::move(o), "macro") {}

 private:
  double score(const StatCounts& c) const override;
  bool is_left_out(size_t column) const override;
};

}  // namespace kiln::metrics
