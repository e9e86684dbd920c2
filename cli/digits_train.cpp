// `kiln digits train`.
#include <cstdio>
#include <filesystem>
#include <optional>

#include <CLI/CLI.hpp>

#include "cli/digits.h"
#include "cli/training_run.h"
#include "cli/usage_error.h"
#include "kiln/core/error.h"
#include "kiln/core/parallel.h"

namespace kiln::cli {

namespace {

// What was typed; what was not typed is empty.
struct Flags {
  std::optional<std::string> data;
  std::optional<int64_t> samples;
  std::optional<int64_t> epochs;
  std::optional<int64_t> batch_size;
  std::optional<double> learning_rate;
  std::optional<uint64_t> seed;
  std::string out = "kiln-digits";
  int threads = 0;
  bool resume = false;
  bool quiet = false;
  bool plain = false;
};

template <class T>
void take(const std::optional<T>& flag, T& setting) {
  if (flag) setting = *flag;
}

// With --resume, a flag may repeat a setting and not change it.
template <class T>
void agree(const char* name, const std::optional<T>& flag, const T& setting) {
  if (flag && *flag != setting) {
    throw UsageError(concat(name, " ", *flag, " differs from what training began with, ",
                            setting == T() ? std::string("the default") : concat(setting),
                            "; leave it out, or train anew without --resume"));
  }
}

std::string absolute(const std::string& path) {
  return path.empty() ? path : std::filesystem::absolute(path).lexically_normal().string();
}

TrainConfig new_config(const Flags& flags) {
  TrainConfig config;
  // MNIST has twice the samples and is done sooner with them.
  if (flags.data) config.epochs = 3;
  take(flags.data, config.data);
  config.data = absolute(config.data);
  take(flags.samples, config.samples);
  take(flags.epochs, config.epochs);
  take(flags.batch_size, config.batch_size);
  take(flags.learning_rate, config.learning_rate);
  take(flags.seed, config.seed);
  return config;
}

TrainConfig resumed_config(const Flags& flags, const OutputFolder& out) {
  TrainConfig config = read_checkpoint_config(out);
  agree("--samples", flags.samples, config.samples);
  agree("--batch-size", flags.batch_size, config.batch_size);
  agree("--lr", flags.learning_rate, config.learning_rate);
  agree("--seed", flags.seed, config.seed);
  // The data may have moved, and training may go on for longer than was planned.
  if (flags.data) config.data = absolute(*flags.data);
  take(flags.epochs, config.epochs);
  return config;
}

train::ProgressStyle style_of(const Flags& flags) {
  if (flags.quiet) return train::ProgressStyle::quiet;
  return flags.plain ? train::ProgressStyle::plain : train::ProgressStyle::automatic;
}

int run(const Flags& flags) {
  if (flags.threads > 0) set_num_threads(flags.threads);
  const OutputFolder out(flags.out);
  const TrainConfig config = flags.resume ? resumed_config(flags, out) : new_config(flags);
  TrainingRun training(config, out, style_of(flags));
  if (flags.resume) training.resume();
  return training.run();
}

}  // namespace

void add_digits_train(CLI::App& digits, int& status) {
  CLI::App* train = digits.add_subcommand(
      "train",
      "Trains a convolutional network, on built-in digits or on MNIST.\n"
      "The built-in digits are drawn by the program itself. Writes model.safetensors, report.html\n"
      "and checkpoint.safetensors to a folder; what an earlier run left there is replaced. Ctrl-C\n"
      "saves, and --resume continues as if nothing had happened.");
  auto flags = std::make_shared<Flags>();
  const auto whole = [&](const char* name, auto& value, const char* text, const char* preset) {
    return train->add_option(name, value, text)->type_name("N")->default_str(preset);
  };
  const CLI::Range at_least_one(int64_t{1}, int64_t{1} << 31);
  train->add_option("--out", flags->out, "folder for the results")
      ->type_name("DIR")
      ->default_str(flags->out);
  train
      ->add_option("--data", flags->data,
                   "folder with MNIST's four files, gzipped or not\n"
                   "(default: the built-in digits)")
      ->type_name("DIR");
  whole("--samples", flags->samples,
        "training samples to use; 24000 built-in digits or\n"
        "all of the folder unless given",
        "")
      ->check(at_least_one);
  whole("--epochs", flags->epochs, "how often to go through them", "5; 3 with --data")
      ->check(at_least_one);
  whole("--batch-size", flags->batch_size, "samples in a step", "64")->check(at_least_one);
  train->add_option("--lr", flags->learning_rate, "highest learning rate")
      ->type_name("RATE")
      ->default_str("0.002")
      ->check(CLI::PositiveNumber);
  whole("--seed", flags->seed, "of the initial weights and the order of samples", "1");
  whole("--threads", flags->threads, "threads to use", "all processors")
      ->check(CLI::Range(1, 4096));
  train->add_flag("--resume", flags->resume, "continue from the checkpoint in --out");
  train->add_flag("--quiet", flags->quiet, "print the last line only");
  train->add_flag("--plain", flags->plain, "print lines, without a progress bar");
  train->callback([flags, &status] { status = run(*flags); });
}

}  // namespace kiln::cli
