#include "kiln/models/vgg.h"

#include <array>

#include "kiln/core/error.h"
#include "kiln/nn/dropout.h"
#include "kiln/nn/max_pool2d.h"
#include "kiln/nn/relu.h"
#include "kiln/tensor/nn/pooling.h"

namespace kiln::models {
namespace {

std::array<int64_t, 5> convolutions(int64_t depth) {
  if (depth == 11) return {1, 1, 2, 2, 2};
  if (depth == 13) return {2, 2, 2, 2, 2};
  if (depth == 16) return {2, 2, 3, 3, 3};
  if (depth == 19) return {2, 2, 4, 4, 4};
  throw_error<ValueError>("VGG: depth must be 11, 13, 16 or 19; got ", depth);
}

}  // namespace

VGG::VGG(int64_t depth, bool batch_norm, const VGGOptions& o)
    : classifier(linear(512 * 7 * 7, 4096, normal(0.01)), nn::ReLU(), nn::Dropout(o.dropout),
                 linear(4096, 4096, normal(0.01)), nn::ReLU(), nn::Dropout(o.dropout),
                 linear(4096, o.num_classes, normal(0.01))) {
  require_positive("VGG", "num_classes", o.num_classes);
  const auto counts = convolutions(depth);
  constexpr int64_t kWidths[] = {64, 128, 256, 512, 512};
  int64_t inputs = 3;
  for (size_t stage = 0; stage < 5; ++stage) {
    for (int64_t i = 0; i < counts[stage]; ++i) {
      features.push_back(conv2d(inputs, kWidths[stage], 3, {.padding = 1}, kaiming()));
      if (batch_norm) features.push_back(nn::BatchNorm2d(kWidths[stage]));
      features.push_back(nn::ReLU());
      inputs = kWidths[stage];
    }
    features.push_back(nn::MaxPool2d(2, {.stride = 2}));
  }
}

Tensor VGG::forward(const Tensor& x) {
  return classifier(functional::adaptive_avg_pool2d(features(x), {7, 7}).flatten(1));
}
KILN_MODULE_DEFINED(VGG, features, classifier)

VGG vgg11(const VGGOptions& options) { return VGG(11, false, options); }
VGG vgg11_bn(const VGGOptions& options) { return VGG(11, true, options); }
VGG vgg13(const VGGOptions& options) { return VGG(13, false, options); }
VGG vgg13_bn(const VGGOptions& options) { return VGG(13, true, options); }
VGG vgg16(const VGGOptions& options) { return VGG(16, false, options); }
VGG vgg16_bn(const VGGOptions& options) { return VGG(16, true, options); }
VGG vgg19(const VGGOptions& options) { return VGG(19, false, options); }
VGG vgg19_bn(const VGGOptions& options) { return VGG(19, true, options); }

}  // namespace kiln::models
