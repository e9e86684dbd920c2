// What metrics of classifiers are given, brought to one form.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kiln/tensor/tensor.h"

namespace kiln::metrics {

// Predictions and targets by task:
//
//   binary      scores, logits or classes [N, ..]; targets 0 and 1 [N, ..]
//   multiclass  scores [N, C, ..], or classes [N, ..]; targets 0 to C - 1 [N, ..]
//   multilabel  scores, logits or decisions [N, L, ..]; targets 0 and 1 of the same shape
//
// Of binary and multilabel scores one is positive above the threshold. Where one of a call's scores
// is outside [0, 1], all of the call are logits, as in TorchMetrics; `from_logits` says it instead.
struct ClassOptions {
  std::string task = {};    // required
  double threshold = 0.5;   // binary and multilabel
  int64_t num_classes = 0;  // multiclass: 2 or more
  int64_t num_labels = 0;   // multilabel: 1 or more
  // Over classes or labels: micro counts all samples together, macro is the mean over classes that
  // occur, weighted weighs it with their samples, none gives each. Empty: micro; macro for areas
  // under curves and JaccardIndex.
  std::string average = {};
  int64_t top_k = 1;                         // multiclass: right when among the best k
  std::optional<int64_t> ignore_index = {};  // targets that count nothing
  double zero_division = 0.0;                // the value of 0 / 0
  std::optional<bool> from_logits = {};
};

// The options with an average, unless they have one.
ClassOptions with_average(ClassOptions options, const char* average);

enum class Task { binary, multiclass, multilabel };

// Throws ValueError for options that contradict one another.
Task checked_task(const char* op, const ClassOptions& options);
// 1, C or L.
size_t columns_of(const ClassOptions& options);
// "Accuracy(task=binary, threshold=0.5, ..)": the options that the task has.
std::string describe(const char* name, const ClassOptions& options);

// Decided classes: predicted[i] and target[i] belong together. For labels the values are 0 and 1
// and i counts rows and then labels; both are -1 where the target is ignored.
struct Decisions {
  std::vector<int64_t> predicted;
  std::vector<int64_t> target;
};
// Throws ShapeError, DTypeError, and IndexError for a class out of range.
Decisions decide(const char* op, const ClassOptions& options, const Tensor& preds,
                 const Tensor& target);

// Scores as probabilities, row by row with columns_of() columns, and targets: one class each row,
// or 0, 1, -1 (ignored) for each score.
struct Scores {
  std::vector<double> scores;
  std::vector<int64_t> target;
};
// Throws what decide() throws, DTypeError for scores that are no floats, ValueError for NaN.
Scores probabilities(const char* op, const ClassOptions& options, const Tensor& preds,
                     const Tensor& target);

}  // namespace kiln::metrics
