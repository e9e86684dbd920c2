#include "cli/training_run.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "cli/machine.h"
#include "kiln/core/error.h"
#include "kiln/core/parallel.h"
#include "kiln/io/model_file.h"
#include "kiln/train/text.h"

namespace kiln::cli {

namespace {

const char* const kConfigKey = "digits.config";
const char* const kStateKey = "digits.state";
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

const std::string& entry(const OutputFolder& out, const io::Metadata& metadata, const char* key) {
  const auto found = metadata.find(key);
  if (found == metadata.end()) {
    throw_error<IoError>("'", out.checkpoint(), "' is no checkpoint of `kiln digits train`");
  }
  return found->second;
}

}  // namespace

TrainConfig read_checkpoint_config(const OutputFolder& out) {
  if (!std::filesystem::exists(out.checkpoint())) {
    throw_error<IoError>("nothing to resume: there is no '", out.checkpoint(), "'");
  }
  const io::Metadata metadata = io::SafetensorsReader(out.checkpoint()).metadata();
  try {
    return train_config_from_json(entry(out, metadata, kConfigKey));
  } catch (const ValueError& e) {
    throw_error<IoError>("'", out.checkpoint(), "' is damaged: ", e.what());
  }
}

TrainingRun::TrainingRun(const TrainConfig& config, const OutputFolder& out,
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
      schedule_(make_schedule(optimizer_, total_steps())),
      trainer_(
          net_, [this](const Tensor& images) { return net_(images); }, optimizer_,
          trainer_options()) {}

int64_t TrainingRun::total_steps() const { return config_.epochs * training_.size(); }

train::TrainerOptions TrainingRun::trainer_options() {
  train::TrainerOptions options;
  options.epochs = config_.epochs;
  options.classes = kDigitClasses;
  options.scheduler = &schedule_;
  options.progress = &progress_;
  options.should_stop = [this] { return interrupt_.requested(); };
  options.save = [this](const train::TrainingState& state) { save_checkpoint(state); };
  options.on_epoch = [this](const train::EpochRecord& record) { print_epoch(record); };
  return options;
}

void TrainingRun::resume() {
  try {
    const io::Metadata metadata = io::load_checkpoint(out_.checkpoint(), net_, optimizer_);
    trainer_.set_state(train::training_state_from_json(entry(out_, metadata, kStateKey)));
  } catch (const ValueError& e) {
    throw_error<IoError>("'", out_.checkpoint(), "' is damaged: ", e.what());
  } catch (const RuntimeError& e) {
    throw_error<IoError>("'", out_.checkpoint(), "' is damaged: ", e.what());
  }
}

int TrainingRun::run() {
  print_beginning();
  if (!trainer_.fit(training_, validation_)) return end_interrupted();
  save_model();
  const data::DatasetHandle test = load_digit_test(config_.data);
  const TestResult result = test_digits(net_, test, [this] { return interrupt_.requested(); });
  if (!result.evaluation.complete) return end_interrupted();
  write_report(result);
  if (!quiet()) {
    std::printf("\n%s\n\n", describe_test(config_.data, test->size()).c_str());
    print_confusion(result);
    std::printf("\nmodel   %s\nreport  %s\n", out_.model().c_str(), out_.report().c_str());
  }
  print_accuracy(result);
  return 0;
}

void TrainingRun::print_beginning() {
  const train::TrainingState& state = trainer_.state();
  const std::string source =
      config_.data.empty() ? "built-in digits" : concat("digits of ", config_.data);
  progress_.print(concat("Training a convolutional network of ", train::grouped(net_.num_params()),
                         " parameters on ", train::grouped(data_.training->size()), " ", source,
                         ", ", num_threads(), num_threads() == 1 ? " thread" : " threads"));
  if (state.epoch >= config_.epochs) {
    progress_.print(
        concat("Training is complete: ", state.epoch, " epochs (for more, give --epochs)"));
  } else if (state.epoch > 0 || state.batch > 0) {
    progress_.print(concat("Continuing in epoch ", state.epoch + 1, " after batch ", state.batch,
                           " of ", training_.size()));
  }
}

void TrainingRun::print_epoch(const train::EpochRecord& record) {
  progress_.print(concat(
      "epoch ", record.epoch, "/", config_.epochs, "  loss ", train::fixed(record.train_loss, 4),
      "  accuracy ", train::percent(record.train_accuracy), "  validation: loss ",
      train::fixed(record.valid_loss, 4), "  accuracy ", train::percent(record.valid_accuracy),
      "  ", train::duration(record.seconds)));
}

// A disk that is full for a while should not cost a long training: the run goes on and says so.
void TrainingRun::save_checkpoint(const train::TrainingState& state) {
  try {
    io::save_checkpoint(out_.checkpoint(), net_, optimizer_,
                        {{kConfigKey, to_json(config_)}, {kStateKey, train::to_json(state)}});
  } catch (const IoError& e) {
    if (interrupt_.requested()) throw;
    progress_.finish();
    std::fprintf(stderr, "kiln: warning: no checkpoint: %s\n", e.what());
  }
}

void TrainingRun::save_model() {
  save_digit_net(net_, out_.model(),
                 {{"data", config_.data.empty() ? "built-in digits" : config_.data},
                  {"training_samples", concat(data_.training->size())},
                  {"epochs", concat(trainer_.state().epoch)},
                  {"seed", concat(config_.seed)},
                  {"kiln_version", KILN_VERSION}});
}

void TrainingRun::write_report(const TestResult& result) const {
  const train::TrainingState& state = trainer_.state();
  train::TrainingReport report;
  report.title = "Kiln digits";
  const std::string source = config_.data.empty() ? "built-in digits" : config_.data;
  report.subtitle = concat(train::grouped(data_.training->size()), " training samples, ", source,
                           ", ", date_and_time());
  report.config = {
      {"Data", source},
      {"Training samples", train::grouped(data_.training->size())},
      {"Validation samples", train::grouped(data_.validation->size())},
      {"Test samples", train::grouped(result.evaluation.confusion.total())},
      {"Epochs", concat(config_.epochs)},
      {"Batch size", concat(config_.batch_size)},
      {"Optimizer", optimizer_.type_name()},
      {"Highest learning rate", concat(config_.learning_rate)},
      {"Seed", concat(config_.seed)},
      {"Parameters", train::grouped(net_.num_params())},
  };
  report.machine = machine_facts();
  report.epochs = state.history;
  report.step_loss = state.step_loss;
  report.final_accuracy = result.evaluation.accuracy();
  report.confusion = result.evaluation.confusion.counts();
  report.mistakes = result.mistakes;
  train::write_html_report(out_.report(), report);
}

int TrainingRun::end_interrupted() {
  save_model();
  const train::TrainingState& state = trainer_.state();
  if (state.epoch >= config_.epochs) {
    std::printf("Interrupted after training, before the test.\n");
  } else {
    std::printf("Interrupted in epoch %lld of %lld, after batch %lld of %lld.\n",
                static_cast<long long>(state.epoch + 1), static_cast<long long>(config_.epochs),
                static_cast<long long>(state.batch), static_cast<long long>(training_.size()));
  }
  std::printf("Saved %s and %s\nContinue with: kiln digits train --resume --out %s\n",
              out_.checkpoint().c_str(), out_.model().c_str(), out_.path().c_str());
  return 128 + interrupt_.signal();
}

}  // namespace kiln::cli
