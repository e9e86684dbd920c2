// MobileNetV3 (Howard et al., 2019), with torchvision's keys and options.
#pragma once

#include "kiln/models/vision_blocks.h"

namespace kiln::models {

struct MobileNetV3Options {
  int64_t num_classes = 1000;
  double dropout = 0.2;
  double width_mult = 1.0;
  bool reduced_tail = false;
  bool dilated = false;
};

// Images [N, 3, H, W] -> [N, num_classes].
class MobileNetV3 : public nn::Module {
 public:
  explicit MobileNetV3(bool large, const MobileNetV3Options& options = {});
  nn::Sequential features, classifier;
  KILN_MODULE_DECLARED(MobileNetV3)
  Tensor forward(const Tensor& x);
};

MobileNetV3 mobilenet_v3_large(const MobileNetV3Options& options = {});
MobileNetV3 mobilenet_v3_small(const MobileNetV3Options& options = {});

}  // namespace kiln::models
