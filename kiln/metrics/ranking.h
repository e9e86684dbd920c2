// Metrics of scores at all thresholds: areas under curves, and calibration.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "kiln/metrics/class_inputs.h"
#include "kiln/metrics/metric.h"

namespace kiln::metrics {

// Where curves are measured: at these scores, each from 0 to 1. Empty: at every score that comes.
using Thresholds = std::vector<double>;
// So many, as far apart, from 0 to 1. Throws ValueError below 2 or beyond 2^20.
Thresholds even_thresholds(int64_t count);

// Without thresholds it keeps all scores, and the area is exact. With them it counts, in memory
// that does not grow, and the area is that of the curve through the points at the thresholds, as in
// TorchMetrics. The highest threshold is the curve's beginning, the lowest its end: what lies
// beyond them is left out. Classes stand each against all others.
class CurveArea : public Metric {
 public:
  // See ClassOptions; threshold and top_k have no meaning here, and average = "micro" is for
  // labels. Throws ShapeError, DTypeError, IndexError, ValueError for NaN.
  void update(const Tensor& preds, const Tensor& target);
  // NaN where a class has no positive sample (AUROC: or no negative one). Averages leave it out.
  Tensor compute() const override;
  std::string description() const override;

 protected:
  // Throws ValueError for a threshold outside [0, 1].
  CurveArea(const char* name, ClassOptions options, Thresholds thresholds);

  // Of groups of equal scores, the highest first: their positives and negatives.
  using Groups = std::vector<std::pair<double, double>>;
  virtual double area(const Groups& groups, double positives, double negatives) const = 0;
  // The same from how many positives and negatives are at each threshold or above it, the lowest
  // first.
  virtual double binned_area(const Groups& above, double positives, double negatives) const = 0;

 private:
  void visit_state(StateVisitor& visitor) override;
  void check_state() const override;
  double area_of(std::vector<std::pair<double, bool>>& samples) const;
  double binned_area_of(size_t column, bool together, double& positives) const;
  double exact_area_of(size_t column, bool together, double& positives) const;
  void count(const std::vector<double>& scores, const std::vector<int64_t>& target);

  const char* name_;
  ClassOptions options_;
  Task task_;
  Thresholds thresholds_;  // ascending
  std::vector<double> scores_;
  std::vector<int64_t> target_;
  // By column, and by how many thresholds a score reaches.
  std::vector<int64_t> positive_, negative_;
};

// The area under the receiver operating characteristic: how likely it is that a positive sample
// scores above a negative one; a tie counts one half.
class AUROC final : public Cloned<AUROC, CurveArea> {
 public:
  explicit AUROC(ClassOptions o, Thresholds thresholds = {})
      : Cloned("AUROC", std::move(o), std::move(thresholds)) {}

 private:
  double area(const Groups& groups, double positives, double negatives) const override;
  double binned_area(const Groups& above, double positives, double negatives) const override;
};

// Average precision, the area under precision over recall as a sum of steps: sum (R_i - R_i-1) P_i.
class AveragePrecision final : public Cloned<AveragePrecision, CurveArea> {
 public:
  explicit AveragePrecision(ClassOptions o, Thresholds thresholds = {})
      : Cloned("AveragePrecision", std::move(o), std::move(thresholds)) {}

 private:
  double area(const Groups& groups, double positives, double negatives) const override;
  double binned_area(const Groups& above, double positives, double negatives) const override;
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
