// Learner: the loop that trains any model, and that goes on with the same bits after a kill.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kiln/core/device.h"
#include "kiln/core/dtype.h"
#include "kiln/data/data_loader.h"
#include "kiln/io/pickle_value.h"
#include "kiln/metrics/metric.h"
#include "kiln/nn/module.h"
#include "kiln/optim/grad_scaler.h"
#include "kiln/optim/lr_scheduler.h"
#include "kiln/optim/optimizer.h"
#include "kiln/train/checkpoint_store.h"
#include "kiln/train/progress.h"
#include "kiln/train/run_log.h"
#include "kiln/train/team.h"

namespace kiln::train {

// What a step makes of a batch.
struct StepResult {
  Tensor loss;          // made smaller; undefined: the step trained by itself
  Tensor outputs = {};  // for metrics
  Tensor targets = {};
  NamedNumbers numbers = {};  // averaged over samples and shown
};
using Step = std::function<StepResult(const data::Batch& batch)>;

// A metric, and how it sees a batch; it must outlive the learner.
struct LearnerMetric {
  std::string name;
  metrics::Metric* metric = nullptr;
  std::function<void(const Tensor& outputs, const Tensor& targets)> update = {};
};

struct LearnerSchedule {
  optim::LRScheduler* scheduler = nullptr;
  bool per_step = false;  // otherwise it counts epochs
};

// Ends a run when a metric ("valid/loss") has got no better for more than `patience` epochs.
struct EarlyStop {
  std::string metric = "valid/loss";
  int64_t patience = 3;
  bool larger_is_better = false;
};

struct LearnerOptions {
  int64_t epochs = 1;
  std::optional<int64_t> steps = {};  // of the optimizer, instead of epochs
  int64_t accumulate = 1;             // batches for one step
  std::optional<double> clip_norm = {};
  std::optional<double> clip_value = {};
  std::optional<DType> precision = {};  // bf16, or f16 with loss scaling: steps run in a region
  // Where the model is moved to, and each batch before its step. Metrics see outputs and targets on
  // the CPU.
  std::optional<Device> device = {};
  std::optional<double> ema = {};  // the decay of averaged weights, which are what is measured
  Step valid_step = {};            // the same as for training
  std::vector<LearnerMetric> metrics = {};
  std::vector<LearnerSchedule> schedules = {};
  std::optional<EarlyStop> early_stop = {};
  // Where logs and checkpoints go; empty: nowhere.
  std::string folder = {};
  CheckpointPolicy keep = {};
  std::string best_metric = "valid/loss";
  int64_t every_steps = 0;  // 0: only after epochs
  bool resume = false;      // goes on from the newest checkpoint, if there is one
  int64_t log_every = 50;   // steps
  Progress* progress = nullptr;
  // Asked after every step and before every batch that is measured; when true, the state is saved
  // and fit() ends there.
  std::function<bool()> should_stop = {};
  // The processes that train together, each with a learner and a part of the data. What is measured
  // is of all of them, the first one writes logs and checkpoints, and all go on from these. Random
  // numbers of a batch are a function of the first one's seed, the rank, the epoch and the batch.
  std::optional<Team> team = {};
  // After the state of a run that is gone on with has been loaded.
  std::function<void()> on_start = {};
  std::function<void()> on_step = {};
  std::function<void(const NamedNumbers& values)> on_epoch = {};
};

class Learner {
 public:
  using Split = std::pair<std::string, data::DataLoader*>;

  // Model and optimizers must outlive it; all optimizers step down the loss of a step. Throws
  // ValueError for options out of range.
  Learner(nn::Module& model, std::vector<optim::Optimizer*> optimizers, Step step,
          LearnerOptions options = {});

  // Trains until options.epochs epochs or options.steps steps are over, and measures the splits
  // after each epoch. False when should_stop() ended it. Throws ValueError when a loss is no finite
  // number, IoError when the last state cannot be written.
  bool fit(data::DataLoader& training, const std::vector<Split>& splits = {});
  // What the loss and the metrics are over a loader: "test/loss", ...
  NamedNumbers evaluate(data::DataLoader& loader, const std::string& split = "test");

  int64_t epoch() const { return epoch_; }  // that are over
  int64_t batch() const { return batch_; }  // of the present epoch
  int64_t step() const { return step_; }
  // Why early stopping ended the run; empty where it did not.
  const std::string& stop_reason() const { return stop_reason_; }
  // Of each epoch, what was measured.
  const std::vector<NamedNumbers>& history() const { return history_; }
  // Of a team: the mean over its processes.
  const std::vector<double>& step_loss() const { return step_loss_; }
  // The averages, in the order of the model's parameters; empty before the first step.
  const std::vector<Tensor>& averages() const { return averages_; }
  // Saves after the next step, where there is a folder.
  void save_soon() { is_late_ = true; }
  // Null without a folder.
  CheckpointStore* store() { return store_ ? &*store_ : nullptr; }
  RunLog* log() { return log_ ? &*log_ : nullptr; }

  // All that a run goes on from, between two steps. Tensors are the run's own.
  io::PickleValue state() const { return state(false); }
  // Throws ValueError for the state of another learner.
  void load_state(const io::PickleValue& state);

 private:
  // `apart`: what changes before the next step of an optimizer is a copy.
  io::PickleValue state(bool apart) const;
  void wait_copied();
  void open_folder();
  bool is_over() const;
  bool stopped() const;
  bool is_main() const { return !options_.team || options_.team->is_main(); }
  void begin_team(const data::DataLoader& training, const std::vector<Split>& splits);
  void follow_main();
  double team_mean(double value) const;
  void add_over_team(NamedNumbers& sums, double& samples) const;
  void take_own_sums();
  bool train_epoch(data::DataLoader& training);
  double train_batch(const data::Batch& batch, int64_t share);
  data::Batch placed(const data::Batch& batch) const;
  void take_step(bool own);
  bool measure(data::DataLoader& loader, const std::string& split, NamedNumbers& values);
  bool end_epoch(const std::vector<Split>& splits);
  void check_early_stop(const NamedNumbers& values);
  void swap_averages();
  void add_fields(const StepResult& result, double samples, NamedNumbers& sums);
  void append_values(const std::string& split, const NamedNumbers& sums, double samples,
                     NamedNumbers& values) const;
  void show();
  void save(double metric, bool wait);
  void finish_saving(bool anew);
  void note(const std::string& event, const std::string& text);

  nn::Module& model_;
  std::vector<optim::Optimizer*> optimizers_;
  Step train_step_;
  LearnerOptions options_;
  std::optional<amp::GradScaler> scaler_;
  std::optional<CheckpointStore> store_;
  std::optional<RunLog> log_;
  std::vector<Tensor> averages_;

  int64_t epoch_ = 0;
  int64_t batch_ = 0;
  int64_t step_ = 0;
  double samples_ = 0.0;  // of the present epoch
  NamedNumbers sums_;     // of numbers times samples
  // Of a team: what this process has of the present step. sums_ and samples_ are of all.
  NamedNumbers own_sums_;
  double own_samples_ = 0.0;
  uint64_t team_seed_ = 0;
  std::vector<NamedNumbers> history_;
  std::vector<double> step_loss_;
  double best_ = 0.0;  // of early stopping
  int64_t epochs_without_ = 0;
  std::string stop_reason_;
  bool is_late_ = false;  // a checkpoint is due
  // Whether copies for checkpoints may be made while the next step begins. Not where something
  // besides the optimizers' steps writes into weights.
  bool overlaps_ = true;
};

}  // namespace kiln::train
