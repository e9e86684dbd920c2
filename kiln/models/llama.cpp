#include "kiln/models/llama.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "kiln/core/error.h"
#include "kiln/models/language_support.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/nn/attention.h"
#include "kiln/tensor/ops.h"
#include "kiln/tensor/shape/joining.h"

namespace kiln::models {
namespace {

using Angles = std::pair<Tensor, Tensor>;  // cosines and sines

LlamaConfig completed(LlamaConfig c) {
  if (c.num_key_value_heads == 0) c.num_key_value_heads = c.num_attention_heads;
  require_at_least_one("LlamaConfig", {{"vocab_size", c.vocab_size},
                                       {"hidden_size", c.hidden_size},
                                       {"intermediate_size", c.intermediate_size},
                                       {"num_hidden_layers", c.num_hidden_layers},
                                       {"num_attention_heads", c.num_attention_heads},
                                       {"num_key_value_heads", c.num_key_value_heads}});
  require_multiple("LlamaConfig", "num_attention_heads", c.num_attention_heads,
                   "num_key_value_heads", c.num_key_value_heads);
  if (c.head_dim == 0) {
    require_multiple("LlamaConfig", "hidden_size", c.hidden_size, "num_attention_heads",
                     c.num_attention_heads);
    c.head_dim = c.hidden_size / c.num_attention_heads;
  }
  if (c.head_dim < 2 || c.head_dim % 2 != 0) {
    throw_error<ValueError>("LlamaConfig: head_dim must be even; got ", c.head_dim);
  }
  const std::string& type = c.rope_parameters.rope_type;
  if (type != "default" && type != "linear" && type != "llama3") {
    throw_error<ValueError>("LlamaConfig: rope_type must be 'default', 'linear' or 'llama3'; got '",
                            type, "'");
  }
  return c;
}

// The angle of each pair of features for a step of one position.
std::vector<float> frequencies(const RopeParameters& rope, int64_t head_dim) {
  std::vector<float> out;
  for (int64_t i = 0; i < head_dim; i += 2) {
    double f = std::pow(rope.rope_theta, -double(i) / double(head_dim));
    if (rope.rope_type == "linear") f /= rope.factor;
    if (rope.rope_type == "llama3") {
      const double waves =
          double(rope.original_max_position_embeddings) * f / (2 * std::numbers::pi);
      const double blend = std::clamp(
          (waves - rope.low_freq_factor) / (rope.high_freq_factor - rope.low_freq_factor), 0.0,
          1.0);
      f *= blend + (1 - blend) / rope.factor;
    }
    out.push_back(float(f));
  }
  return out;
}

// x [N, heads, T, features], each pair (i, i + half) turned by its angle.
Tensor rotate(const Tensor& x, const Angles& angles) {
  const int64_t half = x.size(-1) / 2;
  const Tensor turned = cat({x.narrow(-1, half, half).neg(), x.narrow(-1, 0, half)}, -1);
  return x * angles.first + turned * angles.second;
}

struct LlamaAttention : nn::Module {
  nn::Linear q_proj, k_proj, v_proj, o_proj;
  KILN_MODULE(LlamaAttention, q_proj, k_proj, v_proj, o_proj)

  LlamaAttention(const LlamaConfig& c, size_t layer)
      : q_proj(projection(c.hidden_size, c.num_attention_heads * c.head_dim, c.attention_bias,
                          c.initializer_range)),
        k_proj(projection(c.hidden_size, c.num_key_value_heads * c.head_dim, c.attention_bias,
                          c.initializer_range)),
        v_proj(projection(c.hidden_size, c.num_key_value_heads * c.head_dim, c.attention_bias,
                          c.initializer_range)),
        o_proj(projection(c.num_attention_heads * c.head_dim, c.hidden_size, c.attention_bias,
                          c.initializer_range)),
        config_(c),
        layer_(layer) {}

  Tensor forward(const Tensor& x, const Angles& angles, const AttentionMask& mask,
                 KeyValueCache* cache) {
    const Tensor q = rotate(split_heads(q_proj(x), config_.num_attention_heads), angles);
    Tensor k = rotate(split_heads(k_proj(x), config_.num_key_value_heads), angles);
    Tensor v = split_heads(v_proj(x), config_.num_key_value_heads);
    if (cache) std::tie(k, v) = cache->update(layer_, k, v);
    const Tensor y = functional::scaled_dot_product_attention(
        q, k, v, mask.first, is_training() ? config_.attention_dropout : 0.0, mask.second, {},
        /*enable_gqa=*/true);
    return o_proj(y.transpose(1, 2).reshape({x.size(0), x.size(1), -1}));
  }

