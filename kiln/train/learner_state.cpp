// What a Learner keeps: its state, its checkpoints.
#include <filesystem>
#include <limits>
#include <set>
#include <utility>

#include "kiln/core/error.h"
#include "kiln/core/warning.h"
#include "kiln/io/torch_file.h"
#include "kiln/tensor/autograd/grad_mode.h"
#include "kiln/tensor/creation.h"
#include "kiln/train/learner.h"

namespace kiln::train {

namespace {

using io::PickleDict;
using io::PickleList;
using io::PickleValue;

constexpr const char* kKind = "kiln::train::Learner";

PickleValue pickled(const NamedNumbers& numbers) {
  PickleDict out;
  for (const auto& [name, value] : numbers) out.set(name, value);
  return out;
}

PickleValue pickled(const nn::StateDict& state) { return io::pickle_of(state); }

// With copies of all tensors but those of these names.
nn::StateDict copied_but(nn::StateDict state, const std::set<std::string>& kept) {
  const NoGradGuard no_grad;
  for (const std::string& name : state.keys()) {
    if (!kept.contains(name)) state.set(name, state.at(name).clone());
  }
  return state;
}

PickleValue pickled(const optim::OptimizerState& state) {
  PickleDict scalars;
  for (const auto& [name, value] : state.scalars) scalars.set(name, value);
  PickleDict out;
  out.set("tensors", pickled(state.tensors));
  out.set("scalars", std::move(scalars));
  return out;
}

[[noreturn]] void malformed(const char* what, const char* expected) {
  throw_error<ValueError>("Learner: no state of this learner; got ", what, "; expected ", expected);
}

// The value of a key, of this kind.
template <class T>
const T& part(const PickleValue& state, const char* key) {
  const auto* dict = state.get<PickleDict>();
  const PickleValue* value = dict == nullptr ? nullptr : dict->find(key);
  const T* found = value == nullptr ? nullptr : value->get<T>();
  if (found == nullptr) malformed(key, "a state with it");
  return *found;
}

const PickleList& list_of(const PickleValue& state, const char* key, size_t size) {
  const auto& list = part<PickleList>(state, key);
  if (list.size() != size) malformed(key, "as many of them as this learner has");
  return list;
}

NamedNumbers numbers_of(const PickleValue& value) {
  const auto* dict = value.get<PickleDict>();
  if (dict == nullptr) malformed("numbers", "a dict");
  NamedNumbers out;
  for (const io::PickleItem& item : dict->items) {
    const auto* name = item.key.get<std::string>();
    const auto* number = item.value.get<double>();
    if (name == nullptr || number == nullptr) malformed("numbers", "numbers by name");
    out.emplace_back(*name, *number);
  }
  return out;
}

nn::StateDict tensors_of(const PickleValue& value) {
  const auto* dict = value.get<PickleDict>();
  if (dict == nullptr) malformed("tensors", "a dict");
  nn::StateDict out;
  for (const io::PickleItem& item : dict->items) {
    const auto* name = item.key.get<std::string>();
    const auto* tensor = item.value.get<Tensor>();
    if (name == nullptr || tensor == nullptr) malformed("tensors", "tensors by name");
    out.set(*name, *tensor);
  }
  return out;
}

optim::OptimizerState optimizer_state_of(const PickleValue& value) {
  optim::OptimizerState out;
  out.tensors = tensors_of(value["tensors"]);
  for (const io::PickleItem& item : part<PickleDict>(value, "scalars").items) {
    const auto* name = item.key.get<std::string>();
    const auto* text = item.value.get<std::string>();
    if (name == nullptr || text == nullptr) malformed("scalars", "texts by name");
    out.scalars[*name] = *text;
  }
  return out;
}

PickleValue pickled(uint64_t bits) { return static_cast<int64_t>(bits); }

}  // namespace

PickleValue Learner::state(bool apart) const {
  PickleDict out;
  out.set("kind", kKind);
  nn::StateDict model = model_.state_dict();
  if (apart) {
    std::set<std::string> weights;
    for (const auto& [name, value] : model_.named_parameters()) weights.insert(name);
    model = copied_but(std::move(model), weights);
  }
  out.set("model", pickled(model));
  PickleList optimizers, metrics, schedules, history, averages;
  for (const optim::Optimizer* o : optimizers_) optimizers.push_back(pickled(o->state_dict()));
  for (const LearnerMetric& m : options_.metrics) {
    nn::StateDict values = m.metric->state_dict();
    metrics.push_back(pickled(apart ? copied_but(std::move(values), {}) : values));
  }
  for (const LearnerSchedule& s : options_.schedules) {
    schedules.push_back(s.scheduler->last_epoch());
  }
  for (const NamedNumbers& values : history_) history.push_back(pickled(values));
  for (const Tensor& average : averages_) averages.push_back(average);
  out.set("optimizers", std::move(optimizers));
  out.set("metrics", std::move(metrics));
  out.set("schedules", std::move(schedules));
  out.set("history", std::move(history));
  out.set("averages", std::move(averages));
  if (scaler_) {
    out.set("scale", scaler_->state().scale);
    out.set("growth_tracker", scaler_->state().growth_tracker);
  }
  const RandomStream random = default_generator().state();
  out.set("seed", pickled(random.seed));
  out.set("offset", pickled(random.offset));
  if (options_.team) out.set("team_seed", pickled(team_seed_));
  out.set("epoch", epoch_);
  out.set("batch", batch_);
  out.set("step", step_);
  out.set("samples", samples_);
  out.set("sums", pickled(sums_));
  out.set("best", best_);
  out.set("epochs_without", epochs_without_);
  out.set("stop_reason", stop_reason_);
  Tensor losses = empty({static_cast<int64_t>(step_loss_.size())}, {f64});
  if (!step_loss_.empty()) losses = tensor(step_loss_, {f64});
  out.set("step_loss", losses);
  const RunLogPosition at = log_ ? log_->position() : RunLogPosition{};
  out.set("log", PickleList{at.json, at.csv, at.events, at.event_file});
  return out;
}

void Learner::load_state(const PickleValue& state) {
  wait_copied();
  if (part<std::string>(state, "kind") != kKind) malformed("another kind", kKind);
  const PickleList& optimizers = list_of(state, "optimizers", optimizers_.size());
  const PickleList& metrics = list_of(state, "metrics", options_.metrics.size());
  const PickleList& schedules = list_of(state, "schedules", options_.schedules.size());
  const bool scaled = state.get<PickleDict>()->find("scale") != nullptr;
  if (scaler_.has_value() != scaled) malformed("another precision", "the one of this learner");
  model_.load_state_dict(tensors_of(state["model"]));
  for (size_t i = 0; i < optimizers.size(); ++i) {
    optimizers_[i]->load_state_dict(optimizer_state_of(optimizers[i]));
  }
  for (size_t i = 0; i < metrics.size(); ++i) {
    options_.metrics[i].metric->load_state_dict(tensors_of(metrics[i]));
  }
  for (size_t i = 0; i < schedules.size(); ++i) {
    const auto* epoch = schedules[i].get<int64_t>();
    if (epoch == nullptr) malformed("schedules", "integers");
    options_.schedules[i].scheduler->set_epoch(*epoch);
  }
  // A schedule's set_epoch() sets rates; those that were in force are the optimizers' own.
  for (size_t i = 0; i < optimizers.size(); ++i) {
    optimizers_[i]->load_state_dict(optimizer_state_of(optimizers[i]));
  }
  averages_.clear();
  for (const PickleValue& average : part<PickleList>(state, "averages")) {
    const auto* value = average.get<Tensor>();
    if (value == nullptr) malformed("averages", "tensors");
    averages_.push_back(options_.device ? value->to(*options_.device) : value->clone());
  }
  if (scaler_) {
    amp::GradScalerState scale = scaler_->state();
    scale.scale = part<double>(state, "scale");
    scale.growth_tracker = part<int64_t>(state, "growth_tracker");
    scaler_->load_state(scale);
  }
  RandomStream random = default_generator().state();
  random.seed = static_cast<uint64_t>(part<int64_t>(state, "seed"));
  random.offset = static_cast<uint64_t>(part<int64_t>(state, "offset"));
  default_generator().set_state(random);
  if (state.get<PickleDict>()->find("team_seed") != nullptr) {
    team_seed_ = static_cast<uint64_t>(part<int64_t>(state, "team_seed"));
  }
  history_.clear();
  for (const PickleValue& values : part<PickleList>(state, "history")) {
    history_.push_back(numbers_of(values));
  }
  epoch_ = part<int64_t>(state, "epoch");
  batch_ = part<int64_t>(state, "batch");
  step_ = part<int64_t>(state, "step");
  samples_ = part<double>(state, "samples");
  sums_ = numbers_of(state["sums"]);
  best_ = part<double>(state, "best");
  epochs_without_ = part<int64_t>(state, "epochs_without");
  stop_reason_ = part<std::string>(state, "stop_reason");
  step_loss_ = part<Tensor>(state, "step_loss").to_vector<double>();
}

void Learner::open_folder() {
  if (options_.folder.empty() || store_) return;
  const std::filesystem::path folder(options_.folder);
  store_.emplace((folder / "checkpoints").string(), options_.keep);
  const std::vector<CheckpointInfo> found = store_->list();
  if (!found.empty() && !options_.resume) {
    store_.reset();
    throw_error<ValueError>("Learner: the folder '", options_.folder, "' holds a run of ",
                            found.back().step, " steps; expected resume = true to go on with it, ",
                            "or another folder");
  }
  RunLogPosition at;
  for (size_t i = found.size(); i > 0; --i) {
    const CheckpointInfo& info = found[i - 1];
    PickleValue state;
    try {
      state = io::load_torch(info.path);
    } catch (const IoError& e) {
      if (i == 1) throw;
      warn(concat("Learner: a checkpoint is passed over: ", e.what()));
      continue;
    }
    load_state(state);
    store_->discard_after(info.step);
    const PickleList& position = list_of(state, "log", 4);
    const auto number = [&](size_t k) {
      const auto* value = position[k].get<int64_t>();
      if (value == nullptr) malformed("log", "a position");
      return *value;
    };
    const auto* name = position[3].get<std::string>();
    at = {number(0), number(1), number(2), name == nullptr ? "" : *name};
    break;
  }
  log_.emplace(options_.folder, RunLogFormats{}, at);
}

// A disk that is full for a while must not end a run; at its end fit() waits, and throws.
void Learner::save(double metric, bool wait) {
  is_late_ = !(overlaps_ ? store_->save_overlapped(state(true), step_, metric, wait)
                         : store_->save(state(), step_, metric, wait));
  if (is_late_) return;
  const std::string error = store_->take_error();
  if (!error.empty()) note("warning", concat("no checkpoint could be written: ", error));
}

// What waits for a copy is what writes into weights.
void Learner::wait_copied() {
  if (!store_) return;
  if (store_->is_copying()) store_->wait_copied();
  if (!store_->take_spoiled()) return;
  overlaps_ = false;
  is_late_ = true;
  note("warning",
       "a checkpoint was given up: something besides the optimizers' steps writes into the state; "
       "from now on steps wait for copies");
}

// The end of fit(), or of a part of it: then the state is saved anew.
void Learner::finish_saving(bool anew) {
  wait_copied();
  if (anew || is_late_) save(std::numeric_limits<double>::quiet_NaN(), true);
  wait_copied();
  store_->wait();
}

void Learner::note(const std::string& event, const std::string& text) {
  if (options_.progress != nullptr) options_.progress->print(text);
  if (!log_) return;
  try {
    log_->note(event, epoch_, step_, text);
  } catch (const IoError& e) {
    warn(e.what());
  }
}

}  // namespace kiln::train
