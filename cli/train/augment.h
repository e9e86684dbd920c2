// Random changes of training images, so that none is seen twice.
#pragma once

#include <optional>

#include "cli/train/fields.h"
#include "kiln/data/sample_random.h"
#include "kiln/tensor/tensor.h"

namespace kiln::cli {

struct AugmentOptions {
  bool flip = false;           // left to right, half of the time
  bool vertical_flip = false;  // top to bottom
  int64_t shift = 0;           // by up to so many pixels each way
  double rotate = 0.0;         // by up to so many degrees
  double scale = 0.0;          // by up to this share
  double brightness = 0.0;     // by up to this share
  double contrast = 0.0;
  double saturation = 0.0;
  double erase = 0.0;  // the chance that a rectangle is blanked

  bool any() const;
};
// Reads the object "transforms".
AugmentOptions read_augment(Fields& fields);

// An image u8 [C, H, W] and, for segmentation, its classes i64 [H, W], which move with it; what
// comes in from outside is black, and of class 0.
void augment(const AugmentOptions& options, Tensor& image, Tensor* classes,
             data::SampleRandom& random);

}  // namespace kiln::cli
