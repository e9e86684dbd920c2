#include "kiln/nn/multihead_attention.h"

#include <cmath>
#include <limits>

#include "kiln/core/error.h"
#include "kiln/nn/init.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/ops.h"

namespace kiln::nn {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

void fill_weight(Tensor& x) { init::xavier_uniform_(x); }

// Numbers to add to the scores, in their dtype.
Tensor as_additive(const Tensor& mask, const Tensor& like) {
  if (mask.dtype() != bool_) return mask.to(like.dtype());
  return zeros(mask.shape(), {like.dtype(), like.device()}).masked_fill(mask, -kInf);
}

Tensor causal_mask(int64_t queries, int64_t keys, const Tensor& like) {
  const TensorOptions where{i64, like.device()};
  const Tensor future = arange(keys, where).gt(arange(queries, where).unsqueeze(1));
  return as_additive(future, like);
}

void check_rank(const char* what, const Tensor& x, int64_t rank) {
  if (x.dim() == rank) return;
  throw_error<ShapeError>("MultiheadAttention: ", what, " must have ", rank,
                          " dims like query; got ", x.shape());
}

void check_mask(const char* what, const Tensor& mask, const Shape& a, const Shape& b) {
  if (mask.shape() == a || mask.shape() == b) return;
  throw_error<ShapeError>("MultiheadAttention: the shape of ", what, " is wrong; got ",
                          mask.shape(), "; expected ", a, " or ", b);
}

}  // namespace

MultiheadAttention::MultiheadAttention(int64_t embed_dim, int64_t num_heads,
                                       const MultiheadAttentionOptions& options,
                                       const ParamOptions& param_options)
    : out_proj(std::max<int64_t>(embed_dim, 0), std::max<int64_t>(embed_dim, 0), options.bias,
               param_options),
      embed_dim_(embed_dim),
      num_heads_(num_heads),
      options_(options) {
  if (embed_dim <= 0 || num_heads <= 0 || embed_dim % num_heads != 0) {
    throw_error<ValueError>(
        "MultiheadAttention: embed_dim must be positive and divisible by num_heads; got embed_dim ",
        embed_dim, " and num_heads ", num_heads);
  }
  if (!(options.dropout >= 0.0 && options.dropout <= 1.0)) {
    throw_error<ValueError>("MultiheadAttention: expected a dropout probability in [0, 1]; got ",
                            options.dropout);
  }
  if (options_.kdim == 0) options_.kdim = embed_dim;
  if (options_.vdim == 0) options_.vdim = embed_dim;
  if (options_.kdim == embed_dim && options_.vdim == embed_dim) {
    in_proj_weight = parameter({3 * embed_dim, embed_dim}, fill_weight, param_options);
  } else {
    q_proj_weight = parameter({embed_dim, embed_dim}, fill_weight, param_options);
    k_proj_weight = parameter({embed_dim, options_.kdim}, fill_weight, param_options);
    v_proj_weight = parameter({embed_dim, options_.vdim}, fill_weight, param_options);
  }
  if (options.bias) {
    in_proj_bias = parameter({3 * embed_dim}, init::zeros_, param_options);
    out_proj.bias = parameter({embed_dim}, init::zeros_, param_options);
  }
}
MultiheadAttention::MultiheadAttention(const Config& config, const ParamOptions& param_options)
    // (As numbers: otherwise these arguments are a configuration again.)
    : MultiheadAttention(int64_t{kiln::detail::with_required(config).embed_dim},
                         int64_t{kiln::detail::with_required(config).num_heads}, config.options,
                         param_options) {}

void MultiheadAttention::reset_parameters() {
  for (Param<Tensor>* weight : {&in_proj_weight, &q_proj_weight, &k_proj_weight, &v_proj_weight}) {
    refill(*weight, fill_weight);
  }
  refill(in_proj_bias, init::zeros_);
  out_proj.reset_parameters();
  refill(out_proj.bias, init::zeros_);
}

struct MultiheadAttention::Projected {
  Tensor q, k, v;  // [N, rows, E]
};

MultiheadAttention::Projected MultiheadAttention::project(const Tensor& query, const Tensor& key,
                                                          const Tensor& value) const {
  const int64_t e = embed_dim_;
  const bool biased = in_proj_bias.defined();
  if (!in_proj_weight.defined()) {
    std::vector<Tensor> biases = biased ? in_proj_bias->split(e) : std::vector<Tensor>(3);
    return {functional::linear(query, q_proj_weight, biases[0]),
            functional::linear(key, k_proj_weight, biases[1]),
            functional::linear(value, v_proj_weight, biases[2])};
  }
  const Tensor& weight = in_proj_weight;
  if (query.is_same(key) && key.is_same(value)) {  // one product
    std::vector<Tensor> parts =
        functional::linear(query, weight, biased ? *in_proj_bias : Tensor()).split(e, -1);
    return {parts[0], parts[1], parts[2]};
  }
  const std::vector<Tensor> weights = weight.split(e);
  std::vector<Tensor> biases = biased ? in_proj_bias->split(e) : std::vector<Tensor>(3);
  return {functional::linear(query, weights[0], biases[0]),
          functional::linear(key, weights[1], biases[1]),
          functional::linear(value, weights[2], biases[2])};
}

