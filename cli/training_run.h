// TrainingRun: one call of `kiln digits train`.
#pragma once

#include <memory>
#include <string>

#include "cli/digit_data.h"
#include "cli/digit_net.h"
#include "cli/output_folder.h"
#include "cli/test_result.h"
#include "cli/train_config.h"
#include "kiln/optim/optim.h"
#include "kiln/train/interrupt.h"
#include "kiln/train/progress.h"
#include "kiln/train/trainer.h"

namespace kiln::cli {

// The settings that an interrupted run was started with. Throws IoError when the folder has no
// checkpoint or a damaged one.
TrainConfig read_checkpoint_config(const OutputFolder& out);

class TrainingRun {
 public:
  TrainingRun(const TrainConfig& config, const OutputFolder& out, train::ProgressStyle style);

  // Goes to where the checkpoint is. Throws IoError when it is damaged.
  void resume();
  // Trains, tests and writes everything. Returns the program's status: 0, or 128 + signal when
  // interrupted.
  int run();

 private:
  train::TrainerOptions trainer_options();
  void print_beginning();
  void print_epoch(const train::EpochRecord& record);
  void save_checkpoint(const train::TrainingState& state);
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
  train::Trainer trainer_;
};

}  // namespace kiln::cli
