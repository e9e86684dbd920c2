// Ops of networks that have kernels of their own. Internal.
//
// Each computes what its row of ops.def says. Sums of 16-bit floats are kept in f32, and every
// result is the same bits in every run: what meets at one place is added in a fixed order.
#pragma once

#include <tuple>
#include <utility>

#include "kiln/backend/attention_options.h"
#include "kiln/backend/gpu/loops.h"

namespace kiln::gpu {

using Pair = std::pair<H, H>;
using Triple = std::tuple<H, H, H>;

// softmax.cpp
H softmax(const H& x, int dim, bool log);
H softmax_backward(const H& g, const H& y, int dim, bool log);

// cross_entropy.cpp
Pair cross_entropy(const H& logits, const H& targets, const CrossEntropyOptions& options);
H cross_entropy_backward(const H& g, const H& logits, const H& targets, const H& lse,
                         const CrossEntropyOptions& options);

// norms.cpp and batch_norm.cpp. Weights and biases may be absent.
Triple layer_norm(const H& x, const H* weight, const H* bias, int n, double eps);
Triple layer_norm_backward(const H& g, const H& x, const H* weight, const H& mean, const H& rstd,
                           int n);
Triple group_norm(const H& x, const H* weight, const H* bias, int64_t groups, double eps);
Triple group_norm_backward(const H& g, const H& x, const H* weight, const H& mean, const H& rstd,
                           int64_t groups);
Triple batch_norm(const H& x, const H* weight, const H* bias, double eps);
Triple batch_norm_backward(const H& g, const H& x, const H* weight, const H& mean, const H& var,
                           double eps);
H batch_norm_inference(const H& x, const H& mean, const H& var, const H* weight, const H* bias,
                       double eps);
Triple batch_norm_inference_backward(const H& g, const H& x, const H& mean, const H& var,
                                     const H* weight, double eps);

// pool.cpp
Pair max_pool(const H& x, const PoolOptions& options);
H max_pool_backward(const H& g, const H& places, const Shape& shape, const PoolOptions& options);
H avg_pool(const H& x, const PoolOptions& options);
H avg_pool_backward(const H& g, const Shape& shape, const PoolOptions& options);
H window_argmax(const H& x, const H& starts, const H& lengths, const Shape& out);

// conv.cpp
H conv2d(const H& x, const H& weight, const H* bias, const ConvOptions& options);
H conv2d_input_grad(const H& weight, const H& g, const Shape& shape, const ConvOptions& options);
H conv2d_weight_grad(const H& x, const H& g, const Shape& shape, const ConvOptions& options);

// attention.cpp. False where heads are too wide for a tile in local memory: then it is composed.
bool has_attention(const H& q, const H& v);
Pair attention(const H& q, const H& k, const H& v, const H* mask, const AttentionOptions& options);
Triple attention_backward(const H& g, const H& q, const H& k, const H& v, const H* mask,
                          const H& out, const H& lse, const AttentionOptions& options);

// random.cpp
H dropout(const H& x, double p, RandomStream stream);

// optimizer.cpp. False, and nothing done, where a tensor is no block of memory, row-major or
// channels last, its state lies otherwise, or dtypes differ.
bool optimizer_step(std::span<H> params, std::span<const H> grads, std::span<H> state,
                    const OptimizerStep& step);

// embedding.cpp: x [n, ..] with rows of src added, as scatter would, but the rows of x side by
// side.
bool has_segments(const H& x, int dim, const H& index);
H add_segments(const char* op, const H& x, const H& index, const H& src);

}  // namespace kiln::gpu
