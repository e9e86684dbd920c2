#include "kiln/models/convnext.h"

#include <algorithm>

#include "kiln/nn/flatten.h"
#include "kiln/nn/gelu.h"
#include "kiln/nn/init.h"
#include "kiln/tensor/nn/pooling.h"

namespace kiln::models {
namespace {

const Initializer kInit = truncated_normal(0.02);

// From channels first to channels last, or back.
struct Permute : nn::Module {
  Dims dims;
  KILN_MODULE(Permute)
  explicit Permute(Dims order) : dims(std::move(order)) {}
  Tensor forward(const Tensor& x) { return x.permute(dims); }
};

struct CNBlock : nn::Module {
  nn::Param<Tensor> layer_scale;
  nn::Sequential block;
  KILN_MODULE(CNBlock, layer_scale, block)

  CNBlock(int64_t dim, double scale, double prob)
      : layer_scale(
            nn::parameter({dim, 1, 1}, [scale](Tensor& x) { nn::init::constant_(x, scale); })),
        block(conv2d(dim, dim, 7, {.padding = 3, .groups = dim}, kInit), Permute({0, 2, 3, 1}),
              nn::LayerNorm(dim, {.eps = 1e-6}), linear(dim, 4 * dim, kInit), nn::GELU(),
              linear(4 * dim, dim, kInit), Permute({0, 3, 1, 2})),
        prob_(prob) {}
  Tensor forward(const Tensor& x) {
    return stochastic_depth(*layer_scale * block(x), prob_, is_training()) + x;
  }

 private:
  double prob_;
};

}  // namespace

ConvNeXt::ConvNeXt(const std::array<int64_t, 4>& depths, const std::array<int64_t, 4>& dims,
                   const ConvNeXtOptions& o)
    : classifier(LayerNorm2d(dims[3]), nn::Flatten(1), linear(dims[3], o.num_classes, kInit)) {
  require_positive("ConvNeXt", "num_classes", o.num_classes);
  int64_t made = 0;
  const int64_t total = depths[0] + depths[1] + depths[2] + depths[3];
  features.push_back(
      nn::Sequential(conv2d(3, dims[0], 4, {.stride = 4}, kInit), LayerNorm2d(dims[0])));
  for (size_t i = 0; i < 4; ++i) {
    nn::Sequential stage;
    for (int64_t j = 0; j < depths[i]; ++j, ++made) {
      const double prob =
          o.stochastic_depth_prob * double(made) / double(std::max<int64_t>(1, total - 1));
      stage.push_back(CNBlock(dims[i], o.layer_scale, prob));
    }
    features.push_back(std::move(stage));
    if (i < 3) {
      features.push_back(nn::Sequential(LayerNorm2d(dims[i]),
                                        conv2d(dims[i], dims[i + 1], 2, {.stride = 2}, kInit)));
    }
  }
}

Tensor ConvNeXt::forward(const Tensor& x) {
  return classifier(functional::adaptive_avg_pool2d(features(x), {1, 1}));
}
KILN_MODULE_DEFINED(ConvNeXt, features, classifier)

ConvNeXt convnext_atto(const ConvNeXtOptions& o) {
  return ConvNeXt({2, 2, 6, 2}, {40, 80, 160, 320}, o);
}
ConvNeXt convnext_tiny(const ConvNeXtOptions& o) {
  return ConvNeXt({3, 3, 9, 3}, {96, 192, 384, 768}, o);
}
ConvNeXt convnext_small(const ConvNeXtOptions& o) {
  return ConvNeXt({3, 3, 27, 3}, {96, 192, 384, 768}, o);
}
ConvNeXt convnext_base(const ConvNeXtOptions& o) {
  return ConvNeXt({3, 3, 27, 3}, {128, 256, 512, 1024}, o);
}
ConvNeXt convnext_large(const ConvNeXtOptions& o) {
  return ConvNeXt({3, 3, 27, 3}, {192, 384, 768, 1536}, o);
}

}  // namespace kiln::models
