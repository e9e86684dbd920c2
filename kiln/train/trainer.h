// Trainer: the loop that trains a classifier: epochs, validation, progress, and a state that can be
// saved after any batch and continued.
#pragma once

#include <cstdint>
#include <functional>

#include "kiln/data/data_loader.h"
#include "kiln/nn/module.h"
#include "kiln/optim/lr_scheduler.h"
#include "kiln/optim/optimizer.h"
#include "kiln/train/evaluate.h"
#include "kiln/train/progress.h"
#include "kiln/train/training_state.h"

namespace kiln::train {

struct TrainerOptions {
  int64_t epochs = 1;
  int64_t classes = 2;
  double label_smoothing = 0.0;
  // Counts steps, not epochs: it is set to the number of steps made before each one.
  optim::LRScheduler* scheduler = nullptr;
  Progress* progress = nullptr;
  // Asked after every batch; when true, fit() comes to an end there.
  std::function<bool()> should_stop = {};
  // Called with the state after each epoch and when stopped: the place to write a checkpoint.
  std::function<void(const TrainingState&)> save = {};
  std::function<void(const EpochRecord&)> on_epoch = {};
};

class Trainer {
 public:
  // Model and optimizer must outlive it.
  Trainer(nn::Module& model, Forward forward, optim::Optimizer& optimizer,
          TrainerOptions options = {});

  // Trains until options.epochs epochs are over, from state() on; false when it was stopped before.
  // Batches are an input and class numbers [N]. Each epoch ends with an evaluation on `validation`.
  // Throws ValueError when the loss is no finite number any more.
  bool fit(data::DataLoader& training, data::DataLoader& validation);

  const TrainingState& state() const { return state_; }
  // Where to continue: model and optimizer must be as they were then.
  void set_state(TrainingState state) { state_ = std::move(state); }

 private:
  bool train_epoch(data::DataLoader& training);
  void train_batch(const data::Batch& batch, int64_t batches_per_epoch);
  bool validate(data::DataLoader& validation);
  bool stopped() const { return options_.should_stop && options_.should_stop(); }

  nn::Module& model_;
  Forward forward_;
  optim::Optimizer& optimizer_;
  TrainerOptions options_;
  TrainingState state_;
};

}  // namespace kiln::train
