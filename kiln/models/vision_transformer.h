// Vision Transformer (Dosovitskiy et al., 2021), with torchvision's keys and options.
#pragma once

#include "kiln/models/vision_blocks.h"

namespace kiln::models {

struct VisionTransformerOptions {
  int64_t image_size = 224;
  int64_t patch_size = 16;
  int64_t num_layers = 12;
  int64_t num_heads = 12;
  int64_t hidden_dim = 768;
  int64_t mlp_dim = 3072;
  double dropout = 0.0;
  double attention_dropout = 0.0;
  int64_t num_classes = 1000;
  int64_t representation_size = 0;  // 0: the head is one layer
};

// Positions, then the blocks and a norm; part of VisionTransformer.
class VisionTransformerEncoder : public nn::Module {
 public:
  explicit VisionTransformerEncoder(const VisionTransformerOptions& options);
  nn::Param<Tensor> pos_embedding;
  nn::Sequential layers;
  nn::LayerNorm ln;
  KILN_MODULE_DECLARED(VisionTransformerEncoder)
  Tensor forward(const Tensor& x);

 private:
  double dropout_;
};

// Images [N, 3, image_size, image_size] -> [N, num_classes].
class VisionTransformer : public nn::Module {
 public:
  explicit VisionTransformer(const VisionTransformerOptions& options = {});
  nn::Param<Tensor> class_token;
  nn::Conv2d conv_proj;
  VisionTransformerEncoder encoder;
  nn::Sequential heads;
  KILN_MODULE_DECLARED(VisionTransformer)
  Tensor forward(const Tensor& x);

 private:
  int64_t image_size_;
};

VisionTransformer vit_tiny_16(VisionTransformerOptions options = {});
VisionTransformer vit_b_16(const VisionTransformerOptions& options = {});
VisionTransformer vit_b_32(VisionTransformerOptions options = {});
VisionTransformer vit_l_16(VisionTransformerOptions options = {});

}  // namespace kiln::models
