#include "kiln/models/whisper.h"

#include <algorithm>
#include <cmath>

#include "kiln/core/error.h"
#include "kiln/models/language_support.h"
#include "kiln/nn/init.h"
#include "kiln/tensor/autograd/grad_mode.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/nn/attention.h"
#include "kiln/tensor/nn/dropout.h"
#include "kiln/tensor/ops.h"
#include "kiln/tensor/shape/joining.h"

namespace kiln::models {
namespace {

// Sines, then cosines, of channels / 2 frequencies: [length, channels].
void sinusoids(Tensor& x) {
  const int64_t half = x.size(1) / 2;
  const double step = std::log(10000.0) / double(std::max<int64_t>(1, half - 1));
  const Tensor frequency = (arange(0, half, 1, {.dtype = f32}) * -step).exp();
  const Tensor angle = arange(0, x.size(0), 1, {.dtype = f32}).unsqueeze(1) * frequency;
  x.copy_(cat({angle.sin(), angle.cos()}, 1));
}

struct WhisperAttention : nn::Module {
  nn::Linear k_proj, v_proj, q_proj, out_proj;
  KILN_MODULE(WhisperAttention, k_proj, v_proj, q_proj, out_proj)

  WhisperAttention(const WhisperConfig& c, int64_t heads, size_t layer)
      : k_proj(projection(c.d_model, c.d_model, false, c.init_std)),
        v_proj(projection(c.d_model, c.d_model, true, c.init_std)),
        q_proj(projection(c.d_model, c.d_model, true, c.init_std)),
        out_proj(projection(c.d_model, c.d_model, true, c.init_std)),
        heads_(heads),
        layer_(layer) {}

  // To x itself, or to a memory, whose keys and values the cache keeps once and for all.
  Tensor forward(const Tensor& x, const Tensor& memory, const AttentionMask& mask,
                 KeyValueCache* cache) {
    const Tensor q = split_heads(q_proj(x), heads_);
    Tensor k, v;
    if (memory.defined() && cache && cache->length(layer_) > 0) {
      std::tie(k, v) = cache->layer(layer_);
    } else {
      const Tensor& source = memory.defined() ? memory : x;
      k = split_heads(k_proj(source), heads_);
      v = split_heads(v_proj(source), heads_);
      if (cache) std::tie(k, v) = cache->update(layer_, k, v);
    }
    const Tensor y =
        functional::scaled_dot_product_attention(q, k, v, mask.first, 0.0, mask.second);
    return out_proj(y.transpose(1, 2).reshape(x.shape()));
  }

 private:
  int64_t heads_;
  size_t layer_;
};

struct WhisperLayer : nn::Module {
  WhisperAttention self_attn;
  nn::LayerNorm self_attn_layer_norm;
  std::optional<WhisperAttention> encoder_attn;
  std::optional<nn::LayerNorm> encoder_attn_layer_norm;
  nn::Linear fc1, fc2;
  nn::LayerNorm final_layer_norm;
  KILN_MODULE(WhisperLayer, self_attn, self_attn_layer_norm, encoder_attn, encoder_attn_layer_norm,
              fc1, fc2, final_layer_norm)

  WhisperLayer(const WhisperConfig& c, size_t layer, bool decoder)
      : self_attn(c, decoder ? c.decoder_attention_heads : c.encoder_attention_heads, layer),
        self_attn_layer_norm(c.d_model),
        fc1(projection(c.d_model, decoder ? c.decoder_ffn_dim : c.encoder_ffn_dim, true,
                       c.init_std)),
        fc2(projection(decoder ? c.decoder_ffn_dim : c.encoder_ffn_dim, c.d_model, true,
                       c.init_std)),
        final_layer_norm(c.d_model),
        dropout_(c.dropout) {
    if (decoder) {
      encoder_attn.emplace(c, c.decoder_attention_heads, layer);
      encoder_attn_layer_norm.emplace(c.d_model);
    }
  }

  Tensor forward(const Tensor& input, const Tensor& memory, const AttentionMask& mask,
                 const WhisperCall& call) {
    Tensor x = input + drop(self_attn(self_attn_layer_norm(input), Tensor(), mask, call.cache));
    if (encoder_attn) {
      const Tensor y = (*encoder_attn_layer_norm)(x);
      x = x + drop((*encoder_attn)(y, memory, AttentionMask(), call.memory));
    }
    return x + drop(fc2(fc1(final_layer_norm(x)).gelu()));
  }

