// TrainRun: one call of `kiln train`.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/runs/model_summary.h"
#include "cli/runs/run_folder.h"
#include "cli/train/metric_list.h"
#include "cli/train/plan.h"
#include "cli/train/run_team.h"
#include "kiln/dashboard/dashboard.h"
#include "kiln/train/interrupt.h"
#include "kiln/train/learner.h"
#include "kiln/train/progress.h"
#include "kiln/train/report.h"

namespace kiln::cli {

// The input of one sample, as the model takes it, with values that mean nothing.
Tensor blank_input(const ModelShape& shape);
// Two lines: the model and the data; how it is trained.
std::string describe(const TrainPlan& plan);
// The field of two configurations that differs and decides what a run computes; empty when none
// does. Epochs may differ: a run may go on for longer.
std::string differing_field(const Json& a, const Json& b, const std::string& path = "");

class TrainRun {
 public:
  // Throws UsageError when the folder holds a run and `resume` is not given, or another run than
  // this one. `wants_dashboard`: on the whole terminal, where there is one. In several processes
  // (`kiln launch`) the first one shows and writes.
  TrainRun(TrainPlan plan, bool resume, train::ProgressStyle style, bool wants_dashboard = false);

  // Trains, measures and writes everything. Returns the program's status: 0, or 128 + signal when
  // interrupted.
  int run();

 private:
  void prepare_folder(bool resume);
  train::LearnerOptions learner_options();
  void print_beginning();
  std::unique_ptr<dashboard::Dashboard> open_dashboard();
  void end_epoch(const train::NamedNumbers& values);
  void finish();
  void take_best();
  void write_results(const std::vector<train::NamedNumbers>& history,
                     const std::vector<double>& step_loss);
  void save_model();
  int end_interrupted();
  void write_state(const std::string& state, const std::string& error = "");
  bool quiet() const { return progress_.style() == train::ProgressStyle::quiet; }
  std::string file(const char* name) const;

  TrainPlan plan_;
  bool resume_;
  RunTeam team_;
  bool wants_dashboard_;
  train::Interrupt interrupt_;
  train::Progress progress_;
  std::optional<RunLock> lock_;  // of the first process
  RunState state_;
  MetricList metrics_;
  std::unique_ptr<optim::Optimizer> optimizer_;
  std::optional<optim::LambdaLR> schedule_;
  std::optional<data::DataLoader> training_, validation_, test_;
  std::optional<train::Learner> learner_;
  std::unique_ptr<dashboard::Dashboard> dashboard_;
  double epoch_start_ = 0;
};

}  // namespace kiln::cli
