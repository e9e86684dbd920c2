// The digits to learn from and to be measured on.
#pragma once

#include <cstdint>
#include <string>

#include "cli/digit_net.h"
#include "kiln/data/dataset.h"

namespace kiln::cli {

inline constexpr int64_t kBuiltInTraining = 24000;
inline constexpr int64_t kBuiltInValidation = 2000;
inline constexpr int64_t kBuiltInTest = 4000;
// Of a folder's training images one of so many is kept for validation, the last ones: 5,000 of
// MNIST's 60,000.
inline constexpr int64_t kValidationShare = 12;

// Images u8 [N, 1, 28, 28] and labels i64 [N].
struct DigitTraining {
  data::DatasetHandle training;
  data::DatasetHandle validation;
  Normalization pixels;  // of the training images
};

// The built-in set where `folder` is empty, else MNIST or a set of its form from there. The first
// `samples` training images, or all that there are (24,000 built-in ones) for 0. Training,
// validation and test sets share no image. Throws ValueError when there are fewer than `samples`,
// IoError for files that are missing or wrong.
DigitTraining load_digit_training(const std::string& folder, int64_t samples);
data::DatasetHandle load_digit_test(const std::string& folder);

// "4,000 built-in test digits"; "10,000 test digits of DIR".
std::string describe_test(const std::string& folder, int64_t samples);

}  // namespace kiln::cli
