#include "kiln/train/learner.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kiln/core/error.h"
#include "kiln/core/random.h"
#include "kiln/optim/clip.h"
#include "kiln/tensor/amp/autocast.h"
#include "kiln/tensor/autograd/grad_mode.h"
#include "kiln/tensor/elementwise/in_place.h"
#include "kiln/tensor/ops.h"
#include "kiln/train/text.h"

namespace kiln::train {

namespace {

void check_options(const LearnerOptions& options) {
  const auto bad = [](const char* name, auto got, const char* expected) {
    throw_error<ValueError>("Learner: ", name, " is out of range; got ", got, "; expected ",
                            expected);
  };
  if (options.epochs < 0) bad("epochs", options.epochs, "0 or more");
  if (options.steps && *options.steps < 0) bad("steps", *options.steps, "0 or more");
  if (options.accumulate < 1) bad("accumulate", options.accumulate, "1 or more");
  if (options.clip_norm && !(*options.clip_norm > 0)) bad("clip_norm", *options.clip_norm, "> 0");
  if (options.clip_value && !(*options.clip_value > 0)) {
    bad("clip_value", *options.clip_value, "> 0");
  }
  if (options.ema && !(*options.ema >= 0 && *options.ema <= 1)) bad("ema", *options.ema, "0 to 1");
  if (options.every_steps < 0) bad("every_steps", options.every_steps, "0 or more");
  if (options.log_every < 1) bad("log_every", options.log_every, "1 or more");
  if (options.precision && *options.precision != bf16 && *options.precision != f16) {
    bad("precision", *options.precision, "bf16 or f16");
  }
  if (options.resume && options.folder.empty()) {
    throw ValueError("Learner: resume needs a folder; got none");
  }
}

double samples_of(const data::Batch& batch) {
  const Tensor& first = batch.input();
  return first.dim() > 0 ? static_cast<double>(first.size(0)) : 1.0;
}

void add_to(NamedNumbers& sums, const std::string& name, double value) {
  for (auto& [known, sum] : sums) {
    if (known == name) {
      sum += value;
      return;
    }
  }
  sums.emplace_back(name, value);
}

double find_in(const NamedNumbers& values, const std::string& name) {
  for (const auto& [known, value] : values) {
    if (known == name) return value;
  }
  return std::numeric_limits<double>::quiet_NaN();
}

class ModesKept {
 public:
  explicit ModesKept(nn::Module& model) : model_(model), before_(model.is_training()) {
    model_.eval();
  }
  ~ModesKept() { model_.train(before_); }
  ModesKept(const ModesKept&) = delete;
  ModesKept& operator=(const ModesKept&) = delete;

