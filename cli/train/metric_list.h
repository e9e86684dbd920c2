// The metrics that a configuration may name, by task.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cli/train/zoo.h"
#include "kiln/train/learner.h"

namespace kiln::cli {

std::vector<std::string> metric_names(Task task);
// What is measured where the configuration says nothing.
std::vector<std::string> usual_metrics(Task task);
// Of "accuracy", "valid/rmse" and so on.
bool is_larger_better(const std::string& metric);
// Whether it is shown in percent.
bool is_share(const std::string& metric);

// Whether the accuracy is a number of the step, which the bar shows (see LossOptions).
bool counts_in_step(Task task);

// Metrics for a Learner, which keep what they point to; without those that the step counts.
struct MetricList {
  std::vector<std::unique_ptr<metrics::Metric>> kept;
  std::vector<train::LearnerMetric> metrics;
};
MetricList make_metrics(const std::vector<std::string>& names, const ModelShape& shape);

}  // namespace kiln::cli
