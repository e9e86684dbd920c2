// RandAugment: strong random changes of training images (Cubuk et al., 2020).
#pragma once

#include <array>
#include <cstdint>

#include "kiln/data/sample_random.h"
#include "kiln/tensor/tensor.h"

namespace kiln::cli {

enum class RandomChange : uint8_t {
  identity,
  shear_x,
  shear_y,
  translate_x,
  translate_y,
  rotate,
  brightness,
  color,
  contrast,
  sharpness,
  posterize,
  solarize,
  auto_contrast,
  equalize
};
inline constexpr int64_t kRandomChanges = 14;

// An image u8 [C, H, W] with 1 or 3 channels, and the classes i64 [H, W] of its pixels where it has
// some. strength: from 0 to 1, of the largest change; negative: in the other direction, for changes
// that have one.
void change(RandomChange which, double strength, bool negative, Tensor& image, Tensor* classes);

// `count` of them, any of them each time.
void rand_augment(int64_t count, double strength, Tensor& image, Tensor* classes,
                  data::SampleRandom& random);

}  // namespace kiln::cli