// [N, rows, E] -> [N, heads, rows, E / heads]
Tensor MultiheadAttention::split_heads(const Tensor& x) const {
  return x.reshape({x.size(0), x.size(1), num_heads_, embed_dim_ / num_heads_}).transpose(1, 2);
}

// What is added to the scores [N, H, L, S]; undefined for nothing.
Tensor MultiheadAttention::additive_mask(const MultiheadAttentionCall& call, const Tensor& q,
                                         int64_t keys) const {
  const int64_t batch = q.size(0), queries = q.size(2);
  Tensor mask;
  if (call.attn_mask.defined()) {
    check_mask("attn_mask", call.attn_mask, Shape{queries, keys},
               Shape{batch * num_heads_, queries, keys});
    mask = as_additive(call.attn_mask, q);
    if (mask.dim() == 3) mask = mask.reshape({batch, num_heads_, queries, keys});
  }
  if (call.key_padding_mask.defined()) {
    check_mask("key_padding_mask", call.key_padding_mask, Shape{batch, keys}, Shape{batch, keys});
    const Tensor padding = as_additive(call.key_padding_mask, q).reshape({batch, 1, 1, keys});
    mask = mask.defined() ? mask + padding : padding;
  }
  return mask;
}

std::pair<Tensor, Tensor> MultiheadAttention::batched(const Tensor& query, const Tensor& key,
                                                      const Tensor& value,
                                                      const MultiheadAttentionCall& call) {
  const Projected p = project(query, key, value);
  const Tensor q = split_heads(p.q), k = split_heads(p.k), v = split_heads(p.v);
  Tensor mask = additive_mask(call, q, k.size(2));
  const double dropout = is_training() ? options_.dropout : 0.0;
  Tensor context, weights;
  if (!call.need_weights) {
    const bool causal = call.is_causal && !mask.defined();
    if (call.is_causal && mask.defined()) mask = mask + causal_mask(q.size(2), k.size(2), q);
    context = functional::scaled_dot_product_attention(q, k, v, mask, dropout, causal);
  } else {
    const double scale = 1.0 / std::sqrt(static_cast<double>(embed_dim_ / num_heads_));
    Tensor scores = matmul(q * scale, k.transpose(-2, -1));
    if (mask.defined()) scores = scores + mask;
    if (call.is_causal) scores = scores + causal_mask(q.size(2), k.size(2), q);
    weights = functional::dropout(softmax(scores, -1), dropout, dropout > 0.0);
    context = matmul(weights, v);
    if (call.average_attn_weights) weights = weights.mean({1});
  }
  const Tensor joined = context.transpose(1, 2).reshape({query.size(0), query.size(1), embed_dim_});
  return {out_proj(joined), weights};
}

std::pair<Tensor, Tensor> MultiheadAttention::forward(const Tensor& query, const Tensor& key,
                                                      const Tensor& value,
                                                      const MultiheadAttentionCall& call) {
  const int64_t rank = query.dim();
  if (rank != 2 && rank != 3) {
    throw_error<ShapeError>("MultiheadAttention: query must have 2 or 3 dims; got ", query.shape());
  }
  check_rank("key", key, rank);
  check_rank("value", value, rank);
  // To [N, rows, features]; tensors that are one stay one.
  const auto prepare = [&](const Tensor& x) {
    if (rank == 2) return x.unsqueeze(0);
    return options_.batch_first ? x : x.transpose(0, 1);
  };
  const Tensor q = prepare(query);
  const Tensor k = key.is_same(query) ? q : prepare(key);
  const Tensor v = value.is_same(key) ? k : value.is_same(query) ? q : prepare(value);
  MultiheadAttentionCall inner = call;
  if (rank == 2 && call.key_padding_mask.defined()) {
    inner.key_padding_mask = call.key_padding_mask.unsqueeze(0);
  }
  auto [out, weights] = batched(q, k, v, inner);
  if (rank == 2) {
    if (weights.defined()) weights = weights.squeeze(0);
    return {out.squeeze(0), weights};
  }
  return {options_.batch_first ? out : out.transpose(0, 1).contiguous(), weights};
}

KILN_MODULE_DEFINED(MultiheadAttention, in_proj_weight, q_proj_weight, k_proj_weight, v_proj_weight,
                    in_proj_bias, out_proj)

}  // namespace kiln::nn
