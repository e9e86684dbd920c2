// MultiheadAttention (Vaswani et al., 2017), as torch.nn.MultiheadAttention.
#pragma once

#include <string>
#include <utility>

#include "kiln/core/config.h"
#include "kiln/nn/linear.h"
#include "kiln/nn/module.h"
#include "kiln/tensor/nn/attention.h"

namespace kiln::nn {

struct MultiheadAttentionOptions {
  double dropout = 0.0;  // of the attention weights, in training mode
  bool bias = true;
  int64_t kdim = 0;  // features of key and value; 0: embed_dim
  int64_t vdim = 0;
  bool batch_first = false;  // [N, L, E] instead of [L, N, E]
  KILN_CONFIG(MultiheadAttentionOptions, doc(dropout, "of the attention weights, in training mode"),
              bias, doc(kdim, "features of key; 0: embed_dim"),
              doc(vdim, "features of value; 0: embed_dim"),
              doc(batch_first, "[N, L, E] instead of [L, N, E]"))
};

struct MultiheadAttentionConfig {
  Required<int64_t> embed_dim = {};
  Required<int64_t> num_heads = {};
  MultiheadAttentionOptions options = {};
  KILN_CONFIG(MultiheadAttentionConfig, embed_dim, num_heads, options)
};

// What one call may ask for. Masks are PyTorch's: bool ones are true where attention is NOT allowed
// (scaled_dot_product_attention has it the other way round), floats are added to the scores.
struct MultiheadAttentionCall {
  Tensor key_padding_mask = {};      // [N, S], or [S] without a batch
  bool need_weights = true;          // also the weights, by way of the matrix of scores: slower
  Tensor attn_mask = {};             // [L, S] or [N * num_heads, L, S]
  bool average_attn_weights = true;  // over the heads
  bool is_causal = false;            // query l sees keys 0..l
};

// query [L, N, E], key [S, N, kdim], value [S, N, vdim] (see batch_first; N may be left out) ->
// output in the shape of query, and weights [N, L, S] ([N, H, L, S] without averaging), undefined
// unless they are wanted. State dict: in_proj_weight [3 E, E] (q_proj_weight, k_proj_weight,
// v_proj_weight where kdim or vdim is not E), in_proj_bias [3 E], out_proj.weight, out_proj.bias.
// Throws ValueError unless num_heads divides embed_dim.
//   MultiheadAttention attention{8, 2, {.batch_first = true}};
class MultiheadAttention : public Module {
 public:
  using Config = MultiheadAttentionConfig;
  MultiheadAttention(int64_t embed_dim, int64_t num_heads,
                     const MultiheadAttentionOptions& options = {},
                     const ParamOptions& param_options = {});
  explicit MultiheadAttention(const Config& config, const ParamOptions& param_options = {});

  Param<Tensor> in_proj_weight;
  Param<Tensor> q_proj_weight, k_proj_weight, v_proj_weight;
  Param<Tensor> in_proj_bias;
  Linear out_proj;
  KILN_MODULE_DECLARED(MultiheadAttention)

  std::pair<Tensor, Tensor> forward(const Tensor& query, const Tensor& key, const Tensor& value,
                                    const MultiheadAttentionCall& call = {});
  void reset_parameters();

  int64_t embed_dim() const { return embed_dim_; }
  int64_t num_heads() const { return num_heads_; }
  const MultiheadAttentionOptions& options() const { return options_; }

 private:
  struct Projected;
  Projected project(const Tensor& query, const Tensor& key, const Tensor& value) const;
  Tensor split_heads(const Tensor& x) const;
  Tensor additive_mask(const MultiheadAttentionCall& call, const Tensor& q, int64_t keys) const;
  std::pair<Tensor, Tensor> batched(const Tensor& query, const Tensor& key, const Tensor& value,
                                    const MultiheadAttentionCall& call);

  int64_t embed_dim_;
  int64_t num_heads_;
  MultiheadAttentionOptions options_;
};

}  // namespace kiln::nn
