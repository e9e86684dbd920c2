// How often each class was taken for each.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kiln/metrics/class_inputs.h"
#include "kiln/metrics/metric.h"

namespace kiln::metrics {

// compute(): [target, predicted], [2, 2] for binary, [C, C], or [L, 2, 2] for labels.
class ConfusionMatrix final : public Cloned<ConfusionMatrix> {
 public:
  // normalize: "none" (i64 counts), or f64 shares: "true" of each row, "pred" of each column,
  // "all". Throws ValueError.
  explicit ConfusionMatrix(ClassOptions options, std::string normalize = "none");

  // See ClassOptions. Throws ShapeError, DTypeError, IndexError; nothing is counted then.
  void update(const Tensor& preds, const Tensor& target);
  Tensor compute() const override;
  std::string description() const override;

 private:
  void visit_state(StateVisitor& visitor) override;

  ClassOptions options_;
  std::string normalize_;
  Task task_;
  int64_t classes_;
  std::vector<int64_t> counts_;
};

}  // namespace kiln::metrics
