// EfficientNet (Tan and Le, 2019), with torchvision's keys and options.
#pragma once

#include "kiln/models/vision_blocks.h"

namespace kiln::models {

struct EfficientNetOptions {
  int64_t num_classes = 1000;
  double dropout = 0.2;
  double stochastic_depth_prob = 0.2;
  double width_mult = 1.0;  // of B0's widths and depths
  double depth_mult = 1.0;
  nn::BatchNormOptions norm = {};
};

// Images [N, 3, H, W] -> [N, num_classes].
class EfficientNet : public nn::Module {
 public:
  explicit EfficientNet(const EfficientNetOptions& options = {});
  nn::Sequential features, classifier;
  KILN_MODULE_DECLARED(EfficientNet)
  Tensor forward(const Tensor& x);
};

EfficientNet efficientnet_b0(const EfficientNetOptions& options = {});

}  // namespace kiln::models
