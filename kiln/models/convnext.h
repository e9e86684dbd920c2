// ConvNeXt (Liu et al., 2022), with torchvision's keys and options.
#pragma once

#include <array>

#include "kiln/models/vision_blocks.h"

namespace kiln::models {

struct ConvNeXtOptions {
  int64_t num_classes = 1000;
  double stochastic_depth_prob = 0.1;
  double layer_scale = 1e-6;
};

// Four stages of `depths[i]` blocks with `dims[i]` channels: images [N, 3, H, W] -> [N,
// num_classes].
class ConvNeXt : public nn::Module {
 public:
  ConvNeXt(const std::array<int64_t, 4>& depths, const std::array<int64_t, 4>& dims,
           const ConvNeXtOptions& options = {});
  nn::Sequential features, classifier;
  KILN_MODULE_DECLARED(ConvNeXt)
  Tensor forward(const Tensor& x);
};

ConvNeXt convnext_atto(const ConvNeXtOptions& options = {});
ConvNeXt convnext_tiny(const ConvNeXtOptions& options = {});
ConvNeXt convnext_small(const ConvNeXtOptions& options = {.stochastic_depth_prob = 0.4});
ConvNeXt convnext_base(const ConvNeXtOptions& options = {.stochastic_depth_prob = 0.5});
ConvNeXt convnext_large(const ConvNeXtOptions& options = {.stochastic_depth_prob = 0.5});

}  // namespace kiln::models
