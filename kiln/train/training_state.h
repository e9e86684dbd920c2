// TrainingState: where a training run stands, beside its model and optimizer.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kiln/train/metrics.h"
#include "kiln/train/report.h"

namespace kiln::train {

struct TrainingState {
  int64_t epoch = 0;  // epochs that are over
  // Of the epoch after those: what its first `batch` batches gave.
  int64_t batch = 0;
  RunningMean loss;
  RunningMean accuracy;  // 0 to 1
  double seconds = 0.0;

  std::vector<EpochRecord> history;  // of the epochs that are over
  std::vector<double> step_loss;     // of every batch so far
};

// As JSON, for a checkpoint; numbers come back exactly.
std::string to_json(const TrainingState& state);
// Throws ValueError for anything else than what to_json() writes.
TrainingState training_state_from_json(const std::string& json);

}  // namespace kiln::train