 private:
  Tensor drop(const Tensor& x) const { return functional::dropout(x, dropout_, is_training()); }
  double dropout_;
};

WhisperConfig checked(const WhisperConfig& c) {
  require_at_least_one("WhisperConfig", {{"vocab_size", c.vocab_size},
                                         {"num_mel_bins", c.num_mel_bins},
                                         {"encoder_layers", c.encoder_layers},
                                         {"encoder_attention_heads", c.encoder_attention_heads},
                                         {"decoder_layers", c.decoder_layers},
                                         {"decoder_attention_heads", c.decoder_attention_heads},
                                         {"encoder_ffn_dim", c.encoder_ffn_dim},
                                         {"decoder_ffn_dim", c.decoder_ffn_dim},
                                         {"d_model", c.d_model},
                                         {"max_source_positions", c.max_source_positions},
                                         {"max_target_positions", c.max_target_positions}});
  require_multiple("WhisperConfig", "d_model", c.d_model, "encoder_attention_heads",
                   c.encoder_attention_heads);
  require_multiple("WhisperConfig", "d_model", c.d_model, "decoder_attention_heads",
                   c.decoder_attention_heads);
  return c;
}

}  // namespace

WhisperEncoder::WhisperEncoder(const WhisperConfig& c)
    : conv1(c.num_mel_bins, c.d_model, 3, {.padding = 1}),
      conv2(c.d_model, c.d_model, 3, {.stride = 2, .padding = 1}),
      embed_positions(c.max_source_positions, c.d_model),
      layer_norm(c.d_model),
      config_(checked(c)) {
  embed_positions.weight = nn::parameter({c.max_source_positions, c.d_model}, sinusoids);
  embed_positions.weight.set_require_grad(false);
  for (int64_t i = 0; i < c.encoder_layers; ++i) {
    layers.push_back(WhisperLayer(c, size_t(i), false));
  }
}

Tensor WhisperEncoder::forward(const Tensor& features) {
  if (features.dim() != 3 || features.size(1) != config_.num_mel_bins ||
      features.size(2) != 2 * config_.max_source_positions) {
    throw_error<ValueError>("Whisper: input_features must be [N, ", config_.num_mel_bins, ", ",
                            2 * config_.max_source_positions, "]; got ",
                            to_string(features.shape()));
  }
  const Tensor y = conv2(conv1(features).gelu()).gelu().transpose(1, 2);
  Tensor x = functional::dropout(y + *embed_positions.weight, config_.dropout, is_training());
  for (int64_t i = 0; i < int64_t(layers.size()); ++i) {
    x = layers.at<WhisperLayer>(i)(x, Tensor(), AttentionMask(), WhisperCall());
  }
  return layer_norm(x);
}
KILN_MODULE_DEFINED(WhisperEncoder, conv1, conv2, embed_positions, layers, layer_norm)

WhisperDecoder::WhisperDecoder(const WhisperConfig& c)
    : embed_tokens(table(c.vocab_size, c.d_model, c.init_std)),
      embed_positions(table(c.max_target_positions, c.d_model, c.init_std)),
      layer_norm(c.d_model),
      config_(c) {
  for (int64_t i = 0; i < c.decoder_layers; ++i) {
    layers.push_back(WhisperLayer(c, size_t(i), true));
  }
}

Tensor WhisperDecoder::forward(const Tensor& ids, const Tensor& memory, const WhisperCall& call) {
  check_input_ids("Whisper", ids);
  const int64_t past = call.cache ? call.cache->length() : 0, t = ids.size(1);
  if (past + t > config_.max_target_positions) {
    throw_error<ValueError>("Whisper: at most ", config_.max_target_positions, " positions; got ",
                            past + t);
  }
  const Tensor positions = call.position_ids.defined()
                               ? call.position_ids
                               : arange(past, past + t, 1, {.device = ids.device()});
  const AttentionMask mask = causal_mask(call.attention_mask, t, past + t, ids.device());
  Tensor x = functional::dropout(embed_tokens(ids) + embed_positions(positions), config_.dropout,
                                 is_training());
  for (int64_t i = 0; i < int64_t(layers.size()); ++i) {
    x = layers.at<WhisperLayer>(i)(x, memory, mask, call);
  }
  return layer_norm(x);
}
KILN_MODULE_DEFINED(WhisperDecoder, embed_tokens, embed_positions, layers, layer_norm)

Tensor WhisperModel::forward(const Tensor& input_features, const Tensor& ids) {
  return decoder(ids, encoder(input_features));
}
KILN_MODULE_DEFINED(WhisperModel, encoder, decoder)

WhisperForConditionalGeneration::WhisperForConditionalGeneration(const WhisperConfig& c)
    : model(c), proj_out(c.d_model, c.vocab_size, false), config_(c) {
  nn::tie_weights(proj_out.weight, model.decoder.embed_tokens.weight);
}

Tensor WhisperForConditionalGeneration::forward(const Tensor& input_features, const Tensor& ids) {
  return proj_out(model(input_features, ids));
}

Tensor WhisperForConditionalGeneration::generate(const Tensor& input_features,
                                                 const GenerateOptions& options) {
  const std::vector<std::vector<int64_t>> prompts(size_t(input_features.size(0)),
                                                  {config_.decoder_start_token_id});
  check_length("Whisper", prompts, options, config_.max_target_positions);
  const NoGradGuard guard;
  const Tensor memory = model.encoder(input_features);
  KeyValueCache of_memory;
  const auto step = [&](const Tensor& ids, const Tensor& mask, const Tensor& positions,
                        KeyValueCache* cache) {
    const WhisperCall call{mask, positions, cache, cache ? &of_memory : nullptr};
    return proj_out(model.decoder(ids, memory, call).select(1, -1));
  };
  return models::generate(step, prompts, options);
}
KILN_MODULE_DEFINED(WhisperForConditionalGeneration, model, proj_out)

}  // namespace kiln::models
