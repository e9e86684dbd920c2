// The rows of networks as Gpu has them: kernels of its own (nn.h), or the compositions of
// BackendDefaults where a kernel does not take the operands. Internal.
#pragma once

#include "kiln/backend/defaults.h"
#include "kiln/backend/gpu/nn.h"

namespace kiln::gpu {

template <class Bk>
struct NnRows : BackendDefaults<Bk> {
  static H float_dropout(const H& x, double p, RandomStream stream) {
    return gpu::dropout(x, p, stream);
  }
  static H float_linear(const H& x, const H& weight, const H* bias) {
    if (H out = gpu::linear(x, weight, bias)) return out;
    return BackendDefaults<Bk>::float_linear(x, weight, bias);
  }
  static H float_softmax(const H& x, int dim) { return gpu::softmax(x, dim, false); }
  static H float_log_softmax(const H& x, int dim) { return gpu::softmax(x, dim, true); }
  static H float_softmax_backward(const H& g, const H& y, int dim) {
    return gpu::softmax_backward(g, y, dim, false);
  }
  static H float_log_softmax_backward(const H& g, const H& y, int dim) {
    return gpu::softmax_backward(g, y, dim, true);
  }

  static Pair float_cross_entropy(const H& logits, const H& targets,
                                  const CrossEntropyOptions& options) {
    return gpu::cross_entropy(logits, targets, options);
  }
  static H float_cross_entropy_backward(const H& g, const H& logits, const H& targets, const H& lse,
                                        const CrossEntropyOptions& options) {
    return gpu::cross_entropy_backward(g, logits, targets, lse, options);
  }

  static Triple float_layer_norm(const H& x, const H* weight, const H* bias, int n, double eps) {
    return gpu::layer_norm(x, weight, bias, n, eps);
  }
  static Triple float_layer_norm_backward(const H& g, const H& x, const H* weight, const H& mean,
                                          const H& rstd, int n) {
    return gpu::layer_norm_backward(g, x, weight, mean, rstd, n);
  }
  static Triple float_group_norm(const H& x, const H* weight, const H* bias, int64_t groups,
                                 double eps) {
    return gpu::group_norm(x, weight, bias, groups, eps);
  }
  static Triple float_group_norm_backward(const H& g, const H& x, const H* weight, const H& mean,
                                          const H& rstd, int64_t groups, double) {
    return gpu::group_norm_backward(g, x, weight, mean, rstd, groups);
  }
  static Triple float_batch_norm(const H& x, const H* weight, const H* bias, double eps) {
    return gpu::batch_norm(x, weight, bias, eps);
  }
  static Triple float_batch_norm_backward(const H& g, const H& x, const H* weight, const H& mean,
                                          const H& var, double eps) {
    return gpu::batch_norm_backward(g, x, weight, mean, var, eps);
  }
  static H float_batch_norm_inference(const H& x, const H& mean, const H& var, const H* weight,
                                      const H* bias, double eps) {
    return gpu::batch_norm_inference(x, mean, var, weight, bias, eps);
  }
  static Triple float_batch_norm_inference_backward(const H& g, const H& x, const H& mean,
                                                    const H& var, const H* weight, double eps) {
    return gpu::batch_norm_inference_backward(g, x, mean, var, weight, eps);
  }

  static Pair float_max_pool2d(const H& x, const PoolOptions& options) {
    return gpu::max_pool(x, options);
  }
  static H float_max_pool2d_backward(const H& g, const H& places, const Shape& shape,
                                     const PoolOptions& options) {
    return gpu::max_pool_backward(g, places, shape, options);
  }
  static H float_avg_pool2d(const H& x, const PoolOptions& options) {
    return gpu::avg_pool(x, options);
  }
  static H float_avg_pool2d_backward(const H& g, const Shape& shape, const PoolOptions& options) {
    return gpu::avg_pool_backward(g, shape, options);
  }
  static H float_window_argmax(const H& x, const H& starts, const H& lengths, const Shape& out,
                               const Shape&) {
    return gpu::window_argmax(x, starts, lengths, out);
  }

  static H float_conv2d(const H& x, const H& weight, const H* bias, const ConvOptions& options) {
    return gpu::conv2d(x, weight, bias, options);
  }
  static H float_conv2d_input_grad(const H& weight, const H& g, const Shape& shape,
                                   const ConvOptions& options) {
    return gpu::conv2d_input_grad(weight, g, shape, options);
  }
  static H float_conv2d_weight_grad(const H& x, const H& g, const Shape& shape,
                                    const ConvOptions& options) {
    return gpu::conv2d_weight_grad(x, g, shape, options);
  }

  static Pair float_attention(const H& q, const H& k, const H& v, const H* mask,
                              const AttentionOptions& options) {
    if (gpu::has_attention(q, v)) return gpu::attention(q, k, v, mask, options);
    return defaults::ComposedAttention<Bk>::forward(q, k, v, mask, options);
  }
  static Triple float_attention_backward(const H& g, const H& q, const H& k, const H& v,
                                         const H* mask, const H& out, const H& lse,
                                         const AttentionOptions& options) {
    if (gpu::has_attention(q, v)) {
      return gpu::attention_backward(g, q, k, v, mask, out, lse, options);
    }
    return defaults::ComposedAttention<Bk>::backward(g, q, k, v, mask, options);
  }

  static void float_optimizer_step(std::span<H> params, std::span<const H> grads,
                                   std::span<H> state, const OptimizerStep& step) {
    if (gpu::optimizer_step(params, grads, state, step)) return;
    defaults::OptimDefaults<Bk>::float_optimizer_step(params, grads, state, step);
  }
};

}  // namespace kiln::gpu
