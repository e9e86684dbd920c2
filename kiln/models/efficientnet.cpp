#include "kiln/models/efficientnet.h"

#include <cmath>

#include "kiln/core/error.h"
#include "kiln/nn/dropout.h"
#include "kiln/nn/init.h"
#include "kiln/tensor/nn/pooling.h"

namespace kiln::models {
namespace {

struct Stage {
  int64_t ratio, kernel, stride, inputs, outputs, blocks;
};
constexpr Stage kStages[] = {{1, 3, 1, 32, 16, 1},  {6, 3, 2, 16, 24, 2},  {6, 5, 2, 24, 40, 2},
                             {6, 3, 2, 40, 80, 3},  {6, 5, 1, 80, 112, 3}, {6, 5, 2, 112, 192, 4},
                             {6, 3, 1, 192, 320, 1}};

}  // namespace

EfficientNet::EfficientNet(const EfficientNetOptions& o) {
  require_positive("EfficientNet", "num_classes", o.num_classes);
  if (!(o.width_mult > 0 && o.depth_mult > 0)) {
    throw_error<ValueError>("EfficientNet: width_mult and depth_mult must be above 0; got ",
                            o.width_mult, " and ", o.depth_mult);
  }
  const auto width = [&](int64_t channels) {
    return make_divisible(double(channels) * o.width_mult, 8);
  };
  const auto count = [&](const Stage& stage) {
    return int64_t(std::ceil(double(stage.blocks) * o.depth_mult));
  };
  int64_t total = 0, made = 0, last = 0;
  for (const Stage& stage : kStages) total += count(stage);
  features.push_back(
      conv_norm_activation(3, width(32), {.stride = 2, .act = Act::silu, .norm = o.norm}));
  for (const Stage& stage : kStages) {
    nn::Sequential blocks;
    last = width(stage.outputs);
    for (int64_t i = 0; i < count(stage); ++i, ++made) {
      const int64_t inputs = i == 0 ? width(stage.inputs) : last;
      blocks.push_back(InvertedResidual(
          inputs, {.kernel = stage.kernel,
                   .expanded = make_divisible(double(inputs * stage.ratio), 8),
                   .outputs = last,
                   .stride = i == 0 ? stage.stride : 1,
                   .squeezed = std::max<int64_t>(1, inputs / 4),
                   .hard = false,
                   .act = Act::silu,
                   .stochastic_depth_prob = o.stochastic_depth_prob * double(made) / double(total),
                   .norm = o.norm}));
    }
    features.push_back(std::move(blocks));
  }
  features.push_back(
      conv_norm_activation(last, 4 * last, {.kernel = 1, .act = Act::silu, .norm = o.norm}));
  const double bound = 1 / std::sqrt(double(o.num_classes));
  const auto init = [bound](Tensor& x) { nn::init::uniform_(x, -bound, bound); };
  classifier = nn::Sequential(nn::Dropout(o.dropout), linear(4 * last, o.num_classes, init));
}

Tensor EfficientNet::forward(const Tensor& x) {
  return classifier(functional::adaptive_avg_pool2d(features(x), {1, 1}).flatten(1));
}
KILN_MODULE_DEFINED(EfficientNet, features, classifier)

EfficientNet efficientnet_b0(const EfficientNetOptions& options) { return EfficientNet(options); }

}  // namespace kiln::models
