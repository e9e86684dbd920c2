#include "kiln/models/mobilenetv3.h"

#include <vector>

#include "kiln/core/error.h"
#include "kiln/nn/activation_layers.h"
#include "kiln/nn/dropout.h"
#include "kiln/tensor/nn/pooling.h"

namespace kiln::models {
namespace {

struct Row {
  int64_t kernel, expanded, outputs;
  bool squeezes, hard;
  int64_t stride;
};
const std::vector<Row> kLarge = {
    {3, 16, 16, false, false, 1}, {3, 64, 24, false, false, 2}, {3, 72, 24, false, false, 1},
    {5, 72, 40, true, false, 2},  {5, 120, 40, true, false, 1}, {5, 120, 40, true, false, 1},
    {3, 240, 80, false, true, 2}, {3, 200, 80, false, true, 1}, {3, 184, 80, false, true, 1},
    {3, 184, 80, false, true, 1}, {3, 480, 112, true, true, 1}, {3, 672, 112, true, true, 1},
    {5, 672, 160, true, true, 2}, {5, 960, 160, true, true, 1}, {5, 960, 160, true, true, 1}};
const std::vector<Row> kSmall = {
    {3, 16, 16, true, false, 2}, {3, 72, 24, false, false, 2}, {3, 88, 24, false, false, 1},
    {5, 96, 40, true, true, 2},  {5, 240, 40, true, true, 1},  {5, 240, 40, true, true, 1},
    {5, 120, 48, true, true, 1}, {5, 144, 48, true, true, 1},  {5, 288, 96, true, true, 2},
    {5, 576, 96, true, true, 1}, {5, 576, 96, true, true, 1}};

}  // namespace

MobileNetV3::MobileNetV3(bool large, const MobileNetV3Options& o) {
  require_positive("MobileNetV3", "num_classes", o.num_classes);
  if (!(o.width_mult > 0)) {
    throw_error<ValueError>("MobileNetV3: width_mult must be above 0; got ", o.width_mult);
  }
  const auto width = [&](int64_t channels) {
    return make_divisible(double(channels) * o.width_mult, 8);
  };
  const nn::BatchNormOptions norm{.eps = 0.001, .momentum = 0.01};
  const auto& table = large ? kLarge : kSmall;
  const size_t tail = large ? 12 : 8;
  const int64_t reduce = o.reduced_tail ? 2 : 1;
  int64_t inputs = width(16);
  features.push_back(
      conv_norm_activation(3, inputs, {.stride = 2, .act = Act::hardswish, .norm = norm}));
  for (size_t i = 0; i < table.size(); ++i) {
    const Row& row = table[i];
    const int64_t outputs = width(i >= tail ? row.outputs / reduce : row.outputs);
    const int64_t expanded = width(i > tail ? row.expanded / reduce : row.expanded);
    features.push_back(InvertedResidual(
        inputs, {.kernel = row.kernel,
                 .expanded = expanded,
                 .outputs = outputs,
                 .stride = row.stride,
                 .dilation = o.dilated && i >= tail ? 2 : 1,
                 .squeezed = row.squeezes ? make_divisible(double(expanded / 4), 8) : 0,
                 .act = row.hard ? Act::hardswish : Act::relu,
                 .norm = norm}));
    inputs = outputs;
  }
  features.push_back(
      conv_norm_activation(inputs, 6 * inputs, {.kernel = 1, .act = Act::hardswish, .norm = norm}));
  const int64_t last = width((large ? 1280 : 1024) / reduce);
  classifier = nn::Sequential(linear(6 * inputs, last, normal(0.01)), nn::Hardswish(),
                              nn::Dropout(o.dropout), linear(last, o.num_classes, normal(0.01)));
}

Tensor MobileNetV3::forward(const Tensor& x) {
  return classifier(functional::adaptive_avg_pool2d(features(x), {1, 1}).flatten(1));
}
KILN_MODULE_DEFINED(MobileNetV3, features, classifier)

MobileNetV3 mobilenet_v3_large(const MobileNetV3Options& o) { return MobileNetV3(true, o); }
MobileNetV3 mobilenet_v3_small(const MobileNetV3Options& o) { return MobileNetV3(false, o); }

}  // namespace kiln::models
