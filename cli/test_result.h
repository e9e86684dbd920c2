// The last part of training and evaluation: how many test digits are read right.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "cli/digit_net.h"
#include "kiln/data/dataset.h"
#include "kiln/train/evaluate.h"
#include "kiln/train/report.h"

namespace kiln::cli {

struct TestResult {
  train::Evaluation evaluation;
  std::vector<train::Mistake> mistakes;  // the surest ones, at most `most_mistakes`
};

// `should_stop` may be empty.
TestResult test_digits(DigitNet& net, const data::DatasetHandle& test,
                       const std::function<bool()>& should_stop, size_t most_mistakes = 40);

// Prints the confusion matrix.
void print_confusion(const TestResult& result);
// Prints "test accuracy NN.NN %", the last line of train and eval.
void print_accuracy(const TestResult& result);

}  // namespace kiln::cli
