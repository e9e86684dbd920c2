// Llama (Touvron et al., 2023) and models of its kind, with the keys and options of Hugging Face's
// transformers.
#pragma once

#include "kiln/models/gpt2.h"
#include "kiln/nn/norm_layers.h"

namespace kiln::models {

// How positions turn (Su et al., 2021). rope_type: "default", "linear" (all slower by factor) or
// "llama3" (the slow ones slower, blended between two wave lengths).
struct RopeParameters {
  std::string rope_type = "default";
  double rope_theta = 10000.0;
  double factor = 1.0;
  double low_freq_factor = 1.0;
  double high_freq_factor = 4.0;
  int64_t original_max_position_embeddings = 8192;
};

struct LlamaConfig {
  int64_t vocab_size = 32000;
  int64_t hidden_size = 4096;
  int64_t intermediate_size = 11008;
  int64_t num_hidden_layers = 32;
  int64_t num_attention_heads = 32;
  int64_t num_key_value_heads = 0;  // 0: num_attention_heads
  int64_t head_dim = 0;             // 0: hidden_size / num_attention_heads
  double initializer_range = 0.02;
  double rms_norm_eps = 1e-6;
  RopeParameters rope_parameters = {};
  bool attention_bias = false;
  bool mlp_bias = false;
  double attention_dropout = 0.0;
  bool tie_word_embeddings = false;
};

// Token ids [N, T] -> hidden states [N, T, hidden_size].
class LlamaModel : public nn::Module {
 public:
  explicit LlamaModel(const LlamaConfig& config = {});
  nn::Embedding embed_tokens;
  nn::ModuleList layers;
  nn::RMSNorm norm;
  KILN_MODULE_DECLARED(LlamaModel)
  Tensor forward(const Tensor& input_ids, const CausalCall& call = {});

 private:
  LlamaConfig config_;
};

// Token ids [N, T] -> logits [N, T, vocab_size] of each next token.
class LlamaForCausalLM : public nn::Module {
 public:
  explicit LlamaForCausalLM(const LlamaConfig& config = {});
  LlamaModel model;
  nn::Linear lm_head;
  KILN_MODULE_DECLARED(LlamaForCausalLM)
  Tensor forward(const Tensor& input_ids, const CausalCall& call = {});
  Tensor generate(const std::vector<std::vector<int64_t>>& prompts,
                  const GenerateOptions& options = {});
};

LlamaForCausalLM llama(const LlamaConfig& config = {});

}  // namespace kiln::models