 private:
  LlamaConfig config_;
  size_t layer_;
};

struct LlamaMLP : nn::Module {
  nn::Linear gate_proj, up_proj, down_proj;
  KILN_MODULE(LlamaMLP, gate_proj, up_proj, down_proj)

  explicit LlamaMLP(const LlamaConfig& c)
      : gate_proj(projection(c.hidden_size, c.intermediate_size, c.mlp_bias, c.initializer_range)),
        up_proj(projection(c.hidden_size, c.intermediate_size, c.mlp_bias, c.initializer_range)),
        down_proj(projection(c.intermediate_size, c.hidden_size, c.mlp_bias, c.initializer_range)) {
  }
  Tensor forward(const Tensor& x) { return down_proj(silu(gate_proj(x)) * up_proj(x)); }
};

nn::RMSNorm rms_norm(const LlamaConfig& c) {
  return nn::RMSNorm(
      {.normalized_shape = std::vector<int64_t>{c.hidden_size}, .eps = c.rms_norm_eps});
}

struct LlamaDecoderLayer : nn::Module {
  LlamaAttention self_attn;
  LlamaMLP mlp;
  nn::RMSNorm input_layernorm, post_attention_layernorm;
  KILN_MODULE(LlamaDecoderLayer, self_attn, mlp, input_layernorm, post_attention_layernorm)

  LlamaDecoderLayer(const LlamaConfig& c, size_t layer)
      : self_attn(c, layer),
        mlp(c),
        input_layernorm(rms_norm(c)),
        post_attention_layernorm(rms_norm(c)) {}
  Tensor forward(const Tensor& x, const Angles& angles, const AttentionMask& mask,
                 KeyValueCache* cache) {
    const Tensor y = x + self_attn(input_layernorm(x), angles, mask, cache);
    return y + mlp(post_attention_layernorm(y));
  }
};

}  // namespace

LlamaModel::LlamaModel(const LlamaConfig& config)
    : embed_tokens(table(config.vocab_size, config.hidden_size, config.initializer_range)),
      norm(rms_norm(config)),
      config_(completed(config)) {
  for (int64_t i = 0; i < config_.num_hidden_layers; ++i) {
    layers.push_back(LlamaDecoderLayer(config_, size_t(i)));
  }
}

Tensor LlamaModel::forward(const Tensor& input_ids, const CausalCall& call) {
  check_input_ids("Llama", input_ids);
  const int64_t past = call.cache ? call.cache->length() : 0, t = input_ids.size(1);
  const Tensor positions = call.position_ids.defined()
                               ? call.position_ids
                               : arange(past, past + t, 1, {.device = input_ids.device()});
  const AttentionMask mask = causal_mask(call.attention_mask, t, past + t, input_ids.device());
  Tensor x = embed_tokens(input_ids);
  const std::vector<float> turns = frequencies(config_.rope_parameters, config_.head_dim);
  const Tensor f = from_vector(turns, {int64_t(turns.size())}, {.device = input_ids.device()});
  Tensor angle = positions.to(f32).unsqueeze(-1) * f;
  angle = cat({angle, angle}, -1);
  if (angle.dim() == 3) angle = angle.unsqueeze(1);
  const Angles angles{angle.cos().to(x.dtype()), angle.sin().to(x.dtype())};
  for (int64_t i = 0; i < int64_t(layers.size()); ++i) {
    x = layers.at<LlamaDecoderLayer>(i)(x, angles, mask, call.cache);
  }
  return norm(x);
}
KILN_MODULE_DEFINED(LlamaModel, embed_tokens, layers, norm)

LlamaForCausalLM::LlamaForCausalLM(const LlamaConfig& config)
    : model(config),
      lm_head(projection(config.hidden_size, config.vocab_size, false, config.initializer_range)) {
  if (config.tie_word_embeddings) nn::tie_weights(lm_head.weight, model.embed_tokens.weight);
}

Tensor LlamaForCausalLM::forward(const Tensor& input_ids, const CausalCall& call) {
  return lm_head(model(input_ids, call));
}

Tensor LlamaForCausalLM::generate(const std::vector<std::vector<int64_t>>& prompts,
                                  const GenerateOptions& options) {
  const auto step = [this](const Tensor& ids, const Tensor& mask, const Tensor& positions,
                           KeyValueCache* cache) {
    return lm_head(model(ids, CausalCall{mask, positions, cache}).select(1, -1));
  };
  return models::generate(step, prompts, options);
}
KILN_MODULE_DEFINED(LlamaForCausalLM, model, lm_head)

LlamaForCausalLM llama(const LlamaConfig& config) { return LlamaForCausalLM(config); }

}  // namespace kiln::models
