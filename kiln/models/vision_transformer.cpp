#include "kiln/models/vision_transformer.h"

#include <cmath>

#include "kiln/core/error.h"
#include "kiln/nn/dropout.h"
#include "kiln/nn/gelu.h"
#include "kiln/nn/init.h"
#include "kiln/nn/multihead_attention.h"
#include "kiln/nn/tanh.h"
#include "kiln/tensor/nn/dropout.h"
#include "kiln/tensor/shape/joining.h"

namespace kiln::models {
namespace {

nn::Linear mlp_layer(int64_t inputs, int64_t outputs) {
  nn::Linear out = linear(inputs, outputs, [](Tensor& x) { nn::init::xavier_uniform_(x); });
  out.bias = nn::parameter({outputs}, normal(1e-6));
  return out;
}

struct EncoderBlock : nn::Module {
  nn::LayerNorm ln_1;
  nn::MultiheadAttention self_attention;
  nn::Dropout dropout;
  nn::LayerNorm ln_2;
  nn::Sequential mlp;
  KILN_MODULE(EncoderBlock, ln_1, self_attention, dropout, ln_2, mlp)

  explicit EncoderBlock(const VisionTransformerOptions& o)
      : ln_1(o.hidden_dim, {.eps = 1e-6}),
        self_attention(o.hidden_dim, o.num_heads,
                       {.dropout = o.attention_dropout, .batch_first = true}),
        dropout(o.dropout),
        ln_2(o.hidden_dim, {.eps = 1e-6}),
        mlp(mlp_layer(o.hidden_dim, o.mlp_dim), nn::GELU(), nn::Dropout(o.dropout),
            mlp_layer(o.mlp_dim, o.hidden_dim), nn::Dropout(o.dropout)) {}

  Tensor forward(const Tensor& input) {
    const Tensor y = ln_1(input);
    const nn::MultiheadAttentionCall call{.need_weights = false};
    const Tensor x = dropout(self_attention(y, y, y, call).first) + input;
    return x + mlp(ln_2(x));
  }
};

int64_t patches(const VisionTransformerOptions& o) {
  require_positive("VisionTransformer", "image_size", o.image_size);
  require_positive("VisionTransformer", "patch_size", o.patch_size);
  require_positive("VisionTransformer", "num_layers", o.num_layers);
  require_positive("VisionTransformer", "num_classes", o.num_classes);
  if (o.image_size % o.patch_size != 0) {
    throw_error<ValueError>("VisionTransformer: image_size must be a multiple of patch_size; got ",
                            o.image_size, " and ", o.patch_size);
  }
  const int64_t side = o.image_size / o.patch_size;
  return side * side;
}

}  // namespace

VisionTransformerEncoder::VisionTransformerEncoder(const VisionTransformerOptions& o)
    : pos_embedding(nn::parameter({1, patches(o) + 1, o.hidden_dim}, normal(0.02))),
      ln(o.hidden_dim, {.eps = 1e-6}),
      dropout_(o.dropout) {
  for (int64_t i = 0; i < o.num_layers; ++i) {
    layers.push_back(concat("encoder_layer_", i), EncoderBlock(o));
  }
}

Tensor VisionTransformerEncoder::forward(const Tensor& x) {
  return ln(layers(functional::dropout(x + *pos_embedding, dropout_, is_training())));
}
KILN_MODULE_DEFINED(VisionTransformerEncoder, pos_embedding, layers, ln)

VisionTransformer::VisionTransformer(const VisionTransformerOptions& o)
    : class_token(nn::parameter({1, 1, o.hidden_dim}, nn::init::zeros_)),
      conv_proj(conv2d(3, o.hidden_dim, o.patch_size, {.stride = o.patch_size},
                       truncated_normal(1 / std::sqrt(double(3 * o.patch_size * o.patch_size))))),
      encoder(o),
      image_size_(o.image_size) {
  int64_t features = o.hidden_dim;
  if (o.representation_size > 0) {
    heads.push_back("pre_logits", linear(o.hidden_dim, o.representation_size,
                                         truncated_normal(1 / std::sqrt(double(o.hidden_dim)))));
    heads.push_back("act", nn::Tanh());
    features = o.representation_size;
  }
  heads.push_back("head", linear(features, o.num_classes, nn::init::zeros_));
}

Tensor VisionTransformer::forward(const Tensor& x) {
  if (x.dim() != 4 || x.size(2) != image_size_ || x.size(3) != image_size_) {
    throw_error<ValueError>("VisionTransformer: expected images of ", image_size_, " x ",
                            image_size_, "; got ", to_string(x.shape()));
  }
  const Tensor parts = conv_proj(x).flatten(2).transpose(1, 2);
  const Tensor token = class_token->expand({x.size(0), -1, -1});
  return heads(encoder(cat({token, parts}, 1)).select(1, 0));
}
KILN_MODULE_DEFINED(VisionTransformer, class_token, conv_proj, encoder, heads)

VisionTransformer vit_tiny_16(VisionTransformerOptions o) {
  o.num_heads = 3;
  o.hidden_dim = 192;
  o.mlp_dim = 768;
  return VisionTransformer(o);
}
VisionTransformer vit_b_16(const VisionTransformerOptions& o) { return VisionTransformer(o); }
VisionTransformer vit_b_32(VisionTransformerOptions o) {
  o.patch_size = 32;
  return VisionTransformer(o);
}
VisionTransformer vit_l_16(VisionTransformerOptions o) {
  o.num_layers = 24;
  o.num_heads = 16;
  o.hidden_dim = 1024;
  o.mlp_dim = 4096;
  return VisionTransformer(o);
}

}  // namespace kiln::models
