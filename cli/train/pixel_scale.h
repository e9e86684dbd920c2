// PixelScale: how bytes of images become the numbers that a model takes.
#pragma once

#include <vector>

#include "cli/train/fields.h"
#include "kiln/data/dataset.h"

namespace kiln::cli {

// (x / 255 - mean) / std by channel; without means x / 255.
struct PixelScale {
  std::vector<double> mean, std;

  // u8 [N, C, H, W] -> f32.
  Tensor operator()(const Tensor& x) const;
  Json facts() const;
  // What facts() gave, for images of so many channels. Throws ValueError for anything else.
  static PixelScale from_facts(const Json& facts, int64_t channels);
};
// Reads "mean" and "std", 0 to 1 for each channel. Without them they are those of the training
// images (of at most 512, evenly spread).
PixelScale read_pixel_scale(Fields& fields, const data::DatasetHandle& training);

}  // namespace kiln::cli
