// ResNet (He et al., 2016), ResNeXt and wide ResNet, with torchvision's keys and options.
#pragma once

#include <array>

#include "kiln/models/vision_blocks.h"

namespace kiln::models {

struct ResNetOptions {
  int64_t num_classes = 1000;
  bool zero_init_residual = false;  // each block begins as the identity
  int64_t groups = 1;               // of Bottleneck's 3x3 convolutions
  int64_t width_per_group = 64;
  // Whether stage 2, 3 and 4 dilates instead of halving the size; Bottleneck alone can.
  std::array<bool, 3> replace_stride_with_dilation = {};
};

// Images [N, 3, H, W] -> [N, num_classes].
class ResNet : public nn::Module {
 public:
  // layers: how many blocks each stage has.
  ResNet(bool bottleneck, const std::array<int64_t, 4>& layers, const ResNetOptions& options = {});

  nn::Conv2d conv1;
  nn::BatchNorm2d bn1;
  nn::Sequential layer1, layer2, layer3, layer4;
  nn::Linear fc;
  KILN_MODULE_DECLARED(ResNet)

  Tensor forward(const Tensor& x);
};

ResNet resnet18(const ResNetOptions& options = {});
ResNet resnet34(const ResNetOptions& options = {});
ResNet resnet50(const ResNetOptions& options = {});
ResNet resnet101(const ResNetOptions& options = {});
ResNet resnet152(const ResNetOptions& options = {});
ResNet resnext50_32x4d(ResNetOptions options = {});
ResNet wide_resnet50_2(ResNetOptions options = {});

}  // namespace kiln::models
