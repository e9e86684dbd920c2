#include "cli/train/metric_list.h"

#include <algorithm>

#include "kiln/metrics/metrics.h"
#include "kiln/tensor/ops.h"

namespace kiln::cli {

namespace {

using Names = std::vector<std::string>;

// Outputs of a segmentation as rows of scores, and so on: what the metric takes.
template <class M>
void add(MetricList& list, const std::string& name, std::unique_ptr<M> metric) {
  M* const raw = metric.get();
  list.metrics.push_back({name, raw, [raw](const Tensor& outputs, const Tensor& targets) {
                            raw->update(outputs, targets);
                          }});
  list.kept.push_back(std::move(metric));
}

metrics::ClassOptions classes(const ModelShape& shape, const char* average = "") {
  metrics::ClassOptions o;
  o.task = "multiclass";
  o.num_classes = shape.classes;
  o.average = average;
  return o;
}

// Logits [N, T, V] and ids [N, T], of which 0 counts nothing.
void add_token_accuracy(MetricList& list, const ModelShape& shape) {
  auto o = classes(shape);
  o.ignore_index = 0;
  auto metric = std::make_unique<metrics::Accuracy>(o);
  auto* const raw = metric.get();
  list.metrics.push_back({"accuracy", raw, [raw](const Tensor& outputs, const Tensor& targets) {
                            raw->update(outputs.argmax(-1), targets);
                          }});
  list.kept.push_back(std::move(metric));
}

void add_classes(MetricList& list, const std::string& name, const ModelShape& shape) {
  using namespace metrics;
  if (name == "balanced_accuracy") {
    add(list, name, std::make_unique<Recall>(classes(shape, "macro")));
  }
  if (name == "top5") {
    auto o = classes(shape);
    o.top_k = std::min<int64_t>(5, shape.classes);
    add(list, name, std::make_unique<Accuracy>(o));
  }
  if (name == "precision") add(list, name, std::make_unique<Precision>(classes(shape, "macro")));
  if (name == "recall") add(list, name, std::make_unique<Recall>(classes(shape, "macro")));
  if (name == "f1") add(list, name, std::make_unique<F1Score>(classes(shape, "macro")));
  if (name == "iou") add(list, name, std::make_unique<JaccardIndex>(classes(shape, "macro")));
  auto scores = classes(shape);
  scores.from_logits = true;
  if (name == "auroc") add(list, name, std::make_unique<AUROC>(scores));
  if (name == "average_precision") add(list, name, std::make_unique<AveragePrecision>(scores));
  if (name == "calibration_error") add(list, name, std::make_unique<CalibrationError>(scores));
}

void add_numbers(MetricList& list, const std::string& name) {
  using namespace metrics;
  if (name == "mae") add(list, name, std::make_unique<MeanAbsoluteError>());
  if (name == "mse") add(list, name, std::make_unique<MeanSquaredError>());
  if (name == "rmse") add(list, name, std::make_unique<MeanSquaredError>(false));
  if (name == "r2") add(list, name, std::make_unique<R2Score>());
}

}  // namespace

Names metric_names(Task task) {
  switch (task) {
    case Task::table_numbers:
      return {"mae", "mse", "rmse", "r2"};
    case Task::segmentation:
      return {"accuracy", "iou", "precision", "recall", "f1"};
    case Task::language:
      return {"perplexity", "accuracy"};
    case Task::image_codes:
      return {"mse", "mae"};
    default:
      return {
          "accuracy",          "balanced_accuracy", "top5", "precision", "recall", "f1", "auroc",
          "average_precision", "calibration_error"};
  }
}

Names usual_metrics(Task task) {
  switch (task) {
    case Task::table_numbers:
      return {"mae", "rmse", "r2"};
    case Task::segmentation:
      return {"accuracy", "iou"};
    case Task::language:
      return {"perplexity", "accuracy"};
    case Task::image_codes:
      return {"mse"};
    default:
      return {"accuracy"};
  }
}

bool is_larger_better(const std::string& metric) {
  const std::string name = metric.substr(metric.rfind('/') + 1);
  static const Names smaller{"loss", "mae", "mse", "rmse", "perplexity", "calibration_error"};
  return std::find(smaller.begin(), smaller.end(), name) == smaller.end();
}

bool is_share(const std::string& metric) {
  const std::string name = metric.substr(metric.rfind('/') + 1);
  static const Names shares{"accuracy", "balanced_accuracy", "top5", "precision", "recall", "f1",
                            "iou"};
  return std::find(shares.begin(), shares.end(), name) != shares.end();
}

bool counts_in_step(Task task) {
  return task != Task::language && task != Task::table_numbers && task != Task::image_codes;
}

MetricList make_metrics(const Names& names, const ModelShape& shape) {
  MetricList list;
  for (const std::string& name : names) {
    if (shape.task == Task::table_numbers || shape.task == Task::image_codes) {
      add_numbers(list, name);
    } else if (shape.task == Task::language) {
      if (name == "accuracy") add_token_accuracy(list, shape);
      if (name == "perplexity") add(list, name, std::make_unique<metrics::Perplexity>(0));
    } else {
      add_classes(list, name, shape);
    }
  }
  return list;
}

}  // namespace kiln::cli
