#include "kiln/metrics/confusion.h"

#include <utility>

#include "kiln/tensor/creation.h"

namespace kiln::metrics {

ConfusionMatrix::ConfusionMatrix(ClassOptions options, std::string normalize)
    : options_(std::move(options)),
      normalize_(std::move(normalize)),
      task_(checked_task("ConfusionMatrix", options_)),
      classes_(task_ == Task::multiclass ? options_.num_classes : 2) {
  if (normalize_ != "none" && normalize_ != "true" && normalize_ != "pred" && normalize_ != "all") {
    throw_error<ValueError>("ConfusionMatrix: unknown normalize; got '", normalize_,
                            "'; expected none, true, pred or all");
  }
  const int64_t parts = task_ == Task::multilabel ? options_.num_labels : 1;
  if (classes_ > int64_t{1} << 12) {
    throw_error<ValueError>("ConfusionMatrix: too many classes; got ", classes_,
                            "; expected at most ", int64_t{1} << 12);
  }
  counts_.assign(static_cast<size_t>(parts * classes_ * classes_), 0);
}

void ConfusionMatrix::visit_state(StateVisitor& visitor) { visitor("counts", counts_, Join::sum); }

std::string ConfusionMatrix::description() const {
  return describe("ConfusionMatrix", options_) +
         (normalize_ == "none" ? "" : ", normalize=" + normalize_);
}

void ConfusionMatrix::update(const Tensor& preds, const Tensor& target) {
  const Decisions d = decide("ConfusionMatrix", options_, preds, target);
  const auto classes = static_cast<size_t>(classes_);
  const size_t parts = task_ == Task::multilabel ? columns_of(options_) : 1;
  for (size_t i = 0; i < d.target.size(); ++i) {
    if (d.target[i] < 0) continue;
    const auto t = static_cast<size_t>(d.target[i]), p = static_cast<size_t>(d.predicted[i]);
    ++counts_[((i % parts) * classes + t) * classes + p];
  }
}

Tensor ConfusionMatrix::compute() const {
  const Shape shape =
      task_ == Task::multilabel ? Shape{options_.num_labels, 2, 2} : Shape{classes_, classes_};
  if (normalize_ == "none") return from_vector(counts_, shape, {.dtype = i64});
  const Tensor counts =
      from_vector(std::vector<double>(counts_.begin(), counts_.end()), shape, {.dtype = f64});
  const Tensor whole = normalize_ == "true"   ? counts.sum(-1, true)
                       : normalize_ == "pred" ? counts.sum(-2, true)
                                              : counts.sum({-2, -1}, true);
  // 0 / 0 is 0.
  return counts.div(whole.clamp(1));
}

}  // namespace kiln::metrics
