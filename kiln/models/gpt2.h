// GPT-2 (Radford et al., 2019), with the keys and options of Hugging Face's transformers.
#pragma once

#include <vector>

#include "kiln/models/generation.h"
#include "kiln/nn/embedding.h"
#include "kiln/nn/layer_norm.h"
#include "kiln/nn/linear.h"
#include "kiln/nn/module_list.h"

namespace kiln::models {

// Defaults are those of the model with 124 million parameters.
struct GPT2Config {
  int64_t vocab_size = 50257;
  int64_t n_positions = 1024;
  int64_t n_embd = 768;
  int64_t n_layer = 12;
  int64_t n_head = 12;
  int64_t n_inner = 0;  // 0: 4 n_embd
  double resid_pdrop = 0.1;
  double embd_pdrop = 0.1;
  double attn_pdrop = 0.1;
  double layer_norm_epsilon = 1e-5;
  double initializer_range = 0.02;
  bool tie_word_embeddings = true;
};

// Of one call. Without positions they count from what the cache has.
struct CausalCall {
  Tensor attention_mask = {};  // [N, all], 0 at padding
  Tensor position_ids = {};    // [N, T] or [T]
  KeyValueCache* cache = nullptr;
};

// Token ids [N, T] -> hidden states [N, T, n_embd].
class GPT2Model : public nn::Module {
 public:
  explicit GPT2Model(const GPT2Config& config = {});
  nn::Embedding wte, wpe;
  nn::ModuleList h;
  nn::LayerNorm ln_f;
  KILN_MODULE_DECLARED(GPT2Model)
  Tensor forward(const Tensor& input_ids, const CausalCall& call = {});

 private:
  GPT2Config config_;
};

// Token ids [N, T] -> logits [N, T, vocab_size] of each next token.
class GPT2LMHeadModel : public nn::Module {
 public:
  explicit GPT2LMHeadModel(const GPT2Config& config = {});
  GPT2Model transformer;
  nn::Linear lm_head;
  KILN_MODULE_DECLARED(GPT2LMHeadModel)
  Tensor forward(const Tensor& input_ids, const CausalCall& call = {});
  // The prompts and what the model writes behind them. Throws ValueError for more positions than
  // the model has.
  Tensor generate(const std::vector<std::vector<int64_t>>& prompts,
                  const GenerateOptions& options = {});

 private:
  GPT2Config config_;
};

GPT2LMHeadModel gpt2(const GPT2Config& config = {});

}  // namespace kiln::models