 private:
  nn::Module& model_;
  bool before_;
};

}  // namespace

Learner::Learner(nn::Module& model, std::vector<optim::Optimizer*> optimizers, Step step,
                 LearnerOptions options)
    : model_(model),
      optimizers_(std::move(optimizers)),
      train_step_(std::move(step)),
      options_(std::move(options)) {
  check_options(options_);
  if (!options_.valid_step) options_.valid_step = train_step_;
  if (options_.precision == f16) scaler_.emplace();
  if (options_.device) model_.to(*options_.device);
}

bool Learner::is_over() const {
  return options_.steps ? step_ >= *options_.steps : epoch_ >= options_.epochs;
}

bool Learner::fit(data::DataLoader& training, const std::vector<Split>& splits) {
  if (options_.team) begin_team(training, splits);
  if (is_main()) open_folder();
  if (options_.team) follow_main();
  if (options_.on_start) options_.on_start();
  while (stop_reason_.empty() && !is_over()) {
    if (!train_epoch(training) || !end_epoch(splits)) {
      if (options_.progress != nullptr) options_.progress->finish();
      if (store_) finish_saving(true);
      return false;
    }
  }
  if (options_.progress != nullptr) options_.progress->finish();
  if (store_) finish_saving(false);
  return true;
}

// False when should_stop() ended it. Batches are a function of the loader's seed, the epoch and
// their number, so that an epoch goes on in its middle.
bool Learner::train_epoch(data::DataLoader& training) {
  model_.train();
  if (batch_ == 0) {
    for (const LearnerMetric& m : options_.metrics) m.metric->reset();
  }
  const int64_t total = training.size();
  if (options_.progress != nullptr) {
    const int64_t later = options_.steps ? 0 : (options_.epochs - epoch_ - 1) * total;
    const std::string of = options_.steps ? "" : concat("/", options_.epochs);
    options_.progress->start(concat("epoch ", epoch_ + 1, of), total, batch_, later);
  }
  training.set_epoch(epoch_, batch_);
  // The last group of an epoch may be smaller than the others.
  int64_t share = std::min(options_.accumulate, std::max<int64_t>(total - batch_, 1));
  int64_t in_group = 0;
  double group_loss = 0;
  for (const data::Batch& batch : training) {
    if (options_.team) {
      const Team& team = *options_.team;
      manual_seed(batch_seed(team_seed_, team.rank, team.size, epoch_, batch_));
    }
    const double loss = train_batch(batch, share);
    ++batch_;
    const bool own = std::isnan(loss);
    group_loss += own ? 0.0 : loss;
    if (options_.progress != nullptr &&
        options_.progress->advance(static_cast<int64_t>(samples_of(batch)))) {
      show();
    }
    if (++in_group < share && !own) continue;
    take_step(own);
    if (options_.team) take_own_sums();
    if (!own) step_loss_.push_back(team_mean(group_loss / static_cast<double>(in_group)));
    ++step_;
    in_group = 0;
    group_loss = 0;
    share = std::min(options_.accumulate, std::max<int64_t>(total - batch_, 1));
    if (options_.on_step) options_.on_step();
    if (log_ && step_ % options_.log_every == 0) {
      NamedNumbers values;
      append_values("train", sums_, samples_, values);
      if (!optimizers_.empty()) values.emplace_back("lr", optimizers_[0]->param_groups()[0].lr);
      log_->numbers("step", epoch_, step_, values);
    }
    if (store_ && (is_late_ || (options_.every_steps > 0 && step_ % options_.every_steps == 0))) {
      save(std::numeric_limits<double>::quiet_NaN(), false);
    }
    if (stopped()) return false;
    if (options_.steps && step_ >= *options_.steps) break;
  }
  return true;
}

data::Batch Learner::placed(const data::Batch& batch) const {
  if (!options_.device) return batch;
  std::vector<Tensor> tensors;
  for (const Tensor& x : batch) tensors.push_back(x.to(*options_.device));
  return data::Batch(std::move(tensors));
}

// The loss; NaN of a step that trained by itself.
double Learner::train_batch(const data::Batch& batch, int64_t share) {
  StepResult result;
  if (options_.precision) {
    const amp::Autocast region(*options_.precision);
    result = train_step_(placed(batch));
  } else {
    result = train_step_(placed(batch));
  }
  const double samples = samples_of(batch);
  NamedNumbers& sums = options_.team ? own_sums_ : sums_;
  double value = std::numeric_limits<double>::quiet_NaN();
  if (result.loss.defined()) {
    value = result.loss.item();
    if (!std::isfinite(value)) {
      const std::string kept = store_ && !store_->list().empty()
                                   ? concat("; the last checkpoint is ", store_->list().back().path)
                                   : "";
      throw_error<ValueError>("Learner: the loss is no finite number any more; got ", value,
                              " in epoch ", epoch_ + 1, ", batch ", batch_ + 1,
                              "; expected a smaller learning rate, or clip_norm", kept);
    }
    Tensor loss = share == 1 ? result.loss : result.loss / static_cast<double>(share);
    if (scaler_) loss = scaler_->scale(loss);
    loss.backward_accumulate();
    add_to(sums, "loss", value * samples);
  }
  add_fields(result, samples, sums);
  (options_.team ? own_samples_ : samples_) += samples;
  return value;
}

void Learner::add_fields(const StepResult& result, double samples, NamedNumbers& sums) {
  for (const auto& [name, number] : result.numbers) add_to(sums, name, number * samples);
  if (!result.outputs.defined()) return;
  if (options_.metrics.empty()) return;
  const NoGradGuard no_grad;
  Tensor outputs = result.outputs.detach();
  Tensor targets = result.targets;
  if (options_.device) {
    outputs = outputs.to(Device());
    if (targets.defined()) targets = targets.to(Device());
  }
  if (options_.team) {
    outputs = options_.team->gather(outputs);
    if (targets.defined()) targets = options_.team->gather(targets);
  }
  for (const LearnerMetric& m : options_.metrics) m.update(outputs, targets);
}

void Learner::take_step(bool own) {
  wait_copied();
  if (own) {
    overlaps_ = false;  // its own steps do not wait for a copy
  } else {
    for (optim::Optimizer* optimizer : optimizers_) {
      if (options_.clip_norm || options_.clip_value) {
        if (scaler_) scaler_->unscale_(*optimizer);
        std::vector<Tensor> params;
        for (const optim::ParamGroup& group : optimizer->param_groups()) {
          params.insert(params.end(), group.params.begin(), group.params.end());
        }
        if (options_.clip_value) optim::clip_grad_value_(params, *options_.clip_value);
        if (options_.clip_norm) optim::clip_grad_norm_(params, *options_.clip_norm);
      }
      if (scaler_) {
        scaler_->step(*optimizer);
      } else {
        optimizer->step();
      }
      optimizer->zero_grad();
    }
    if (scaler_) scaler_->update();
  }
  if (options_.ema) {
    const NoGradGuard no_grad;
    const std::vector<Tensor> params = model_.parameters();
    const bool first = averages_.empty();
    for (size_t i = 0; i < params.size(); ++i) {
      if (first) {
        averages_.push_back(params[i].detach().clone());
      } else {
        lerp_(averages_[i], params[i].detach(), 1.0 - *options_.ema);
      }
    }
  }
  for (const LearnerSchedule& s : options_.schedules) {
    if (s.per_step) s.scheduler->step();
  }
}

// The model has the averages while it is measured.
void Learner::swap_averages() {
  if (averages_.empty()) return;
  wait_copied();
  const NoGradGuard no_grad;
  const std::vector<Tensor> params = model_.parameters();
  for (size_t i = 0; i < params.size(); ++i) {
    Tensor param = params[i].detach();
    const Tensor kept = param.clone();
    param.copy_(averages_[i]);
    averages_[i].copy_(kept);
  }
}

void Learner::append_values(const std::string& split, const NamedNumbers& sums, double samples,
                            NamedNumbers& values) const {
  for (const auto& [name, sum] : sums) {
    values.emplace_back(concat(split, "/", name), sum / samples);
  }
  for (const LearnerMetric& m : options_.metrics) {
    const Tensor value = m.metric->compute();
    const std::vector<double> numbers = value.to(f64).to_vector<double>();
    for (size_t i = 0; i < numbers.size(); ++i) {
      values.emplace_back(
          numbers.size() == 1 ? concat(split, "/", m.name) : concat(split, "/", m.name, "/", i),
          numbers[i]);
    }
  }
}

// False when should_stop() ended it. The metrics are as before afterwards, whatever happens.
bool Learner::measure(data::DataLoader& loader, const std::string& split, NamedNumbers& values) {
  std::vector<nn::StateDict> before;
  for (const LearnerMetric& m : options_.metrics) {
    before.push_back(m.metric->state_dict());
    m.metric->reset();
  }
  bool whole = true;
  const auto restore = [&] {
    swap_averages();
    for (size_t i = 0; i < before.size(); ++i) {
      options_.metrics[i].metric->load_state_dict(before[i]);
    }
  };
  swap_averages();
  try {
    const NoGradGuard no_grad;
    const ModesKept modes(model_);
    const amp::Autocast region(options_.precision.value_or(bf16), options_.precision.has_value());
    NamedNumbers sums;
    double samples = 0;
    for (const data::Batch& batch : loader) {
      if (stopped()) {
        whole = false;
        break;
      }
      const StepResult result = options_.valid_step(placed(batch));
      const double count = samples_of(batch);
      if (result.loss.defined()) add_to(sums, "loss", result.loss.item() * count);
      add_fields(result, count, sums);
      samples += count;
    }
    if (whole) {
      add_over_team(sums, samples);
      append_values(split, sums, samples, values);
    }
  } catch (...) {
    restore();
    throw;
  }
  restore();
  return whole;
}

NamedNumbers Learner::evaluate(data::DataLoader& loader, const std::string& split) {
  NamedNumbers values;
  measure(loader, split, values);
  return values;
}

// False when should_stop() ended it: then it is as if measuring had not begun.
bool Learner::end_epoch(const std::vector<Split>& splits) {
  NamedNumbers values;
  append_values("train", sums_, samples_, values);
  const RandomStream random = default_generator().state();
  for (const auto& [name, loader] : splits) {
    loader->set_epoch(epoch_);
    if (!measure(*loader, name, values)) {
      default_generator().set_state(random);
      return false;
    }
  }
  if (!optimizers_.empty()) values.emplace_back("lr", optimizers_[0]->param_groups()[0].lr);
  for (const LearnerSchedule& s : options_.schedules) {
    if (!s.per_step) s.scheduler->step();
  }
  ++epoch_;
  batch_ = 0;
  samples_ = 0;
  sums_.clear();
  for (const LearnerMetric& m : options_.metrics) m.metric->reset();
  history_.push_back(values);
  check_early_stop(values);
  if (options_.progress != nullptr) options_.progress->finish();
  if (options_.on_epoch) options_.on_epoch(values);
  if (log_) log_->numbers("epoch", epoch_, step_, values);
  if (store_) save(find_in(values, options_.best_metric), true);
  return true;
}

void Learner::check_early_stop(const NamedNumbers& values) {
  if (!options_.early_stop) return;
  const EarlyStop& stop = *options_.early_stop;
  const double value = find_in(values, stop.metric);
  if (std::isnan(value)) {
    throw_error<ValueError>("Learner: there is no metric '", stop.metric,
                            "' to stop by; expected one that is measured");
  }
  const bool better =
      history_.size() == 1 || (stop.larger_is_better ? value > best_ : value < best_);
  if (better) best_ = value;
  epochs_without_ = better ? 0 : epochs_without_ + 1;
  if (epochs_without_ > stop.patience) {
    stop_reason_ = concat(stop.metric, " was not better for ", epochs_without_, " epochs");
  }
}

void Learner::show() {
  std::vector<std::pair<std::string, std::string>> texts;
  for (const auto& [name, sum] : sums_) {
    const double value = sum / samples_;
    texts.emplace_back(name, name == "accuracy" ? percent(value) : fixed(value, 4));
  }
  options_.progress->show(std::move(texts));
}

}  // namespace kiln::train
