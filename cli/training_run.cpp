#include "cli/training_run.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>

#include "cli/machine.h"
#include "cli/usage_error.h"
#include "kiln/core/error.h"
#include "kiln/core/parallel.h"
#include "kiln/core/warning.h"
#include "kiln/io/atomic_file.h"
#include "kiln/io/input_file.h"
#include "kiln/tensor/autograd/grad_mode.h"
#include "kiln/tensor/ops.h"
#include "kiln/train/text.h"

namespace kiln::cli {

namespace {

constexpr int64_t kValidationBatch = 256;

DigitNet make_net(const TrainConfig& config, const Normalization& pixels) {
  manual_seed(config.seed);
  DigitNet net(pixels);
  net.materialize();
  return net;
}

// Rises over the first tenth of the steps and falls along a cosine to 0.
optim::SequentialLR make_schedule(optim::Optimizer& optimizer, int64_t steps) {
  const int64_t rise = std::max<int64_t>(steps / 10, 1);
  return optim::SequentialLR(
      optimizer,
      {std::make_shared<optim::LinearLR>(optimizer, 0.1, 1.0, rise),
       std::make_shared<optim::CosineAnnealingLR>(optimizer, std::max<int64_t>(steps - rise, 1))},
      {rise});
}

double now() {
  using std::chrono::duration, std::chrono::system_clock;
  return duration<double>(system_clock::now().time_since_epoch()).count();
}

double find_in(const train::NamedNumbers& values, const char* name) {
  for (const auto& [known, value] : values) {
    if (known == name) return value;
  }
  return train::kNotMeasured;
}

train::EpochRecord record_of(const train::NamedNumbers& values, int64_t epoch, double seconds) {
  return {.epoch = epoch,
          .train_loss = find_in(values, "train/loss"),
          .train_accuracy = find_in(values, "train/accuracy"),
          .valid_loss = find_in(values, "valid/loss"),
          .valid_accuracy = find_in(values, "valid/accuracy"),
          .seconds = seconds,
          .learning_rate = find_in(values, "lr")};
}

}  // namespace

TrainConfig read_run_config(const OutputFolder& out) {
  if (!std::filesystem::exists(out.config())) {
    throw_error<IoError>("nothing to resume: there is no '", out.config(), "'");
  }
  const io::InputFile file("digits train", out.config());
  try {
    return train_config_from_json(file.read_whole(uint64_t{1} << 20));
  } catch (const ValueError& e) {
    throw_error<IoError>("'", out.config(), "' is none of `kiln digits train`: ", e.what());
  }
}

void check_replaceable(const OutputFolder& out) {
  if (!std::filesystem::exists(out.config())) return;
  try {
    read_run_config(out);
  } catch (const IoError&) {
    throw UsageError("'" + out.path() +
                     "' holds a run of another program; give --out another folder");
  }
}

TrainingRun::TrainingRun(const TrainConfig& config, const OutputFolder& out, bool resume,
                         train::ProgressStyle style)
    : config_(config),
      out_(out),
      progress_(style),
      data_(load_digit_training(config.data, config.samples)),
      training_(data_.training,
                {.batch_size = config.batch_size, .shuffle = true, .seed = config.seed}),
      validation_(data_.validation, {.batch_size = kValidationBatch}),
      net_(make_net(config, data_.pixels)),
      optimizer_(net_.parameters(), {.lr = config.learning_rate}),
      schedule_(make_schedule(optimizer_, total_steps())) {
  out_.prepare();  // after the data: a folder that is not there leaves no other one
  lock_.emplace(out_.path());
  if (resume) {
    if (const auto before = read_run_state(out_.path())) state_ = *before;
  } else {
    out_.clear();
  }
  io::write_file_atomically("digits train", out_.config(), to_json(config_) + "\n");
  state_.model = "digits";
  state_.data = config_.data.empty() ? "digits" : "mnist";
  state_.parameters = net_.num_params();
  state_.epochs = config_.epochs;
  state_.best_metric = "valid/accuracy";
  state_.larger_is_better = true;
  if (state_.started == 0) state_.started = now();
  learner_.emplace(
      net_, std::vector<optim::Optimizer*>{&optimizer_},
      [this](const data::Batch& batch) { return step(batch); }, learner_options(resume));
}

int64_t TrainingRun::total_steps() const { return config_.epochs * training_.size(); }

train::LearnerOptions TrainingRun::learner_options(bool resume) {
  train::LearnerOptions options;
  options.epochs = config_.epochs;
  options.schedules = {{&schedule_, true}};
  options.folder = out_.path();
  options.resume = resume;
  options.progress = &progress_;
  options.should_stop = [this] { return interrupt_.requested(); };
  options.on_start = [this] { print_beginning(); };
  options.on_epoch = [this](const train::NamedNumbers& values) { end_epoch(values); };
  return options;
}

train::StepResult TrainingRun::step(const data::Batch& batch) {
  const Tensor logits = net_(batch.input());
  train::StepResult result{functional::cross_entropy(logits, batch.target())};
  const NoGradGuard no_grad;
  const double right = logits.detach().argmax(1).eq(batch.target()).sum().item();
  result.numbers = {{"accuracy", right / static_cast<double>(batch.target().numel())}};
  return result;
}

int TrainingRun::run() {
  write_state("running");
  try {
    if (!learner_->fit(training_, {{"valid", &validation_}})) return end_interrupted();
  } catch (...) {
    write_state("failed");
    throw;
  }
  save_model();
  const data::DatasetHandle test = load_digit_test(config_.data);
  const TestResult result = test_digits(net_, test, [this] { return interrupt_.requested(); });
  if (!result.complete) return end_interrupted();
  state_.test = {{"test/accuracy", result.accuracy()}};
  write_report(result);
  if (!quiet()) {
    std::printf("\n%s\n\n", describe_test(config_.data, test->size()).c_str());
    print_confusion(result);
    std::printf("\nmodel   %s\nreport  %s\n", out_.model().c_str(), out_.report().c_str());
  }
  print_accuracy(result);
  write_state("finished");
  return 0;
}

void TrainingRun::print_beginning() {
  const std::string source =
      config_.data.empty() ? "built-in digits" : concat("digits of ", config_.data);
  progress_.print(concat("Training a convolutional network of ", train::grouped(net_.num_params()),
                         " parameters on ", train::grouped(data_.training->size()), " ", source,
                         ", ", num_threads(), num_threads() == 1 ? " thread" : " threads"));
  const int64_t epoch = learner_->epoch(), batch = learner_->batch();
  state_.seconds.resize(static_cast<size_t>(epoch));
  if (epoch >= config_.epochs) {
    progress_.print(concat("Training is complete: ", epoch, " epochs (for more, give --epochs)"));
  } else if (epoch > 0 || batch > 0) {
    progress_.print(concat("Continuing in epoch ", epoch + 1, " after batch ", batch, " of ",
                           training_.size()));
  }
  epoch_start_ = now();
}

void TrainingRun::end_epoch(const train::NamedNumbers& values) {
  const double end = now();
  state_.seconds.push_back(end - epoch_start_);
  epoch_start_ = end;
  const train::EpochRecord record = record_of(values, learner_->epoch(), state_.seconds.back());
  progress_.print(concat(
      "epoch ", record.epoch, "/", config_.epochs, "  loss ", train::fixed(record.train_loss, 4),
      "  accuracy ", train::percent(record.train_accuracy), "  validation: loss ",
      train::fixed(record.valid_loss, 4), "  accuracy ", train::percent(record.valid_accuracy),
      "  ", train::duration(record.seconds)));
  write_state("running");
}

// What the run says of itself must not end it.
void TrainingRun::write_state(const std::string& state) {
  state_.state = state;
  state_.ended = state == "running" ? 0 : now();
  try {
    write_run_state(out_.path(), state_);
  } catch (const IoError& e) {
    warn(e.what());
  }
}

void TrainingRun::save_model() {
  save_digit_net(net_, out_.model(),
                 {{"data", config_.data.empty() ? "built-in digits" : config_.data},
                  {"training_samples", concat(data_.training->size())},
                  {"epochs", concat(learner_->epoch())},
                  {"seed", concat(config_.seed)},
                  {"kiln_version", KILN_VERSION}});
}

void TrainingRun::write_report(const TestResult& result) const {
  train::TrainingReport report;
  report.title = "Kiln digits";
  const std::string source = config_.data.empty() ? "built-in digits" : config_.data;
  report.subtitle = concat(train::grouped(data_.training->size()), " training samples, ", source,
                           ", ", date_and_time());
  report.config = {
      {"Data", source},
      {"Training samples", train::grouped(data_.training->size())},
      {"Validation samples", train::grouped(data_.validation->size())},
      {"Test samples", train::grouped(result.total())},
      {"Epochs", concat(config_.epochs)},
      {"Batch size", concat(config_.batch_size)},
      {"Optimizer", optimizer_.type_name()},
      {"Highest learning rate", concat(config_.learning_rate)},
      {"Seed", concat(config_.seed)},
      {"Parameters", train::grouped(net_.num_params())},
  };
  report.machine = machine_facts();
  const std::vector<train::NamedNumbers>& history = learner_->history();
  for (size_t i = 0; i < history.size(); ++i) {
    report.epochs.push_back(
        record_of(history[i], static_cast<int64_t>(i) + 1,
                  i < state_.seconds.size() ? state_.seconds[i] : train::kNotMeasured));
  }
  report.step_loss = learner_->step_loss();
  report.final_accuracy = result.accuracy();
  report.confusion = result.confusion;
  report.mistakes = result.mistakes;
  train::write_html_report(out_.report(), report);
}

int TrainingRun::end_interrupted() {
  save_model();
  write_state("interrupted");
  const int64_t epoch = learner_->epoch();
  if (epoch >= config_.epochs) {
    std::printf("Interrupted after training, before the test.\n");
  } else {
    std::printf("Interrupted in epoch %lld of %lld, after batch %lld of %lld.\n",
                static_cast<long long>(epoch + 1), static_cast<long long>(config_.epochs),
                static_cast<long long>(learner_->batch()),
                static_cast<long long>(training_.size()));
  }
  std::printf("Saved %s and %s\nContinue with: kiln digits train --resume --out %s\n",
              out_.checkpoints().c_str(), out_.model().c_str(), out_.path().c_str());
  return 128 + interrupt_.signal();
}

}  // namespace kiln::cli
