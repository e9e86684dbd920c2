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
  double hue = 0.0;    // by up to this share of the circle of colours
  double blur = 0.0;   // by a Gaussian of up to so many pixels
  double erase = 0.0;  // the chance that a rectangle is blanked
  // RandAugment: so many changes of each image, and how strong they are, of 30.
  int64_t rand_augment = 0;
  double magnitude = 9.0;
  double crop = 1.0;  // the smallest share of the area that is cut out, and brought to full size

  bool any() const;
};

// Images of a batch that are laid over each other; 0: none are. The parameter of the beta
// distribution that the shares are drawn from. With both, half of the batches get either.
struct MixOptions {
  double mixup = 0.0;   // Zhang et al., 2018
  double cutmix = 0.0;  // Yun et al., 2019

  bool any() const { return mixup > 0 || cutmix > 0; }
};

// Reads the object "transforms"; `mix` where the task knows of mixing.
AugmentOptions read_augment(Fields& fields, MixOptions* mix = nullptr);

// An image u8 [C, H, W] and, for segmentation, its classes i64 [H, W], which move with it; what
// comes in from outside is black, and of class 0.
void augment(const AugmentOptions& options, Tensor& image, Tensor* classes,
             data::SampleRandom& random);

// A batch of images [N, C, H, W], mixed with itself in another order: sample i is `share` of its
// own and the rest of order[i]'s. Draws from the default generator.
struct MixedBatch {
  Tensor images;
  Tensor order;  // i64 [N]
  double share = 1.0;
};
MixedBatch mix_batch(const MixOptions& options, const Tensor& images);

}  // namespace kiln::cli
