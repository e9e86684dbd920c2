// TrainingRun: one call of `kiln digits train`.
#pragma once

#include <optional>
#include <string>

#include "cli/digit_data.h"
#include "cli/digit_net.h"
#include "cli/output_folder.h"
#include "cli/runs/run_folder.h"
#include "cli/test_result.h"
#include "cli/train_config.h"
#include "kiln/optim/optim.h"
#include "kiln/train/interrupt.h"
#include "kiln/train/learner.h"
#include "kiln/train/progress.h"

namespace kiln::cli {

// The settings that a run was started with. Throws IoError when the folder holds none of `kiln
// digits train`, or damaged ones.
TrainConfig read_run_config(const OutputFolder& out);
// Throws UsageError when the folder holds a run of another program, which would be lost.
void check_replaceable(const OutputFolder& out);

class TrainingRun {
 public:
  // With `resume` it goes to where the newest checkpoint is; else what an earlier run left is
  // replaced. Throws IoError.
  TrainingRun(const TrainConfig& config, const OutputFolder& out, bool resume,
              train::ProgressStyle style);

  // Trains, tests and writes everything. Returns the program's status: 0, or 128 + signal when
  // interrupted.
  int run();

 private:
  train::LearnerOptions learner_options(bool resume);
  train::StepResult step(const data::Batch& batch);
  void print_beginning();
  void end_epoch(const train::NamedNumbers& values);
  void write_state(const std::string& state);
  void save_model();
  void write_report(const TestResult& result) const;
  int end_interrupted();
  int64_t total_steps() const;
  bool quiet() const { return progress_.style() == train::ProgressStyle::quiet; }

  TrainConfig config_;
  OutputFolder out_;
  train::Interrupt interrupt_;
  train::Progress progress_;
  DigitTraining data_;
  data::DataLoader training_;
  data::DataLoader validation_;
  DigitNet net_;
  optim::AdamW optimizer_;
  optim::SequentialLR schedule_;
  std::optional<RunLock> lock_;
  RunState state_;
  double epoch_start_ = 0;
  std::optional<train::Learner> learner_;
};

}  // namespace kiln::cli
