// The last part of training and evaluation: how many test digits are read right.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "cli/digit_net.h"
#include "kiln/data/dataset.h"
#include "kiln/train/report.h"

namespace kiln::cli {

struct TestResult {
  // Row-major [digit, what it was taken for].
  std::vector<int64_t> confusion = std::vector<int64_t>(kDigitClasses * kDigitClasses);
  std::vector<train::Mistake> mistakes;  // the surest ones, at most `most_mistakes`
  bool complete = false;                 // false when it was stopped

  int64_t count(int64_t digit, int64_t taken_for) const {
    return confusion[static_cast<size_t>(digit * kDigitClasses + taken_for)];
  }
  int64_t total() const;
  // The share of all digits, and of one, that was read right; NaN without samples.
  double accuracy() const;
  double accuracy(int64_t digit) const;
};

// `should_stop` may be empty.
TestResult test_digits(DigitNet& net, const data::DatasetHandle& test,
                       const std::function<bool()>& should_stop, size_t most_mistakes = 40);

// Prints the confusion matrix.
void print_confusion(const TestResult& result);
// Prints "test accuracy NN.NN %", the last line of train and eval.
void print_accuracy(const TestResult& result);

}  // namespace kiln::cli
