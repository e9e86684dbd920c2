// Metrics of scores at all thresholds: areas under curves, and calibration.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "kiln/metrics/class_inputs.h"
#include "kiln/metrics/metric.h"

namespace kiln::metrics {

// Keeps all scores: the area is exact. Classes stand each against all others.
class CurveArea : public Metric {
 public:
  // See ClassOptions; threshold and top_k have no meaning here, and average = "micro" is for
  // labels. Throws ShapeError, DTypeError, IndexError, ValueError for NaN.
  void update(const Tensor& preds, const Tensor& target);
  // NaN where a class has no positive sample (AUROC: or no negative one). Averages leave it out.
  Tensor compute() const override;
  std::string description() const override { return describe(name_, options_); }

 protected:
  CurveArea(const char* name, ClassOptions options);

  // Of groups of equal scores, the highest first: their positives and negatives.
  using Groups = std::vector<std::pair<double, double>>;
  virtual double area(const Groups& groups, double positives, double negatives) const = 0;

 private:
  void visit_state(StateVisitor& visitor) override;
  void check_state() const override;
  double area_of(std::vector<std::pair<double, bool>>& samples) const;

  const char* name_;
  ClassOptions options_;
  Task task_;
  std::vector<double> scores_;
  std::vector<int64_t> target_;
};

// The area under the receiver operating characteristic: how likely it is that a positive sample
// scores above a negative one; a tie counts one half.
class AUROC final : public Cloned<AUROC, CurveArea> {
 public:
  explicit AUROC(ClassOptions o) : Cloned("AUROC", std::move(o)) {}

 private:
  double area(const Groups& groups, double positives, double negatives) const override;
};

// Average precision, the area under precision over recall as a sum of steps: sum (R_i - R_i-1) P_i.
class AveragePrecision final : public Cloned<AveragePrecision, CurveArea> {
 public:
  explicit AveragePrecision(ClassOptions o) : Cloned("AveragePrecision", std::move(o)) {}

 private:
  double area(const Groups& groups, double positives, double negatives) const override;
};

// How far confidence is from accuracy, in n_bins equal bins of confidence (Guo et al., 2017): their
// mean (l1, the expected calibration error), root of the mean square (l2), or the largest (max).
// For classes the confidence is the largest probability, for binary the probability of 1.
class CalibrationError final : public Cloned<CalibrationError> {
 public:
  // Throws ValueError; multilabel is none of the tasks.
  explicit CalibrationError(ClassOptions options, int64_t n_bins = 15, std::string norm = "l1");

  void update(const Tensor& preds, const Tensor& target);
  Tensor compute() const override;
  std::string description() const override;

 private:
  void visit_state(StateVisitor& visitor) override;

  ClassOptions options_;
  std::string norm_;
  Task task_;
  // By bin; one more for a confidence of 1.
  std::vector<int64_t> count_, right_;
  std::vector<double> confidence_;
};

}  // namespace kiln::metrics
