// Metrics of numbers that a model predicts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kiln/metrics/metric.h"

namespace kiln::metrics {

// The mean of |p - t|, and of (p - t)^2, of tensors of one shape. NaN before the first number.
class MeanAbsoluteError final : public Cloned<MeanAbsoluteError> {
 public:
  void update(const Tensor& preds, const Tensor& target);
  Tensor compute() const override;
  std::string description() const override { return "MeanAbsoluteError()"; }

 private:
  void visit_state(StateVisitor& visitor) override;
  double sum_ = 0;
  int64_t count_ = 0;
};

// squared = false: the root of it.
class MeanSquaredError final : public Cloned<MeanSquaredError> {
 public:
  explicit MeanSquaredError(bool squared = true) : squared_(squared) {}
  void update(const Tensor& preds, const Tensor& target);
  Tensor compute() const override;
  std::string description() const override {
    return concat("MeanSquaredError(squared=", squared_, ")");
  }

 private:
  void visit_state(StateVisitor& visitor) override;
  bool squared_;
  double sum_ = 0;
  int64_t count_ = 0;
};

// The coefficient of determination, 1 - sum (t - p)^2 / sum (t - mean t)^2, of [N], or of each
// column of [N, K]. A column without spread is 1 when all is right and 0 otherwise, as in
// scikit-learn. NaN below two samples.
class R2Score final : public Cloned<R2Score> {
 public:
  // multioutput: uniform_average over columns, variance_weighted, or raw_values. Throws ValueError.
  explicit R2Score(std::string multioutput = "uniform_average");
  void update(const Tensor& preds, const Tensor& target);
  Tensor compute() const override;
  void reset() override;
  std::string description() const override { return "R2Score(multioutput=" + multioutput_ + ")"; }

 private:
  // What a batch, or another metric, saw.
  void add(int64_t count, const std::vector<double>& mean, const std::vector<double>& spread,
           const std::vector<double>& residual);
  void visit_state(StateVisitor& visitor) override;
  void check_state() const override;
  void join(const Metric& other) override;

  std::string multioutput_;
  int64_t count_ = 0;
  // By column: the mean of the targets, their squared distances from it, and those from the
  // predictions.
  std::vector<double> mean_, spread_, residual_;
};

}  // namespace kiln::metrics
