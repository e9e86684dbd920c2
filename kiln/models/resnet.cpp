#include "kiln/models/resnet.h"

#include "kiln/core/error.h"
#include "kiln/nn/init.h"
#include "kiln/tensor/nn/pooling.h"

namespace kiln::models {
namespace {

nn::Conv2d conv(int64_t inputs, int64_t outputs, int64_t kernel, int64_t stride = 1,
                int64_t groups = 1, int64_t dilation = 1) {
  return conv2d(inputs, outputs, kernel,
                {.stride = stride,
                 .padding = kernel / 2 * dilation,
                 .dilation = dilation,
                 .groups = groups,
                 .bias = false},
                kaiming());
}

nn::BatchNorm2d norm(int64_t channels, bool zero = false) {
  nn::BatchNorm2d out(channels);
  if (zero) out.weight = nn::parameter({channels}, nn::init::zeros_);
  return out;
}

// Where the shape changes, the input passes a convolution on its way around the block.
nn::Sequential shortcut(int64_t inputs, int64_t outputs, int64_t stride) {
  if (stride == 1 && inputs == outputs) return {};
  return nn::Sequential(conv(inputs, outputs, 1, stride), norm(outputs));
}

struct BasicBlock : nn::Module {
  nn::Conv2d conv1;
  nn::BatchNorm2d bn1;
  nn::Conv2d conv2;
  nn::BatchNorm2d bn2;
  nn::Sequential downsample;
  KILN_MODULE(BasicBlock, conv1, bn1, conv2, bn2, downsample)

  BasicBlock(int64_t inputs, int64_t planes, int64_t stride, bool zero)
      : conv1(conv(inputs, planes, 3, stride)),
        bn1(planes),
        conv2(conv(planes, planes, 3)),
        bn2(norm(planes, zero)),
        downsample(shortcut(inputs, planes, stride)) {}

  Tensor forward(const Tensor& x) {
    const Tensor around = downsample.empty() ? x : downsample(x);
    return relu(bn2(conv2(relu(bn1(conv1(x))))) + around);
  }
};

struct Bottleneck : nn::Module {
  nn::Conv2d conv1;
  nn::BatchNorm2d bn1;
  nn::Conv2d conv2;
  nn::BatchNorm2d bn2;
  nn::Conv2d conv3;
  nn::BatchNorm2d bn3;
  nn::Sequential downsample;
  KILN_MODULE(Bottleneck, conv1, bn1, conv2, bn2, conv3, bn3, downsample)

  Bottleneck(int64_t inputs, int64_t planes, int64_t width, int64_t stride, int64_t groups,
             int64_t dilation, bool zero)
      : conv1(conv(inputs, width, 1)),
        bn1(width),
        conv2(conv(width, width, 3, stride, groups, dilation)),
        bn2(width),
        conv3(conv(width, 4 * planes, 1)),
        bn3(norm(4 * planes, zero)),
        downsample(shortcut(inputs, 4 * planes, stride)) {}

  Tensor forward(const Tensor& x) {
    const Tensor around = downsample.empty() ? x : downsample(x);
    return relu(bn3(conv3(relu(bn2(conv2(relu(bn1(conv1(x)))))))) + around);
  }
};

}  // namespace

ResNet::ResNet(bool bottleneck, const std::array<int64_t, 4>& layers, const ResNetOptions& o)
    : conv1(conv(3, 64, 7, 2)), bn1(64), fc(bottleneck ? 2048 : 512, o.num_classes) {
  require_positive("ResNet", "num_classes", o.num_classes);
  require_positive("ResNet", "groups", o.groups);
  require_positive("ResNet", "width_per_group", o.width_per_group);
  const auto& dilate = o.replace_stride_with_dilation;
  if (!bottleneck &&
      (o.groups != 1 || o.width_per_group != 64 || dilate[0] || dilate[1] || dilate[2])) {
    throw_error<ValueError>(
        "ResNet: groups, width_per_group and dilation are for blocks with bottlenecks; expected 1, "
        "64 and none");
  }
  int64_t inputs = 64, dilation = 1;
  nn::Sequential* stages[] = {&layer1, &layer2, &layer3, &layer4};
  for (int i = 0; i < 4; ++i) {
    require_positive("ResNet", "layers", layers[size_t(i)]);
    const int64_t planes = int64_t(64) << i;
    int64_t stride = i == 0 ? 1 : 2, before = dilation;
    if (i > 0 && dilate[size_t(i - 1)]) {
      dilation *= stride;
      stride = 1;
    }
    const int64_t width = planes * o.width_per_group / 64 * o.groups;
    for (int64_t j = 0; j < layers[size_t(i)]; ++j) {
      if (bottleneck) {
        stages[i]->push_back(Bottleneck(inputs, planes, width, j == 0 ? stride : 1, o.groups,
                                        j == 0 ? before : dilation, o.zero_init_residual));
      } else {
        stages[i]->push_back(BasicBlock(inputs, planes, j == 0 ? stride : 1, o.zero_init_residual));
      }
      inputs = bottleneck ? 4 * planes : planes;
    }
  }
}

Tensor ResNet::forward(const Tensor& x) {
  Tensor y = functional::max_pool2d(relu(bn1(conv1(x))), 3, 2, 1);
  y = layer4(layer3(layer2(layer1(y))));
  return fc(functional::adaptive_avg_pool2d(y, {1, 1}).flatten(1));
}
KILN_MODULE_DEFINED(ResNet, conv1, bn1, layer1, layer2, layer3, layer4, fc)

ResNet resnet18(const ResNetOptions& options) { return ResNet(false, {2, 2, 2, 2}, options); }
ResNet resnet34(const ResNetOptions& options) { return ResNet(false, {3, 4, 6, 3}, options); }
ResNet resnet50(const ResNetOptions& options) { return ResNet(true, {3, 4, 6, 3}, options); }
ResNet resnet101(const ResNetOptions& options) { return ResNet(true, {3, 4, 23, 3}, options); }
ResNet resnet152(const ResNetOptions& options) { return ResNet(true, {3, 8, 36, 3}, options); }
ResNet resnext50_32x4d(ResNetOptions options) {
  options.groups = 32;
  options.width_per_group = 4;
  return resnet50(options);
}
ResNet wide_resnet50_2(ResNetOptions options) {
  options.width_per_group = 128;
  return resnet50(options);
}

}  // namespace kiln::models
