// TrainPlan: a configuration of `kiln train`, read and checked, with its data and its model.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/train/optimizers.h"
#include "cli/train/task_data.h"
#include "cli/train/task_step.h"
#include "cli/train/zoo.h"
#include "kiln/core/device.h"
#include "kiln/core/dtype.h"
#include "kiln/core/json.h"
#include "kiln/train/checkpoint_store.h"
#include "kiln/train/learner.h"

namespace kiln::cli {

struct TrainPlan {
  Json config;      // every field, with the defaults; files by their absolute paths
  std::string out;  // the run's folder
  TaskData data;
  ZooModel model;
  OptimizerPlan optimizer;
  SchedulePlan schedule;
  LossOptions loss;
  std::vector<std::string> metrics;
  int64_t epochs = 0;
  int64_t batch_size = 0;
  int64_t accumulate = 1;
  int64_t log_every = 10;
  int workers = 0;
  Device device;  // that computes; data are read on the CPU
  uint64_t seed = 0;
  std::optional<double> clip_norm, ema;
  std::optional<DType> precision;
  std::string weights;  // a file to begin with
  train::CheckpointPolicy keep;
  int64_t every_steps = 0;
  std::string best_metric;
  bool use_best = true;
  std::optional<train::EarlyStop> early_stop;

  int64_t batches() const;  // in an epoch
  int64_t steps_per_epoch() const;
  int64_t total_steps() const { return epochs * steps_per_epoch(); }
};

// A file of JSON. Throws UsageError, which says where it is malformed, IoError.
Json read_config_file(const std::string& path);
// "optimizer.lr=0.01": puts a value in, JSON or a text. Throws UsageError.
void set_field(Json& config, const std::string& assignment);

// `file` begins messages; relative paths of data are below `folder`. Opens the data, builds the
// model and draws nothing. Throws UsageError, IoError, ValueError.
TrainPlan read_plan(const std::string& file, const Json& config, const std::string& folder);

}  // namespace kiln::cli
