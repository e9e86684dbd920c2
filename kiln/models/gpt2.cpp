#include "kiln/models/gpt2.h"

#include <algorithm>
#include <cmath>

#include "kiln/core/error.h"
#include "kiln/models/language_support.h"
#include "kiln/nn/init.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/linalg/products.h"
#include "kiln/tensor/nn/attention.h"
#include "kiln/tensor/nn/dropout.h"
#include "kiln/tensor/ops.h"

namespace kiln::models {
namespace {

// A linear layer whose weight is [inputs, outputs].
struct Conv1D : nn::Module {
  nn::Param<Tensor> weight;
  nn::Param<Tensor> bias;
  KILN_MODULE(Conv1D, weight, bias)

  Conv1D(int64_t inputs, int64_t outputs, double std)
      : weight(nn::parameter({inputs, outputs}, normal_values(std))),
        bias(nn::parameter({outputs}, nn::init::zeros_)) {}
  Tensor forward(const Tensor& x) {
    Shape shape = x.shape();
    const Tensor y = addmm(*bias, x.reshape({-1, shape[shape.size() - 1]}), *weight);
    shape[shape.size() - 1] = y.size(1);
    return y.view(shape);
  }
};

struct Attention : nn::Module {
  Conv1D c_attn;
  Conv1D c_proj;
  KILN_MODULE(Attention, c_attn, c_proj)

  Attention(const GPT2Config& config, size_t layer, double projection_std)
      : c_attn(config.n_embd, 3 * config.n_embd, config.initializer_range),
        c_proj(config.n_embd, config.n_embd, projection_std),
        config_(config),
        layer_(layer) {}

  Tensor forward(const Tensor& x, const AttentionMask& mask, KeyValueCache* cache) {
    const int64_t n = x.size(0), t = x.size(1), width = x.size(2);
    const Tensor qkv =
        c_attn(x).view({n, t, 3, config_.n_head, width / config_.n_head}).permute({2, 0, 3, 1, 4});
    Tensor k = qkv[1], v = qkv[2];
    if (cache) std::tie(k, v) = cache->update(layer_, k, v);
    const Tensor y = functional::scaled_dot_product_attention(
        qkv[0], k, v, mask.first, is_training() ? config_.attn_pdrop : 0.0, mask.second);
    return functional::dropout(c_proj(y.transpose(1, 2).reshape({n, t, width})),
                               config_.resid_pdrop, is_training());
  }

 private:
  GPT2Config config_;
  size_t layer_;
};

struct MLP : nn::Module {
  Conv1D c_fc;
  Conv1D c_proj;
  KILN_MODULE(MLP, c_fc, c_proj)

  MLP(const GPT2Config& config, int64_t inner, double projection_std)
      : c_fc(config.n_embd, inner, config.initializer_range),
        c_proj(inner, config.n_embd, projection_std),
        dropout_(config.resid_pdrop) {}
  Tensor forward(const Tensor& x) {
    return functional::dropout(c_proj(c_fc(x).gelu("tanh")), dropout_, is_training());
  }

 private:
  double dropout_;
};

struct GPT2Block : nn::Module {
  nn::LayerNorm ln_1;
  Attention attn;
  nn::LayerNorm ln_2;
  MLP mlp;
  KILN_MODULE(GPT2Block, ln_1, attn, ln_2, mlp)

  // The projections start smaller, so that the sum of all layers keeps its size.
  GPT2Block(const GPT2Config& c, size_t layer)
      : ln_1(c.n_embd, {.eps = c.layer_norm_epsilon}),
        attn(c, layer, c.initializer_range / std::sqrt(2.0 * double(c.n_layer))),
        ln_2(c.n_embd, {.eps = c.layer_norm_epsilon}),
        mlp(c, c.n_inner > 0 ? c.n_inner : 4 * c.n_embd,
            c.initializer_range / std::sqrt(2.0 * double(c.n_layer))) {}
  Tensor forward(const Tensor& x, const AttentionMask& mask, KeyValueCache* cache) {
    const Tensor y = x + attn(ln_1(x), mask, cache);
    return y + mlp(ln_2(y));
  }
};

GPT2Config checked(const GPT2Config& c) {
  require_at_least_one("GPT2Config", {{"vocab_size", c.vocab_size},
                                      {"n_positions", c.n_positions},
                                      {"n_embd", c.n_embd},
                                      {"n_layer", c.n_layer},
                                      {"n_head", c.n_head}});
  require_multiple("GPT2Config", "n_embd", c.n_embd, "n_head", c.n_head);
  return c;
}

}  // namespace

GPT2Model::GPT2Model(const GPT2Config& config)
    : wte(table(config.vocab_size, config.n_embd, config.initializer_range)),
      wpe(table(config.n_positions, config.n_embd, config.initializer_range)),
      ln_f(config.n_embd, {.eps = config.layer_norm_epsilon}),
      config_(checked(config)) {
  for (int64_t i = 0; i < config.n_layer; ++i) h.push_back(GPT2Block(config, size_t(i)));
}

Tensor GPT2Model::forward(const Tensor& input_ids, const CausalCall& call) {
  check_input_ids("GPT2", input_ids);
  const int64_t past = call.cache ? call.cache->length() : 0, t = input_ids.size(1);
  if (past + t > config_.n_positions) {
    throw_error<ValueError>("GPT2: at most ", config_.n_positions, " positions; got ", past + t);
  }
  const Tensor positions = call.position_ids.defined()
                               ? call.position_ids
                               : arange(past, past + t, 1, {.device = input_ids.device()});
  const AttentionMask mask = causal_mask(call.attention_mask, t, past + t, input_ids.device());
  Tensor x =
      functional::dropout(wte(input_ids) + wpe(positions), config_.embd_pdrop, is_training());
  for (int64_t i = 0; i < int64_t(h.size()); ++i) x = h.at<GPT2Block>(i)(x, mask, call.cache);
  return ln_f(x);
}
KILN_MODULE_DEFINED(GPT2Model, wte, wpe, h, ln_f)

GPT2LMHeadModel::GPT2LMHeadModel(const GPT2Config& config)
    : transformer(config), lm_head(config.n_embd, config.vocab_size, false), config_(config) {
  lm_head.weight =
      nn::parameter({config.vocab_size, config.n_embd}, normal_values(config.initializer_range));
  if (config.tie_word_embeddings) nn::tie_weights(lm_head.weight, transformer.wte.weight);
}

Tensor GPT2LMHeadModel::forward(const Tensor& input_ids, const CausalCall& call) {
  return lm_head(transformer(input_ids, call));
}

Tensor GPT2LMHeadModel::generate(const std::vector<std::vector<int64_t>>& prompts,
                                 const GenerateOptions& options) {
  check_length("GPT2", prompts, options, config_.n_positions);
  const auto step = [this](const Tensor& ids, const Tensor& mask, const Tensor& positions,
                           KeyValueCache* cache) {
    const Tensor hidden = transformer(ids, CausalCall{mask, positions, cache});
    return lm_head(hidden.select(1, -1));
  };
  return models::generate(step, prompts, options);
}
KILN_MODULE_DEFINED(GPT2LMHeadModel, transformer, lm_head)

GPT2LMHeadModel gpt2(const GPT2Config& config) { return GPT2LMHeadModel(config); }

}  // namespace kiln::models
