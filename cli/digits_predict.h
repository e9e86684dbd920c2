// `kiln digits predict`.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "cli/digit_image.h"

namespace kiln::cli {

struct DigitsPredictFlags {
  std::string model;
  std::vector<std::string> images;
  Invert invert = Invert::automatic;
  size_t top = 3;
};

// Returns the program's status: 1 when an image could not be read; the others are named all the
// same. Throws kiln::Error for a model that cannot be read.
int digits_predict(const DigitsPredictFlags& flags);

}  // namespace kiln::cli
