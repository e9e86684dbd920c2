#include "cli/digits_train.h"

#include <filesystem>
#include <optional>

#include "cli/digit_data.h"
#include "cli/training_run.h"
#include "cli/usage_error.h"
#include "kiln/core/error.h"
#include "kiln/core/parallel.h"

namespace kiln::cli {

namespace {

template <class T>
void take(const std::optional<T>& flag, T& setting) {
  if (flag) setting = *flag;
}

// With --resume, a flag may repeat a setting and not change it.
template <class T>
void agree(const char* name, const std::optional<T>& flag, const T& setting) {
  if (flag && *flag != setting) {
    throw UsageError(concat(name, " ", *flag, " is not what this training began with (", setting,
                            "); leave it out, or train anew without --resume"));
  }
}

std::string absolute(const std::string& path) {
  return path.empty() ? path : std::filesystem::absolute(path).lexically_normal().string();
}

TrainConfig new_config(const DigitsTrainFlags& flags) {
  TrainConfig config;
  // MNIST has twice the samples and is done sooner with them.
  if (flags.data) config.epochs = 3;
  take(flags.data, config.data);
  config.data = absolute(config.data);
  if (config.data.empty()) config.samples = kBuiltInTraining;
  take(flags.samples, config.samples);
  take(flags.epochs, config.epochs);
  take(flags.batch_size, config.batch_size);
  take(flags.learning_rate, config.learning_rate);
  take(flags.seed, config.seed);
  return config;
}

TrainConfig resumed_config(const DigitsTrainFlags& flags, const OutputFolder& out) {
  TrainConfig config = read_run_config(out);
  agree("--samples", flags.samples, config.samples);
  agree("--batch-size", flags.batch_size, config.batch_size);
  agree("--lr", flags.learning_rate, config.learning_rate);
  agree("--seed", flags.seed, config.seed);
  // The data may have moved, and training may go on for longer than was planned.
  if (flags.data) config.data = absolute(*flags.data);
  take(flags.epochs, config.epochs);
  return config;
}

train::ProgressStyle style_of(const DigitsTrainFlags& flags) {
  if (flags.quiet) return train::ProgressStyle::quiet;
  return flags.plain ? train::ProgressStyle::plain : train::ProgressStyle::automatic;
}

}  // namespace

int digits_train(const DigitsTrainFlags& flags) {
  if (flags.threads > 0) set_num_threads(flags.threads);
  const OutputFolder out(flags.out);
  const TrainConfig config = flags.resume ? resumed_config(flags, out) : new_config(flags);
  if (!flags.resume) check_replaceable(out);
  return TrainingRun(config, out, flags.resume, style_of(flags)).run();
}

}  // namespace kiln::cli
