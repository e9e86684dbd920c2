// CpuNeural: the ops of the fast host backend that networks spend their time in: products,
// convolutions, pooling, normalization, softmax and losses, dropout, optimizer steps. What each
// computes stands in ops.def.
//
// 16-bit floats are computed in float. Results are bit-identical at any number of threads: work is
// cut into pieces that depend on shapes alone, and what pieces sum is added up in their order.
#pragma once

#include <span>
#include <tuple>
#include <utility>

#include "kiln/backend/cpu/cpu_basic.h"
#include "kiln/backend/options.h"

namespace kiln {

struct CpuNeural : CpuBasic {
  // Products. (matmul.cpp)
  static HostHandle float_matmul(Arg<HostHandle>, Arg<HostHandle>);
  static HostHandle float_linear(Arg<HostHandle>, Arg<HostHandle>, const HostHandle*);
  static HostHandle float_linear_activation(Arg<HostHandle>, Arg<HostHandle>, const HostHandle*,
                                            const HostHandle*, Activation);
  static HostHandle int_matmul(Arg<HostHandle>, Arg<HostHandle>);

  // Products of integers of 8 or 4 bits with scales. (quantized_products.cpp)
  static HostHandle float_linear_quantized(Arg<HostHandle>, Arg<QuantizedHandle>,
                                           const HostHandle*);
  static HostHandle q_matmul(Arg<QuantizedHandle>, Arg<QuantizedHandle>, bool, DType);

  // Softmax and losses. (softmax.cpp, cross_entropy.cpp)
  static HostHandle float_softmax(Arg<HostHandle>, int);
  static HostHandle float_softmax_backward(Arg<HostHandle>, Arg<HostHandle>, int);
  static HostHandle float_log_softmax(Arg<HostHandle>, int);
  static HostHandle float_log_softmax_backward(Arg<HostHandle>, Arg<HostHandle>, int);
  static HostHandle float_logsumexp(Arg<HostHandle>, const Dims&, bool);
  static std::pair<HostHandle, HostHandle> float_cross_entropy(Arg<HostHandle>, Arg<HostHandle>,
                                                               const CrossEntropyOptions&);
  static HostHandle float_cross_entropy_backward(Arg<HostHandle>, Arg<HostHandle>, Arg<HostHandle>,
                                                 Arg<HostHandle>, const CrossEntropyOptions&);

  // Convolution. (conv.cpp)
  static HostHandle float_conv2d(Arg<HostHandle>, Arg<HostHandle>, const HostHandle*,
                                 const ConvOptions&);
  static HostHandle float_conv2d_input_grad(Arg<HostHandle>, Arg<HostHandle>, const Shape&,
                                            const ConvOptions&);
  static HostHandle float_conv2d_weight_grad(Arg<HostHandle>, Arg<HostHandle>, const Shape&,
                                             const ConvOptions&);

  // Pooling. (pool.cpp)
  static std::pair<HostHandle, HostHandle> float_max_pool2d(Arg<HostHandle>, const PoolOptions&);
  static HostHandle float_max_pool2d_backward(Arg<HostHandle>, Arg<HostHandle>, const Shape&);
  static HostHandle float_avg_pool2d(Arg<HostHandle>, const PoolOptions&);
  static HostHandle float_avg_pool2d_backward(Arg<HostHandle>, const Shape&, const PoolOptions&);

  // Images. (window_argmax.cpp, grid_sample.cpp, resample.cpp, pad_edges.cpp)
  static HostHandle float_window_argmax(Arg<HostHandle>, Arg<HostHandle>, Arg<HostHandle>,
                                        const Shape&, const Shape&);
  static HostHandle float_grid_sample(Arg<HostHandle>, Arg<HostHandle>, const GridOptions&);
  static HostHandle float_grid_sample_input_grad(Arg<HostHandle>, Arg<HostHandle>, const Shape&,
                                                 const GridOptions&);
  static HostHandle float_grid_sample_points_grad(Arg<HostHandle>, Arg<HostHandle>, Arg<HostHandle>,
                                                  const GridOptions&);
  static HostHandle float_resample(Arg<HostHandle>, const DimMaps&);
  static HostHandle int_resample(Arg<HostHandle>, const DimMaps&);
  static HostHandle float_pad_edges(Arg<HostHandle>, const Shape&, const Shape&, EdgeMode);
  static HostHandle float_pad_edges_backward(Arg<HostHandle>, const Shape&, const Shape&, EdgeMode);
  static HostHandle int_pad_edges(Arg<HostHandle>, const Shape&, const Shape&, EdgeMode);
  static HostHandle bool_pad_edges(Arg<HostHandle>, const Shape&, const Shape&, EdgeMode);

  // Normalization. (batch_norm.cpp, layer_norm.cpp, channel_norm.cpp)
  static std::tuple<HostHandle, HostHandle, HostHandle> float_batch_norm(Arg<HostHandle>,
                                                                         const HostHandle*,
                                                                         const HostHandle*, double);
  static std::tuple<HostHandle, HostHandle, HostHandle> float_batch_norm_backward(
      Arg<HostHandle>, Arg<HostHandle>, const HostHandle*, Arg<HostHandle>, Arg<HostHandle>,
      double);
  static HostHandle float_batch_norm_inference(Arg<HostHandle>, Arg<HostHandle>, Arg<HostHandle>,
                                               const HostHandle*, const HostHandle*, double);
  static std::tuple<HostHandle, HostHandle, HostHandle> float_batch_norm_inference_backward(
      Arg<HostHandle>, Arg<HostHandle>, Arg<HostHandle>, Arg<HostHandle>, const HostHandle*,
      double);
  static std::tuple<HostHandle, HostHandle, HostHandle> float_group_norm(Arg<HostHandle>,
                                                                         const HostHandle*,
                                                                         const HostHandle*, int64_t,
                                                                         double);
  static std::tuple<HostHandle, HostHandle, HostHandle> float_group_norm_backward(
      Arg<HostHandle>, Arg<HostHandle>, const HostHandle*, Arg<HostHandle>, Arg<HostHandle>,
      int64_t, double);
  static std::tuple<HostHandle, HostHandle, HostHandle> float_layer_norm(Arg<HostHandle>,
                                                                         const HostHandle*,
                                                                         const HostHandle*, int,
                                                                         double);
  static std::tuple<HostHandle, HostHandle, HostHandle> float_layer_norm_backward(
      Arg<HostHandle>, Arg<HostHandle>, const HostHandle*, Arg<HostHandle>, Arg<HostHandle>, int);

  // (attention.cpp, attention_backward.cpp)
  static std::pair<HostHandle, HostHandle> float_attention(Arg<HostHandle>, Arg<HostHandle>,
                                                           Arg<HostHandle>, const HostHandle*,
                                                           const AttentionOptions&);
  static std::tuple<HostHandle, HostHandle, HostHandle> float_attention_backward(
      Arg<HostHandle>, Arg<HostHandle>, Arg<HostHandle>, Arg<HostHandle>, const HostHandle*,
      Arg<HostHandle>, Arg<HostHandle>, const AttentionOptions&);

  // (dropout.cpp)
  static HostHandle float_dropout(Arg<HostHandle>, double, RandomStream);

  // (optimizer.cpp)
  static void float_optimizer_step(std::span<HostHandle>, std::span<const HostHandle>,
                                   std::span<HostHandle>, const OptimizerStep&);
};

}  // namespace kiln
