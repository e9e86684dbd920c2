#include "cli/train/train_run.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>

#include "cli/train/run_report.h"
#include "kiln/core/error.h"
#include "kiln/core/parallel.h"
#include "kiln/core/warning.h"
#include "kiln/io/atomic_file.h"
#include "kiln/io/model_file.h"
#include "kiln/io/torch_file.h"
#include "kiln/tensor/autograd/grad_mode.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/ops.h"
#include "kiln/train/text.h"

namespace kiln::cli {

namespace {

namespace fs = std::filesystem;

double now() {
  using std::chrono::duration, std::chrono::system_clock;
  return duration<double>(system_clock::now().time_since_epoch()).count();
}

// Of a set that is not trained on.
data::DataLoaderOptions measuring(const TrainPlan& plan) {
  return {.batch_size = plan.batch_size, .num_workers = plan.workers};
}

std::string samples_text(const TrainPlan& plan) {
  std::string out = concat(train::grouped((*plan.data.training)->size()), " for training");
  if (plan.data.validation) {
    out += concat(", ", train::grouped((*plan.data.validation)->size()), " for validation");
  }
  if (plan.data.test)
    out += concat(", ", train::grouped((*plan.data.test)->size()), " for the test");
  return out;
}

}  // namespace

Tensor blank_input(const ModelShape& shape) {
  switch (shape.task) {
    case Task::table_classes:
    case Task::table_numbers:
      return zeros({1, shape.features});
    case Task::text_classes:
    case Task::language:
      return ones({1, shape.length}, {i64});
    default:
      return zeros({1, shape.channels, shape.height, shape.width});
  }
}

std::string describe(const TrainPlan& plan) {
  const int64_t steps = plan.steps_per_epoch();
  return concat("data       ", plan.data.kind, ": ", plan.data.text, "\nsamples    ",
                samples_text(plan), "\noptimizer  ", plan.optimizer.name, ", rate ",
                plan.optimizer.lr, ", ", plan.schedule.text(), "\nlength     ", plan.epochs,
                plan.epochs == 1 ? " epoch of " : " epochs of ", train::grouped(steps),
                steps == 1 ? " step" : " steps", ", ", plan.batch_size, " samples each",
                plan.accumulate > 1 ? concat(" in ", plan.accumulate, " batches") : "", "\n");
}

std::string differing_field(const Json& a, const Json& b, const std::string& path) {
  static const std::vector<std::string> free{"epochs",
                                             "out",
                                             "workers",
                                             "device",
                                             "log_every",
                                             "checkpoints.keep_last",
                                             "checkpoints.every_steps"};
  if (std::find(free.begin(), free.end(), path) != free.end() || a == b) return "";
  const auto *left = a.as<Json::Object>(), *right = b.as<Json::Object>();
  if (left == nullptr || right == nullptr) return path;
  const auto below = [&](const std::string& name) {
    return path.empty() ? name : path + "." + name;
  };
  for (const auto& [name, value] : *left) {
    const Json* other = b.find(name);
    std::string found = differing_field(value, other == nullptr ? Json() : *other, below(name));
    if (!found.empty()) return found;
  }
  for (const auto& [name, value] : *right) {
    if (a.find(name) == nullptr) return below(name);
  }
  return "";
}

TrainRun::TrainRun(TrainPlan plan, bool resume, train::ProgressStyle style, bool wants_dashboard)
    : plan_(std::move(plan)),
      resume_(resume),
      wants_dashboard_(wants_dashboard && team_.is_main() && dashboard::Screen::is_there()),
      progress_(team_.is_main() ? style : train::ProgressStyle::quiet) {
  if (team_.is_main()) {
    lock_.emplace(plan_.out);
    prepare_folder(resume);
  }
  team_.wait();  // whatever is wrong with the folder, the first one says
  manual_seed(plan_.seed);
  nn::Module& module = *plan_.model.module;
  if (!plan_.weights.empty()) io::load_model(module, plan_.weights);
  module.to(plan_.device);
  module.materialize();
  team_.share(module);
  optimizer_ = plan_.optimizer.make(module.parameters());
  const int64_t per_epoch = plan_.steps_per_epoch();
  schedule_.emplace(*optimizer_, [plan = plan_.schedule, total = plan_.total_steps(), per_epoch](
                                     int64_t step) { return plan.at(step, total, per_epoch); });
  metrics_ = make_metrics(plan_.metrics, plan_.data.shape);
  data::DataLoaderOptions options;
  options.batch_size = plan_.batch_size;
  options.shuffle = true;
  options.seed = plan_.seed;
  options.num_workers = plan_.workers;
  options.transform = plan_.data.transform;
  const auto part = [&](const data::DatasetHandle& set, const data::DataLoaderOptions& whole) {
    return data::DataLoader(set, team_.part_of(whole, set->size()));
  };
  training_.emplace(part(*plan_.data.training, options));
  if (plan_.data.validation) validation_.emplace(part(*plan_.data.validation, measuring(plan_)));
  if (plan_.data.test) test_.emplace(part(*plan_.data.test, measuring(plan_)));
  learner_.emplace(module, std::vector<optim::Optimizer*>{optimizer_.get()},
                   make_step(plan_.data, plan_.model, plan_.loss, plan_.data.mix, plan_.device),
                   learner_options());
  state_.model = plan_.model.name;
  state_.data = plan_.data.kind;
  state_.parameters = module.num_params();
  state_.epochs = plan_.epochs;
  state_.best_metric = plan_.best_metric;
  state_.larger_is_better = plan_.keep.larger_is_better;
}

std::string TrainRun::file(const char* name) const { return (fs::path(plan_.out) / name).string(); }

// A run that is there must be this one.
void TrainRun::prepare_folder(bool resume) {
  const std::string path = file("config.json");
  if (fs::exists(path)) {
    if (!resume) {
      throw UsageError(concat("the folder '", plan_.out, "' holds a run; give --resume to go on ",
                              "with it, or --out DIR for another folder"));
    }
    const std::string field = differing_field(read_config_file(path), plan_.config);
    if (!field.empty()) {
      throw UsageError(concat("--resume: ", field, " is not what the run in '", plan_.out,
                              "' began with; change it back, or give --out DIR for another run"));
    }
    if (const auto before = read_run_state(plan_.out)) state_ = *before;
  }
  state_.state = "running";
  if (state_.started == 0) state_.started = now();
  io::write_file_atomically("train", path, encode_json(plan_.config) + "\n");
}

train::LearnerOptions TrainRun::learner_options() {
  train::LearnerOptions options;
  options.epochs = plan_.epochs;
  options.accumulate = plan_.accumulate;
  options.clip_norm = plan_.clip_norm;
  options.precision = plan_.precision;
  options.ema = plan_.ema;
  options.device = plan_.device;
  options.valid_step = make_step(plan_.data, plan_.model, plan_.loss, {}, plan_.device);
  options.metrics = metrics_.metrics;
  options.schedules = {{&*schedule_, true}};
  options.early_stop = plan_.early_stop;
  options.folder = plan_.out;
  options.keep = plan_.keep;
  options.best_metric = plan_.best_metric;
  options.every_steps = plan_.every_steps;
  options.resume = resume_;
  options.log_every = plan_.log_every;
  options.team = team_.team();
  options.progress = &progress_;
  options.should_stop = [this] {
    if (dashboard_) dashboard_->poll(*learner_);
    return interrupt_.requested() || (dashboard_ && dashboard_->stops());
  };
  options.on_epoch = [this](const train::NamedNumbers& values) { end_epoch(values); };
  options.on_start = [this] { print_beginning(); };
  return options;
}

void TrainRun::print_beginning() {
  // A run that is taken further has another plan of rates: it holds from the next step on.
  if (learner_->step() > 0) schedule_->set_epoch(schedule_->last_epoch());
  progress_.print(
      concat("model      ", plan_.model.name, ", ", train::grouped(state_.parameters),
             " parameters, ", num_threads(), num_threads() == 1 ? " thread" : " threads",
             team_.size() == 1 ? "" : concat(" in each of ", team_.size(), " processes"),
             plan_.device == Device() ? "" : concat(", on ", plan_.device)));
  std::string text = describe(plan_);
  text.pop_back();
  progress_.print(text);
  progress_.print(concat("folder     ", plan_.out, "\n"));
  const int64_t epoch = learner_->epoch(), batch = learner_->batch();
  state_.seconds.resize(static_cast<size_t>(epoch));
  if (epoch >= plan_.epochs) {
    progress_.print(concat("Training is complete: ", epoch, " epochs (for more, raise epochs)"));
  } else if (epoch > 0 || batch > 0) {
    progress_.print(concat("Continuing in epoch ", epoch + 1, " after batch ", batch, " of ",
                           training_->size()));
  }
  epoch_start_ = now();
}

void TrainRun::end_epoch(const train::NamedNumbers& values) {
  const double end = now();
  state_.seconds.push_back(end - epoch_start_);
  epoch_start_ = end;
  const auto best =
      best_epoch(learner_->history(), plan_.best_metric, plan_.keep.larger_is_better).first;
  const std::string valid = split_text(values, "valid");
  progress_.print(concat("epoch ", learner_->epoch(), "/", plan_.epochs, "  ",
                         split_text(values, "train"), valid.empty() ? "" : "  valid: " + valid,
                         "  ", train::duration(state_.seconds.back()),
                         best == learner_->epoch() ? "  best" : ""));
  write_state("running");
}

// What the run says of itself must not end it.
void TrainRun::write_state(const std::string& state, const std::string& error) {
  if (!team_.is_main()) return;
  state_.state = state;
  state_.error = error;
  state_.ended = state == "running" ? 0 : now();
  try {
    write_run_state(plan_.out, state_);
  } catch (const IoError& e) {
    warn(e.what());
  }
}

std::unique_ptr<dashboard::Dashboard> TrainRun::open_dashboard() {
  dashboard::DashboardOptions options;
  options.title = concat(plan_.model.name, " on ", plan_.data.kind);
  options.metrics = plan_.metrics;
  options.steps_per_epoch = plan_.steps_per_epoch();
  options.is_share = is_share;
  options.interrupted = [this] { return interrupt_.requested(); };
  return std::make_unique<dashboard::Dashboard>(std::move(options), progress_);
}

int TrainRun::run() {
  write_state("running");
  try {
    std::vector<train::Learner::Split> splits;
    if (validation_) splits.emplace_back("valid", &*validation_);
    if (wants_dashboard_) dashboard_ = open_dashboard();
    const bool is_over = learner_->fit(*training_, splits);
    dashboard_.reset();
    if (!is_over) return end_interrupted();
    finish();
    if (interrupt_.requested()) return end_interrupted();
  } catch (const std::exception& e) {
    dashboard_.reset();
    progress_.finish();
    write_state("failed", e.what());
    throw;
  }
  write_state("finished");
  return 0;
}

// The averages, or the best checkpoint's weights, stand in the model from here on.
void TrainRun::take_best() {
  const auto best = team_.is_main() ? learner_->store()->best() : std::nullopt;
  const int64_t step = team_.of_main(best ? best->step : -1);
  if (plan_.use_best && step >= 0) {
    learner_->load_state(
        io::load_torch(train::CheckpointStore::path_of(file("checkpoints"), step)));
  }
  const NoGradGuard no_grad;
  // Copied, not moved: the learner measures with the averages in any case.
  const std::vector<Tensor>& averages = learner_->averages();
  const std::vector<Tensor> parameters = plan_.model.module->parameters();
  for (size_t i = 0; i < averages.size(); ++i) {
    Tensor parameter = parameters[i].detach();
    parameter.copy_(averages[i]);
  }
  plan_.model.module->eval();
}

void TrainRun::save_model() {
  Json facts = plan_.data.facts;
  facts.add("task", to_string(plan_.data.shape.task));
  facts.add("shape", to_json(plan_.data.shape));
  // Where it was written is no part of it: equal runs have equal files.
  Json::Object config = *plan_.config.as<Json::Object>();
  std::erase_if(config, [](const auto& member) { return member.first == "out"; });
  io::save_model(*plan_.model.module, file("model.safetensors"),
                 {{"config", encode_json(Json(std::move(config)), JsonFormat::text)},
                  {"facts", encode_json(facts, JsonFormat::text)},
                  {"kiln_version", KILN_VERSION}});
}

void TrainRun::finish() {
  const std::vector<train::NamedNumbers> history = learner_->history();
  const std::vector<double> step_loss = learner_->step_loss();
  take_best();
  team_.take_buffers(*plan_.model.module);
  state_.test.clear();
  if (test_) state_.test = learner_->evaluate(*test_, "test");
  if (team_.is_main()) write_results(history, step_loss);
}

void TrainRun::write_results(const std::vector<train::NamedNumbers>& history,
                             const std::vector<double>& step_loss) {
  const auto [epoch, value] = best_epoch(history, plan_.best_metric, plan_.keep.larger_is_better);
  if (!quiet()) {
    if (const std::string& reason = learner_->stop_reason(); !reason.empty()) {
      std::printf("Stopped early: %s\n", reason.c_str());
    }
    if (epoch > 0) {
      std::printf("\nbest %s %s in epoch %lld\n", plan_.best_metric.c_str(),
                  value_text(plan_.best_metric, value).c_str(), static_cast<long long>(epoch));
    }
  }
  save_model();
  const train::Step step = make_step(plan_.data, plan_.model, plan_.loss, {}, plan_.device);
  const auto stopped = [this] { return interrupt_.requested(); };
  if (stopped()) return;
  train::TrainingReport report = make_report(plan_, state_, history, step_loss);
  if (test_ || validation_) {
    data::DataLoader loader(test_ ? *plan_.data.test : *plan_.data.validation, measuring(plan_));
    loader.set_epoch(0);
    add_mistakes(report, plan_, loader, step, stopped);
  }
  if (stopped()) return;
  train::write_html_report(file("report.html"), report);
  const int64_t skipped = plan_.data.skipped ? plan_.data.skipped() : 0;
  if (skipped > 0) {
    std::printf("left out  %lld bad sample%s\n", static_cast<long long>(skipped),
                skipped == 1 ? "" : "s");
  }
  if (!quiet()) {
    std::printf("model   %s\nreport  %s\n", file("model.safetensors").c_str(),
                file("report.html").c_str());
  }
  const std::string last =
      test_ ? "test: " + split_text(state_.test, "test")
      : validation_ && epoch > 0
          ? concat("valid: ", split_text(history[static_cast<size_t>(epoch) - 1], "valid"))
          : concat("train: ", split_text(history.back(), "train"));
  std::printf("%s\n", last.c_str());
}

int TrainRun::end_interrupted() {
  progress_.finish();
  // A key of the dashboard asks as Ctrl-C does.
  const int status = 128 + (interrupt_.requested() ? interrupt_.signal() : SIGINT);
  if (!team_.is_main()) return status;
  write_state("interrupted");
  const int64_t epoch = learner_->epoch();
  if (epoch >= plan_.epochs) {
    std::printf("Interrupted after training, before the end of the test.\n");
  } else {
    std::printf("Interrupted in epoch %lld of %lld, after batch %lld of %lld.\n",
                static_cast<long long>(epoch + 1), static_cast<long long>(plan_.epochs),
                static_cast<long long>(learner_->batch()),
                static_cast<long long>(training_->size()));
  }
  std::printf("Saved in %s\nContinue with: kiln train %s --resume\n", plan_.out.c_str(),
              plan_.out.c_str());
  return status;
}

}  // namespace kiln::cli
