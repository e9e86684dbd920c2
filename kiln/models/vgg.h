// VGG (Simonyan and Zisserman, 2015), with torchvision's keys and options.
#pragma once

#include "kiln/models/vision_blocks.h"

namespace kiln::models {

struct VGGOptions {
  int64_t num_classes = 1000;
  double dropout = 0.5;
};

// Images [N, 3, H, W], at least 32 x 32 -> [N, num_classes].
class VGG : public nn::Module {
 public:
  // depth: 11, 13, 16 or 19.
  VGG(int64_t depth, bool batch_norm, const VGGOptions& options = {});
  nn::Sequential features, classifier;
  KILN_MODULE_DECLARED(VGG)
  Tensor forward(const Tensor& x);
};

VGG vgg11(const VGGOptions& options = {});
VGG vgg11_bn(const VGGOptions& options = {});
VGG vgg13(const VGGOptions& options = {});
VGG vgg13_bn(const VGGOptions& options = {});
VGG vgg16(const VGGOptions& options = {});
VGG vgg16_bn(const VGGOptions& options = {});
VGG vgg19(const VGGOptions& options = {});
VGG vgg19_bn(const VGGOptions& options = {});

}  // namespace kiln::models
