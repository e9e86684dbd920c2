#include "kiln/train/trainer.h"

#include <chrono>
#include <cmath>
#include <utility>

#include "kiln/core/error.h"
#include "kiln/tensor/ops.h"
#include "kiln/train/text.h"

namespace kiln::train {

namespace {

// Adds the time it lives to a number of seconds.
class Stopwatch {
 public:
  explicit Stopwatch(double& seconds) : seconds_(seconds) {}
  ~Stopwatch() {
    seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

 private:
  double& seconds_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace

Trainer::Trainer(nn::Module& model, Forward forward, optim::Optimizer& optimizer,
                 TrainerOptions options)
    : model_(model),
      forward_(std::move(forward)),
      optimizer_(optimizer),
      options_(std::move(options)) {}

bool Trainer::fit(data::DataLoader& training, data::DataLoader& validation) {
  while (state_.epoch < options_.epochs) {
    if (!train_epoch(training) || !validate(validation)) {
      if (options_.progress != nullptr) options_.progress->finish();
      if (options_.save) options_.save(state_);
      return false;
    }
    if (options_.on_epoch) options_.on_epoch(state_.history.back());
    if (options_.save) options_.save(state_);
  }
  return true;
}

// False when stopped.
bool Trainer::train_epoch(data::DataLoader& training) {
  const Stopwatch watch(state_.seconds);
  model_.train();
  const int64_t batches = training.size();
  if (options_.progress != nullptr) {
    options_.progress->start(concat("epoch ", state_.epoch + 1, "/", options_.epochs), batches,
                             state_.batch, (options_.epochs - state_.epoch - 1) * batches);
  }
  training.set_epoch(state_.epoch, state_.batch);
  for (const data::Batch& batch : training) {
    train_batch(batch, batches);
    if (options_.progress != nullptr && options_.progress->advance(batch.target().numel())) {
      options_.progress->show({{"loss", fixed(state_.loss.value(), 4)},
                               {"accuracy", percent(state_.accuracy.value())}});
    }
    if (stopped()) return false;
  }
  return true;
}

void Trainer::train_batch(const data::Batch& batch, int64_t batches_per_epoch) {
  if (options_.scheduler != nullptr) {
    options_.scheduler->set_epoch(state_.epoch * batches_per_epoch + state_.batch);
  }
  const Tensor& labels = batch.target();
  const Tensor logits = forward_(batch.input());
  functional::CrossEntropyLossOptions loss_options;
  loss_options.label_smoothing = options_.label_smoothing;
  const Tensor loss = functional::cross_entropy(logits, labels, loss_options);
  const double value = loss.item();
  if (!std::isfinite(value)) {
    throw_error<ValueError>("train: the loss is no finite number any more; got ", value,
                            " in epoch ", state_.epoch + 1, ", batch ", state_.batch + 1,
                            "; try a smaller learning rate");
  }
  optimizer_.zero_grad();
  loss.backward_accumulate();
  optimizer_.step();

  const auto samples = static_cast<double>(labels.numel());
  state_.loss.add(value, samples);
  state_.accuracy.add(static_cast<double>(count_correct(logits.detach(), labels)) / samples,
                      samples);
  state_.step_loss.push_back(value);
  ++state_.batch;
}

// Ends the epoch. False when stopped: then it is as if validation had not begun.
bool Trainer::validate(data::DataLoader& validation) {
  EpochRecord record;
  {
    const Stopwatch watch(state_.seconds);
    const Evaluation result = evaluate(model_, forward_, validation, options_.classes,
                                       {.should_stop = options_.should_stop});
    if (!result.complete) return false;
    record.valid_loss = result.loss;
    record.valid_accuracy = result.accuracy();
  }
  if (options_.progress != nullptr) options_.progress->finish();
  record.epoch = ++state_.epoch;
  record.train_loss = state_.loss.value();
  record.train_accuracy = state_.accuracy.value();
  record.seconds = std::exchange(state_.seconds, 0.0);
  record.learning_rate = optimizer_.param_groups()[0].lr;
  state_.history.push_back(record);
  state_.batch = 0;
  state_.loss = {};
  state_.accuracy = {};
  return true;
}

}  // namespace kiln::train
