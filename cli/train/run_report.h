// What `kiln train` says about a run: a line for each epoch, and the report.
#pragma once

#include <string>

#include "cli/runs/run_folder.h"
#include "cli/train/plan.h"
#include "kiln/train/learner.h"
#include "kiln/train/report.h"

namespace kiln::cli {

// "98.50 %" or "0.0312", as fits the metric.
std::string value_text(const std::string& metric, double value);
// "loss 0.1234  accuracy 98.50 %" of the values of a split.
std::string split_text(const train::NamedNumbers& values, const std::string& split);
// The best epoch's number (from 1) and value by a metric; 0 where none was measured.
std::pair<int64_t, double> best_epoch(const std::vector<train::NamedNumbers>& history,
                                      const std::string& metric, bool larger_is_better);

// The report of what a run has measured so far.
train::TrainingReport make_report(const TrainPlan& plan, const RunState& state,
                                  const std::vector<train::NamedNumbers>& history,
                                  const std::vector<double>& step_loss);
// Adds the confusion matrix and what was misread, of a classifier that is in eval mode. Stops when
// `should_stop` says so.
void add_mistakes(train::TrainingReport& report, const TrainPlan& plan, data::DataLoader& loader,
                  const train::Step& step, const std::function<bool()>& should_stop);

}  // namespace kiln::cli
