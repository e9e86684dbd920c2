#include "kiln/nn/transformer.h"

#include <limits>
#include <utility>

#include "kiln/core/error.h"
#include "kiln/nn/init.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/sequences.h"

namespace kiln::nn {
namespace {

MultiheadAttentionOptions attention(const TransformerEncoderLayerOptions& o) {
  return {.dropout = o.dropout, .bias = o.bias, .batch_first = o.batch_first};
}

template <class L>
std::vector<L> copies(const char* name, const L& layer, int64_t count) {
  if (count < 0 || count > 10000) {
    throw_error<ValueError>(name, ": num_layers must be from 0 to 10000; got ", count);
  }
  return std::vector<L>(static_cast<size_t>(count), layer);
}

LayerNorm norm_of(const TransformerOptions& o, const ParamOptions& param_options) {
  return LayerNorm(o.d_model, {.eps = o.layer.layer_norm_eps, .bias = o.layer.bias}, param_options);
}

}  // namespace

TransformerDecoderLayer::TransformerDecoderLayer(int64_t d_model, int64_t nhead,
                                                 const TransformerEncoderLayerOptions& o,
                                                 const ParamOptions& param_options)
    : self_attn(d_model, nhead, attention(o), param_options),
      multihead_attn(d_model, nhead, attention(o), param_options),
      linear1(d_model, o.dim_feedforward, o.bias, param_options),
      dropout(o.dropout),
      linear2(o.dim_feedforward, d_model, o.bias, param_options),
      norm1(d_model, {.eps = o.layer_norm_eps, .bias = o.bias}, param_options),
      norm2(d_model, {.eps = o.layer_norm_eps, .bias = o.bias}, param_options),
      norm3(d_model, {.eps = o.layer_norm_eps, .bias = o.bias}, param_options),
      dropout1(o.dropout),
      dropout2(o.dropout),
      dropout3(o.dropout),
      norm_first_(o.norm_first),
      gelu_(o.activation == "gelu") {
  if (o.activation != "relu" && o.activation != "gelu") {
    throw_error<ValueError>("TransformerDecoderLayer: the activation is unknown; got '",
                            o.activation, "'; expected 'relu' or 'gelu'");
  }
}
TransformerDecoderLayer::TransformerDecoderLayer(const Config& config,
                                                 const ParamOptions& param_options)
    : TransformerDecoderLayer(
          int64_t{kiln::detail::with_required(config, "TransformerDecoderLayer").d_model},
          int64_t{kiln::detail::with_required(config, "TransformerDecoderLayer").nhead},
          config.options, param_options) {}

Tensor TransformerDecoderLayer::forward(const Tensor& tgt, const Tensor& memory,
                                        const TransformerDecoderCall& call) {
  const auto attend = [&](const Tensor& x) {
    const MultiheadAttentionCall own{.key_padding_mask = call.tgt_key_padding_mask,
                                     .need_weights = false,
                                     .attn_mask = call.tgt_mask,
                                     .is_causal = call.tgt_is_causal && !call.tgt_mask.defined()};
    return dropout1(self_attn(x, x, x, own).first);
  };
  const auto look = [&](const Tensor& x) {
    const MultiheadAttentionCall own{
        .key_padding_mask = call.memory_key_padding_mask,
        .need_weights = false,
        .attn_mask = call.memory_mask,
        .is_causal = call.memory_is_causal && !call.memory_mask.defined()};
    return dropout2(multihead_attn(x, memory, memory, own).first);
  };
  const auto think = [&](const Tensor& x) {
    const Tensor hidden = linear1(x);
    return dropout3(linear2(dropout(gelu_ ? gelu(hidden) : relu(hidden))));
  };
  if (norm_first_) {
    Tensor x = tgt + attend(norm1(tgt));
    x = x + look(norm2(x));
    return x + think(norm3(x));
  }
  Tensor x = norm1(tgt + attend(tgt));
  x = norm2(x + look(x));
  return norm3(x + think(x));
}

TransformerEncoder::TransformerEncoder(const TransformerEncoderLayer& layer, int64_t num_layers,
                                       std::optional<LayerNorm> last)
    : layers(copies("TransformerEncoder", layer, num_layers)), norm(std::move(last)) {}

Tensor TransformerEncoder::forward(const Tensor& src, const Tensor& mask,
                                   const Tensor& src_key_padding_mask, bool is_causal) {
  Tensor x = src;
  for (TransformerEncoderLayer& layer : layers) x = layer(x, mask, src_key_padding_mask, is_causal);
  return norm ? (*norm)(x) : x;
}

TransformerDecoder::TransformerDecoder(const TransformerDecoderLayer& layer, int64_t num_layers,
                                       std::optional<LayerNorm> last)
    : layers(copies("TransformerDecoder", layer, num_layers)), norm(std::move(last)) {}

Tensor TransformerDecoder::forward(const Tensor& tgt, const Tensor& memory,
                                   const TransformerDecoderCall& call) {
  Tensor x = tgt;
  for (TransformerDecoderLayer& layer : layers) x = layer(x, memory, call);
  return norm ? (*norm)(x) : x;
}

Transformer::Transformer(const TransformerOptions& o, const ParamOptions& param_options)
    : encoder(TransformerEncoderLayer(o.d_model, o.nhead, o.layer, param_options),
              o.num_encoder_layers, norm_of(o, param_options)),
      decoder(TransformerDecoderLayer(o.d_model, o.nhead, o.layer, param_options),
              o.num_decoder_layers, norm_of(o, param_options)),
      d_model_(o.d_model) {
  reset_parameters();
}

void Transformer::reset_parameters() {
  for (Tensor& x : parameters()) {
    if (x.dim() > 1) init::xavier_uniform_(x);
  }
}

Tensor Transformer::forward(const Tensor& src, const Tensor& tgt, const TransformerCall& call) {
  for (const Tensor* x : {&src, &tgt}) {
    if (x->dim() < 2 || x->size(-1) != d_model_) {
      throw_error<ShapeError>("Transformer: expected d_model ", d_model_,
                              " features in the last dim; got shape ", x->shape());
    }
  }
  const Tensor memory = encoder(src, call.src_mask, call.src_key_padding_mask, call.src_is_causal);
  return decoder(tgt, memory, call.decoder);
}

Tensor Transformer::generate_square_subsequent_mask(int64_t n, const TensorOptions& options) {
  return triu(full({n, n}, -std::numeric_limits<double>::infinity(), options), 1);
}

KILN_MODULE_DEFINED(TransformerDecoderLayer, self_attn, multihead_attn, linear1, dropout, linear2,
                    norm1, norm2, norm3, dropout1, dropout2, dropout3)
KILN_MODULE_DEFINED(TransformerEncoder, layers, norm)
KILN_MODULE_DEFINED(TransformerDecoder, layers, norm)
KILN_MODULE_DEFINED(Transformer, encoder, decoder)

}  // namespace kiln::nn
