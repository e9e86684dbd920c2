#include "cli/digit_data.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "kiln/core/error.h"
#include "kiln/data/digits.h"
#include "kiln/data/idx.h"
#include "kiln/train/text.h"

namespace kiln::cli {

namespace {

// Sets of different seeds are unrelated. They are fixed, so that every model is measured on the
// same digits.
constexpr uint64_t kTrainingSeed = 1;
constexpr uint64_t kValidationSeed = 2;
constexpr uint64_t kTestSeed = 3;

Normalization normalization_of(const TensorData& images, int64_t count) {
  const auto pixels =
      images.as<uint8_t>().first(static_cast<size_t>(count * kDigitSide * kDigitSide));
  std::array<int64_t, 256> histogram{};
  for (const uint8_t p : pixels) ++histogram[p];
  double sum = 0;
  double squares = 0;
  for (size_t v = 0; v < histogram.size(); ++v) {
    const double value = static_cast<double>(v) / 255;
    sum += value * static_cast<double>(histogram[v]);
    squares += value * value * static_cast<double>(histogram[v]);
  }
  const auto n = static_cast<double>(pixels.size());
  const double mean = sum / n;
  const double deviation = std::sqrt(std::max(squares / n - mean * mean, 0.0));
  // Images that are all alike still need a scale.
  return {mean, deviation > 1e-6 ? deviation : 1.0};
}

data::ImageSet load_images(const std::string& folder, bool train) {
  data::ImageSet set = data::load_mnist(folder, train);
  const Shape& shape = set.images.shape();
  if (shape[1] != kDigitSide || shape[2] != kDigitSide) {
    throw_error<IoError>("'", folder, "' holds images of ", shape[1], "x", shape[2],
                         "; expected 28x28");
  }
  return set;
}

DigitTraining built_in_training(int64_t samples) {
  const data::ImageSet set = data::make_digits(samples, kTrainingSeed);
  return {data::TensorDataset(set),
          data::TensorDataset(data::make_digits(kBuiltInValidation, kValidationSeed)),
          normalization_of(set.images, set.images.shape()[0])};
}

DigitTraining mnist_training(const std::string& folder, int64_t samples) {
  const data::ImageSet set = load_images(folder, true);
  const int64_t all = set.images.shape()[0];
  const int64_t most = all - all / kValidationShare;
  if (most < 1 || samples > most) {
    throw_error<ValueError>("too few images in '", folder, "'; got ", all, ", of which ",
                            all / kValidationShare, " are kept for validation; expected ",
                            std::max<int64_t>(samples, 1), " besides");
  }
  if (samples == 0) samples = most;
  const auto whole = std::make_shared<data::TensorDataset>(set);
  return {data::Subset(whole, 0, samples), data::Subset(whole, most, all),
          normalization_of(set.images, samples)};
}

}  // namespace

DigitTraining load_digit_training(const std::string& folder, int64_t samples) {
  if (!folder.empty()) return mnist_training(folder, samples);
  return built_in_training(samples == 0 ? kBuiltInTraining : samples);
}

data::DatasetHandle load_digit_test(const std::string& folder) {
  return data::TensorDataset(folder.empty() ? data::make_digits(kBuiltInTest, kTestSeed)
                                            : load_images(folder, false));
}

std::string describe_test(const std::string& folder, int64_t samples) {
  return folder.empty() ? concat(train::grouped(samples), " built-in test digits")
                        : concat(train::grouped(samples), " test digits of ", folder);
}

}  // namespace kiln::cli
