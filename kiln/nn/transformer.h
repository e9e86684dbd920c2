// TransformerEncoder, TransformerDecoderLayer, TransformerDecoder and Transformer (Vaswani et al.,
// 2017), as in torch.nn.
#pragma once

#include <optional>
#include <vector>

#include "kiln/nn/transformer_encoder_layer.h"

namespace kiln::nn {

// What one call of a decoder may ask for. Masks as in MultiheadAttentionCall: tgt_mask [L, L],
// memory_mask [L, S], the others [N, L] and [N, S].
struct TransformerDecoderCall {
  Tensor tgt_mask = {};
  Tensor memory_mask = {};
  Tensor tgt_key_padding_mask = {};
  Tensor memory_key_padding_mask = {};
  bool tgt_is_causal = false;     // step l sees steps 0..l
  bool memory_is_causal = false;  // step l sees steps 0..l of the memory
};

// Self-attention, attention to the encoder's memory and a network of two linear layers, each with a
// residual connection and a norm: tgt [L, N, d_model], memory [S, N, d_model] (see batch_first; N
// may be left out) -> tgt's shape.
class TransformerDecoderLayer : public Module {
 public:
  using Config = TransformerEncoderLayerConfig;  // an encoder's layer has the same options
  TransformerDecoderLayer(int64_t d_model, int64_t nhead,
                          const TransformerEncoderLayerOptions& options = {},
                          const ParamOptions& param_options = {});
  explicit TransformerDecoderLayer(const Config& config, const ParamOptions& param_options = {});

  MultiheadAttention self_attn;
  MultiheadAttention multihead_attn;
  Linear linear1;
  Dropout dropout;
  Linear linear2;
  LayerNorm norm1, norm2, norm3;
  Dropout dropout1, dropout2, dropout3;
  KILN_MODULE_DECLARED(TransformerDecoderLayer)

  Tensor forward(const Tensor& tgt, const Tensor& memory, const TransformerDecoderCall& call = {});

 private:
  bool norm_first_;
  bool gelu_;
};

// num_layers copies of a layer, and a norm behind them.
class TransformerEncoder : public Module {
 public:
  TransformerEncoder(const TransformerEncoderLayer& layer, int64_t num_layers,
                     std::optional<LayerNorm> norm = {});

  std::vector<TransformerEncoderLayer> layers;
  std::optional<LayerNorm> norm;
  KILN_MODULE_DECLARED(TransformerEncoder)

  Tensor forward(const Tensor& src, const Tensor& mask = {},
                 const Tensor& src_key_padding_mask = {}, bool is_causal = false);
};

class TransformerDecoder : public Module {
 public:
  TransformerDecoder(const TransformerDecoderLayer& layer, int64_t num_layers,
                     std::optional<LayerNorm> norm = {});

  std::vector<TransformerDecoderLayer> layers;
  std::optional<LayerNorm> norm;
  KILN_MODULE_DECLARED(TransformerDecoder)

  Tensor forward(const Tensor& tgt, const Tensor& memory, const TransformerDecoderCall& call = {});
};

struct TransformerOptions {
  int64_t d_model = 512;
  int64_t nhead = 8;
  int64_t num_encoder_layers = 6;
  int64_t num_decoder_layers = 6;
  TransformerEncoderLayerOptions layer = {};  // of both sides
  KILN_CONFIG(TransformerOptions, d_model, nhead, num_encoder_layers, num_decoder_layers,
              doc(layer, "the options of each layer"))
};

// What one call of a Transformer may ask for.
struct TransformerCall {
  Tensor src_mask = {};
  Tensor src_key_padding_mask = {};
  bool src_is_causal = false;
  TransformerDecoderCall decoder = {};
};

// An encoder and a decoder: src [S, N, d_model], tgt [L, N, d_model] -> tgt's shape. Matrices start
// as xavier_uniform_ draws them.
class Transformer : public Module {
 public:
  explicit Transformer(const TransformerOptions& options = {},
                       const ParamOptions& param_options = {});

  TransformerEncoder encoder;
  TransformerDecoder decoder;
  KILN_MODULE_DECLARED(Transformer)

  Tensor forward(const Tensor& src, const Tensor& tgt, const TransformerCall& call = {});
  void reset_parameters();
  // [n, n], -inf above the diagonal: a step sees no later one.
  static Tensor generate_square_subsequent_mask(int64_t n, const TensorOptions& options = {});

  int64_t d_model() const { return d_model_; }

 private:
  int64_t d_model_;
};

}  // namespace kiln::nn
