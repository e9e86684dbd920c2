// What training and evaluation add up over batches.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kiln/tensor/tensor.h"

namespace kiln::train {

// A mean of values with weights, such as the loss of batches by their number of samples.
class RunningMean {
 public:
  RunningMean() = default;
  // Continues from what sum() and weight() were.
  RunningMean(double sum, double weight) : sum_(sum), weight_(weight) {}

  void add(double value, double weight = 1.0) {
    sum_ += value * weight;
    weight_ += weight;
  }
  // NaN before the first value.
  double value() const;
  double sum() const { return sum_; }
  double weight() const { return weight_; }

 private:
  double sum_ = 0.0;
  double weight_ = 0.0;
};

// How many rows of scores [N, C] have their largest value at the row's label, labels i64 [N].
// Throws ShapeError.
int64_t count_correct(const Tensor& scores, const Tensor& labels);

// How often samples of each class were taken for each class.
class ConfusionMatrix {
 public:
  // Throws ValueError below one class.
  explicit ConfusionMatrix(int64_t classes);

  // Integer class numbers, both [N]. Throws ShapeError, and IndexError for a number out of range;
  // nothing is counted then.
  void add(const Tensor& labels, const Tensor& predicted);

  int64_t classes() const { return classes_; }
  // Samples of class `label` that were taken for `predicted`.
  int64_t count(int64_t label, int64_t predicted) const;
  // Row-major [label, predicted].
  const std::vector<int64_t>& counts() const { return counts_; }
  int64_t total() const;
  int64_t correct() const;
  // correct() / total(), 0 to 1; NaN without samples.
  double accuracy() const;
  // The share of a class's samples that were recognized (its recall), 0 to 1; NaN without samples.
  double class_accuracy(int64_t label) const;

 private:
  int64_t classes_;
  std::vector<int64_t> counts_;
};

// An aligned table: a row for each class with its samples by what they were taken for, then how
// many they are and what share was right. `names` are "0", "1", .. where empty; otherwise one per
// class (ValueError).
std::string to_text(const ConfusionMatrix& matrix, const std::vector<std::string>& names = {});

}  // namespace kiln::train
