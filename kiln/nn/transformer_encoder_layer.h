// TransformerEncoderLayer (Vaswani et al., 2017), as torch.nn.TransformerEncoderLayer.
#pragma once

#include <string>

#include "kiln/nn/dropout.h"
#include "kiln/nn/layer_norm.h"
#include "kiln/nn/multihead_attention.h"

namespace kiln::nn {

struct TransformerEncoderLayerOptions {
  int64_t dim_feedforward = 2048;
  double dropout = 0.1;
  std::string activation = "relu";  // or "gelu"
  double layer_norm_eps = 1e-5;
  bool batch_first = false;  // [N, L, E] instead of [L, N, E]
  bool norm_first = false;   // normalizes before attention and feedforward instead of after
  bool bias = true;
  KILN_CONFIG(TransformerEncoderLayerOptions, dim_feedforward, dropout,
              doc(activation, "relu or gelu"), layer_norm_eps,
              doc(batch_first, "[N, L, E] instead of [L, N, E]"),
              doc(norm_first, "normalizes before attention and feedforward instead of after"), bias)
};

struct TransformerEncoderLayerConfig {
  Required<int64_t> d_model = {};
  Required<int64_t> nhead = {};
  TransformerEncoderLayerOptions options = {};
  KILN_CONFIG(TransformerEncoderLayerConfig, d_model, nhead, options)
};

// Self-attention and a network of two linear layers, each with a residual connection and a norm:
// src [L, N, d_model] (see batch_first; N may be left out) -> the same shape. Masks as in
// MultiheadAttentionCall. State-dict keys are PyTorch's.
class TransformerEncoderLayer : public Module {
 public:
  using Config = TransformerEncoderLayerConfig;
  TransformerEncoderLayer(int64_t d_model, int64_t nhead,
                          const TransformerEncoderLayerOptions& options = {},
                          const ParamOptions& param_options = {});
  explicit TransformerEncoderLayer(const Config& config, const ParamOptions& param_options = {});

  MultiheadAttention self_attn;
  Linear linear1;
  Dropout dropout;
  Linear linear2;
  LayerNorm norm1, norm2;
  Dropout dropout1, dropout2;
  KILN_MODULE_DECLARED(TransformerEncoderLayer)

  Tensor forward(const Tensor& src, const Tensor& src_mask = {},
                 const Tensor& src_key_padding_mask = {}, bool is_causal = false);

 private:
  Tensor attend(const Tensor& x, const Tensor& mask, const Tensor& padding, bool is_causal);
  Tensor feed_forward(const Tensor& x, const Tensor& residual);

  bool norm_first_;
  bool gelu_;
};

}  // namespace kiln::nn
