// Meta: the backend whose tensors have a shape, a dtype and strides, and no values. Device "meta".
//
// Each row of ops.def has its rule here: what its result looks like, told by the operands alone.
// Results lie as those of Cpu do: those of elementwise ops as their operands, others row-major.
// reshape, permute, expand and slice are views wherever Cpu's are. What needs values throws
// NotImplementedError.
//
// The rows stand in a template, so that those which BackendDefaults would compose can be told from
// those which have a rule (rows_without_rule).
#pragma once

#include <tuple>
#include <utility>
#include <vector>

#include "kiln/backend/defaults.h"
#include "kiln/backend/meta/infer.h"
#include "kiln/backend/result_layout.h"
#include "kiln/backend/window_math.h"
#include "kiln/core/dim_order.h"

namespace kiln {

struct MetaTypes {
  using Device = kiln::Device;
  using FloatElem = float;
  using IntElem = int64_t;
  using BoolElem = bool;
  using FloatTensorPrimitive = MetaHandle;
  using IntTensorPrimitive = MetaHandle;
  using BoolTensorPrimitive = MetaHandle;
  using QuantizedTensorPrimitive = MetaQuantizedHandle;
};

namespace meta {

using M = MetaHandle;
using T = Arg<MetaHandle>;
using Q = Arg<MetaQuantizedHandle>;
using OptT = const MetaHandle*;
using List = std::span<const MetaHandle>;
using Mut = std::span<MetaHandle>;

inline M of_shape(const T& x, const Shape& shape) { return fresh(shape, x->dtype(), x->device()); }
inline M of_shape(const T& x, const Shape& shape, DType dtype) {
  return fresh(shape, dtype, x->device());
}
inline M like(const T& x) { return of_shape(x, x->shape()); }
inline M like(const T& x, DType dtype) { return of_shape(x, x->shape(), dtype); }
inline M reduced(const T& x, const Dims& dims, bool keepdim) {
  return of_shape(x, reduced_shape(x->shape(), dims, keepdim));
}
inline Shape together(const T& x, const T& y) {
  return broadcast_shapes("meta", x->shape(), y->shape());
}
// Results of elementwise ops.
inline M as(const T& x, DType dtype) { return fresh_as(x->shape(), dtype, {x.get()}); }
inline M as(const T& x) { return as(x, x->dtype()); }
inline M broadcast(const T& x, const T& y) {
  return fresh_as(together(x, y), x->dtype(), {x.get(), y.get()});
}
inline M broadcast(const T& x, const T& y, const T& z) {
  return fresh_as(broadcast_shapes("meta", together(x, y), z->shape()), x->dtype(),
                  {x.get(), y.get(), z.get()});
}
inline M compared(const T& x, const T& y) {
  return fresh_as(together(x, y), DType::boolean, {x.get(), y.get()});
}
inline M reshaped(const T& x, const Shape& shape) {
  M out = window::try_reshape(x.get(), shape);
  return out ? out : of_shape(x, shape);
}
inline M row_major(const T& x) { return x->is_contiguous() ? x.get() : like(x); }
// [N, H, L, E] as attention writes it: [N, L, H, E] in memory, so that joining the heads is a view.
inline M heads(const T& x, const Shape& s) {
  return window::permute(of_shape(x, {s[0], s[2], s[1], s[3]}), Dims{0, 2, 1, 3});
}
inline void written(const T& x) { x->storage()->bump_version(); }
inline void written(Mut xs) {
  for (const M& x : xs) x->storage()->bump_version();
}

template <class Base>
struct Rows : Base {
  using Device = kiln::Device;

// --------------------------------------------------------------------------- what the kinds share
#define KILN_META_KIND(kind)                                                                      \
  static M kind##_from_data(const TensorData& data, Device on) {                                  \
    return fresh(data.shape(), data.dtype(), on);                                                 \
  }                                                                                               \
  static TensorData kind##_into_data(T) { throw_no_values(#kind "_into_data"); }                  \
  static M kind##_to_device(T x, Device on) {                                                     \
    return x->device() == on ? x.get() : fresh(x->shape(), x->dtype(), on);                       \
  }                                                                                               \
  static M kind##_reshape(T x, const Shape& shape) { return reshaped(x, shape); }                 \
  static M kind##_permute(T x, const Dims& dims) { return window::permute(x.get(), dims); }       \
  static M kind##_expand(T x, const Shape& shape) { return window::expand(x.get(), shape); }      \
  static M kind##_slice(T x, int dim, Range range) { return window::slice(x.get(), dim, range); } \
  static M kind##_flip(T x, const Dims&) { return like(x); }                                      \
  static M kind##_contiguous(T x) { return row_major(x); }                                        \
  static void kind##_assign(T x, T) { written(x); }                                               \
  static void kind##_fill(T x, Scalar) { written(x); }                                            \
  static M kind##_gather(T x, int, T index) { return of_shape(x, index->shape()); }               \
  static M kind##_scatter(T x, int, T, T) { return like(x); }                                     \
  static M kind##_index_select(T x, int dim, T index) {                                           \
    return of_shape(x, infer::resized(x->shape(), dim, index->shape()[0]));                       \
  }                                                                                               \
  static M kind##_index_copy(T x, int, T, T) { return like(x); }                                  \
  static M kind##_cat(List parts, int dim) { return of_shape(parts[0], infer::cat(parts, dim)); } \
  static M kind##_mask_where(T x, T mask, T value) { return broadcast(x, mask, value); }          \
  static M kind##_mask_fill(T x, T mask, Scalar) { return broadcast(x, mask); }                   \
  static M kind##_equal(T x, T y) { return compared(x, y); }
  KILN_META_KIND(float)
  KILN_META_KIND(int)
  KILN_META_KIND(bool)
#undef KILN_META_KIND

#define KILN_META_SAME(name) \
  static M name(T x) { return as(x); }
#define KILN_META_BINARY(name) \
  static M name(T x, T y) { return broadcast(x, y); }
#define KILN_META_COMPARE(name) \
  static M name(T x, T y) { return compared(x, y); }
#define KILN_META_COMPARE_SCALAR(name) \
  static M name(T x, Scalar) { return as(x, DType::boolean); }
#define KILN_META_SCALAR(name) \
  static M name(T x, Scalar) { return as(x); }
#define KILN_META_REDUCE(name) \
  static M name(T x, const Dims& dims, bool keepdim) { return reduced(x, dims, keepdim); }
#define KILN_META_ALONG(name) \
  static M name(T x, int) { return like(x); }

// --------------------------------------------------------------------------- floats and integers
#define KILN_META_NUMBER(kind)                                                                     \
  static M kind##_empty(const Shape& shape, DType dtype, Device on) {                              \
    return fresh(shape, dtype, on);                                                                \
  }                                                                                                \
  static M kind##_full(const Shape& shape, Scalar, DType dtype, Device on) {                       \
    return fresh(shape, dtype, on);                                                                \
  }                                                                                                \
  static M kind##_random(const Shape& shape, Distribution, RandomStream, DType dtype, Device on) { \
    return fresh(shape, dtype, on);                                                                \
  }                                                                                                \
  static M kind##_cast(T x, DType dtype) { return x->dtype() == dtype ? x.get() : as(x, dtype); }  \
  static M kind##_into_bool(T x) { return as(x, DType::boolean); }                                 \
  static M kind##_scatter_add(T x, int, T, T) { return like(x); }                                  \
  static M kind##_index_add(T x, int, T, T) { return like(x); }                                    \
  static M kind##_scatter_reduce(T x, int, T, T, ScatterReduction) { return like(x); }             \
  KILN_META_BINARY(kind##_add)                                                                     \
  KILN_META_BINARY(kind##_sub)                                                                     \
  KILN_META_BINARY(kind##_mul)                                                                     \
  KILN_META_BINARY(kind##_div)                                                                     \
  KILN_META_BINARY(kind##_remainder)                                                               \
  KILN_META_BINARY(kind##_maximum)                                                                 \
  KILN_META_BINARY(kind##_minimum)                                                                 \
  KILN_META_SCALAR(kind##_add_scalar)                                                              \
  KILN_META_SCALAR(kind##_mul_scalar)                                                              \
  KILN_META_SCALAR(kind##_rsub_scalar)                                                             \
  KILN_META_SAME(kind##_neg)                                                                       \
  KILN_META_SAME(kind##_abs)                                                                       \
  KILN_META_SAME(kind##_sign)                                                                      \
  KILN_META_COMPARE(kind##_not_equal)                                                              \
  KILN_META_COMPARE(kind##_greater)                                                                \
  KILN_META_COMPARE(kind##_greater_equal)                                                          \
  KILN_META_COMPARE(kind##_lower)                                                                  \
  KILN_META_COMPARE(kind##_lower_equal)                                                            \
  KILN_META_COMPARE_SCALAR(kind##_equal_scalar)                                                    \
  KILN_META_COMPARE_SCALAR(kind##_not_equal_scalar)                                                \
  KILN_META_COMPARE_SCALAR(kind##_greater_scalar)                                                  \
  KILN_META_COMPARE_SCALAR(kind##_greater_equal_scalar)                                            \
  KILN_META_COMPARE_SCALAR(kind##_lower_scalar)                                                    \
  KILN_META_COMPARE_SCALAR(kind##_lower_equal_scalar)                                              \
  KILN_META_REDUCE(kind##_prod)                                                                    \
  KILN_META_REDUCE(kind##_amax)                                                                    \
  KILN_META_REDUCE(kind##_amin)                                                                    \
  static M kind##_argmax(T x, int dim, bool keepdim) {                                             \
    return of_shape(x, reduced_shape(x->shape(), {dim}, keepdim), DType::i64);                     \
  }                                                                                                \
  static M kind##_argmin(T x, int dim, bool keepdim) { return kind##_argmax(x, dim, keepdim); }    \
  KILN_META_ALONG(kind##_cumsum)                                                                   \
  KILN_META_ALONG(kind##_cumprod)                                                                  \
  static M kind##_cumarg(T x, int, bool) { return like(x, DType::i64); }                           \
  static M kind##_argtopk(T x, int64_t k, int dim, bool) {                                         \
    return of_shape(x, infer::resized(x->shape(), dim, k), DType::i64);                            \
  }                                                                                                \
  static M kind##_argplace(T x, T places, int) {                                                   \
    return of_shape(x, places->shape(), DType::i64);                                               \
  }                                                                                                \
  static M kind##_searchsorted(T, T values, bool) { return like(values, DType::i64); }             \
  static M kind##_matmul(T x, T y) { return of_shape(x, infer::matmul(x->shape(), y->shape())); }
  KILN_META_NUMBER(float)
  KILN_META_NUMBER(int)
#undef KILN_META_NUMBER

  // ------------------------------------------------------------------------------------- floats
  static M float_arange(double, double, int64_t count, DType dtype, Device on) {
    return fresh({count}, dtype, on);
  }
  static M float_into_int(T x, DType dtype) { return as(x, dtype); }
  static M float_bag_sum(T table, T, T starts, bool) {
    return of_shape(table, {starts->shape()[0] - 1, table->shape()[1]});
  }
  static M float_csr_matmul(T crow, T, T values, T dense, int64_t columns, bool transposed) {
    return of_shape(values, {transposed ? columns : crow->shape()[0] - 1, dense->shape()[1]});
  }
  static M float_csr_sampled_matmul(T, T col, T x, T) { return of_shape(x, col->shape()); }
  KILN_META_BINARY(float_pow)
  KILN_META_BINARY(float_atan2)
  KILN_META_SCALAR(float_div_scalar)
  KILN_META_SCALAR(float_remainder_scalar)
  KILN_META_SCALAR(float_pow_scalar)
  KILN_META_SCALAR(float_rdiv_scalar)
  static M float_clamp(T x, double, double) { return as(x); }
  KILN_META_SAME(float_square)
  KILN_META_SAME(float_sqrt)
  KILN_META_SAME(float_rsqrt)
  KILN_META_SAME(float_recip)
  KILN_META_SAME(float_exp)
  KILN_META_SAME(float_expm1)
  KILN_META_SAME(float_log)
  KILN_META_SAME(float_log1p)
  KILN_META_SAME(float_log2)
  KILN_META_SAME(float_log10)
  KILN_META_SAME(float_sin)
  KILN_META_SAME(float_cos)
  KILN_META_SAME(float_tan)
  KILN_META_SAME(float_asin)
  KILN_META_SAME(float_acos)
  KILN_META_SAME(float_atan)
  KILN_META_SAME(float_sinh)
  KILN_META_SAME(float_cosh)
  KILN_META_SAME(float_tanh)
  KILN_META_SAME(float_asinh)
  KILN_META_SAME(float_acosh)
  KILN_META_SAME(float_atanh)
  KILN_META_SAME(float_erf)
  KILN_META_SAME(float_floor)
  KILN_META_SAME(float_ceil)
  KILN_META_SAME(float_round)
  KILN_META_SAME(float_trunc)
  static M float_unary(T x, const UnaryFunction&) { return as(x); }
  static M float_binary(T x, T y, const BinaryFunction&) { return broadcast(x, y); }
  static M float_ternary(T x, T y, T z, const TernaryFunction&) { return broadcast(x, y, z); }
  static M float_binary_sum(T x, T, const BinaryFunction&, double) { return of_shape(x, {}); }
  static M float_is_nan(T x) { return as(x, DType::boolean); }
  static M float_is_inf(T x) { return as(x, DType::boolean); }

  KILN_META_REDUCE(float_mean)
  KILN_META_REDUCE(float_sum)
  KILN_META_REDUCE(float_nansum)
  KILN_META_REDUCE(float_logsumexp)
  static M float_var(T x, const Dims& dims, double, bool keepdim) {
    return reduced(x, dims, keepdim);
  }
  static M float_norm(T x, double, const Dims& dims, bool keepdim) {
    return reduced(x, dims, keepdim);
  }
  static std::pair<M, M> float_sort(T x, int, bool) { return {like(x), like(x, DType::i64)}; }
  KILN_META_ALONG(float_logcumsumexp)
  static M float_linear_scan(T a, T, int, bool) { return like(a); }

  static M float_linear(T x, T weight, OptT) {
    return of_shape(x, infer::linear(x->shape(), weight->shape()[0]));
  }
  static M float_linear_activation(T x, T weight, OptT, OptT, Activation) {
    return of_shape(x, infer::linear(x->shape(), weight->shape()[0]));
  }

  KILN_META_SAME(float_relu)
  KILN_META_BINARY(float_relu_backward)
  KILN_META_SAME(float_sigmoid)
  KILN_META_BINARY(float_sigmoid_backward)
  KILN_META_BINARY(float_tanh_backward)
  KILN_META_SAME(float_silu)
  KILN_META_BINARY(float_silu_backward)
  static M float_gelu(T x, bool) { return as(x); }
  static M float_gelu_backward(T g, T x, bool) { return broadcast(g, x); }
  KILN_META_ALONG(float_softmax)
  KILN_META_ALONG(float_log_softmax)
  static M float_softmax_backward(T g, T, int) { return like(g); }
  static M float_log_softmax_backward(T g, T, int) { return like(g); }

  static M float_conv2d(T x, T weight, OptT, const ConvOptions& options) {
    return of_shape(x, infer::conv2d(x->shape(), weight->shape(), options));
  }
  static M float_conv2d_activation(T x, T weight, OptT, OptT, Activation,
                                   const ConvOptions& options) {
    return of_shape(x, infer::conv2d(x->shape(), weight->shape(), options));
  }
  static M float_separable_block(T x, OptT expand, OptT, Activation, T weight, OptT, Activation,
                                 OptT project, OptT, OptT, Activation, const ConvOptions& options) {
    Shape shape = x->shape();
    if (expand != nullptr) shape = infer::conv2d(shape, (*expand)->shape(), ConvOptions{});
    shape = infer::conv2d(shape, weight->shape(), options);
    if (project != nullptr) shape = infer::conv2d(shape, (*project)->shape(), ConvOptions{});
    return of_shape(x, shape);
  }
  static M float_conv2d_input_grad(T, T g, const Shape& x, const ConvOptions&) {
    return of_shape(g, x);
  }
  static M float_conv2d_weight_grad(T, T g, const Shape& weight, const ConvOptions&) {
    return of_shape(g, weight);
  }
  static M float_conv_transpose2d(T x, T, OptT, Activation, const Shape& out, const ConvOptions&) {
    return of_shape(x, out);
  }
  static M float_conv3d(T x, T weight, OptT, const Conv3dOptions& options) {
    return of_shape(x, infer::conv3d(x->shape(), weight->shape(), options));
  }
  static M float_conv3d_input_grad(T, T g, const Shape& x, const Conv3dOptions&) {
    return of_shape(g, x);
  }
  static M float_conv3d_weight_grad(T, T g, const Shape& weight, const Conv3dOptions&) {
    return of_shape(g, weight);
  }
  static std::pair<M, M> float_max_pool2d(T x, const PoolOptions& options) {
    const Shape out = infer::pool2d(x->shape(), options);
    return {of_shape(x, out), of_shape(x, out, DType::i64)};
  }
  static M float_max_pool2d_values(T x, const PoolOptions& options) {
    return of_shape(x, infer::pool2d(x->shape(), options));
  }
  static M float_max_pool2d_backward(T g, T, const Shape& x, const PoolOptions&) {
    return of_shape(g, x);
  }
  static M float_avg_pool2d(T x, const PoolOptions& options) {
    return of_shape(x, infer::pool2d(x->shape(), options));
  }
  static M float_avg_pool2d_backward(T g, const Shape& x, const PoolOptions&) {
    return of_shape(g, x);
  }

  static M float_window_argmax(T x, T, T, const Shape& out, const Shape&) {
    return of_shape(x, {x->shape()[0], x->shape()[1], out.numel()}, DType::i64);
  }
  static M float_grid_sample(T x, T points, const GridOptions&) {
    return of_shape(x, {x->shape()[0], x->shape()[1], points->shape()[1]});
  }
  static M float_grid_sample_input_grad(T g, T, const Shape& x, const GridOptions&) {
    return of_shape(g, x);
  }
  static M float_grid_sample_points_grad(T, T, T points, const GridOptions&) {
    return like(points);
  }
#define KILN_META_IMAGE(kind)                                                          \
  static M kind##_pad(T x, const Shape& before, const Shape& behind, Scalar) {         \
    return of_shape(x, infer::padded(x->shape(), before, behind, 1));                  \
  }                                                                                    \
  static M kind##_pad_edges(T x, const Shape& before, const Shape& behind, EdgeMode) { \
    return of_shape(x, infer::padded(x->shape(), before, behind, 1));                  \
  }
  KILN_META_IMAGE(float)
  KILN_META_IMAGE(int)
  KILN_META_IMAGE(bool)
#undef KILN_META_IMAGE
  static M float_pad_edges_backward(T g, const Shape& before, const Shape& behind, EdgeMode) {
    return of_shape(g, infer::padded(g->shape(), before, behind, -1));
  }
  static M float_resample(T x, const DimMaps& maps) {
    const Shape shape = infer::resampled(x->shape(), maps);
    const Dims order = order_in_memory(x->shape(), x->strides());
    const bool is_composed = size_of(x->dtype()) < 4;
    if (order.rank() == 0 || is_composed) return of_shape(x, shape);
    return window::permute(of_shape(x, permuted(shape, order)), inverse(order));
  }
  static M int_resample(T x, const DimMaps& maps) { return float_resample(x, maps); }

  static std::tuple<M, M, M> float_batch_norm(T x, OptT, OptT, double) {
    const Shape channels = infer::channels(x->shape());
    const DType wide = size_of(x->dtype()) == 2 ? DType::f32 : x->dtype();
    return {like(x), of_shape(x, channels, wide), of_shape(x, channels, wide)};
  }
  static std::tuple<M, M, M> float_batch_norm_backward(T, T x, OptT, T mean, T, double) {
    const Shape channels = infer::channels(x->shape());
    return {like(x), of_shape(mean, channels), of_shape(mean, channels)};
  }
  static M float_batch_norm_inference(T x, T, T, OptT, OptT, double) { return like(x); }
  static std::tuple<M, M, M> float_batch_norm_inference_backward(T g, T x, T mean, T var, OptT,
                                                                 double) {
    return float_batch_norm_backward(g, x, nullptr, mean, var, 0.0);
  }
  static std::tuple<M, M, M> float_group_norm(T x, OptT, OptT, int64_t groups, double) {
    const Shape statistics{x->shape()[0], groups};
    return {like(x), of_shape(x, statistics), of_shape(x, statistics)};
  }
  static std::tuple<M, M, M> float_group_norm_backward(T, T x, OptT, T, T, int64_t, double) {
    const Shape channels = infer::channels(x->shape());
    return {like(x), of_shape(x, channels), of_shape(x, channels)};
  }
  static M float_cdist(T x, T y, double, bool) {
    const int rank = x->shape().rank();
    return of_shape(x, infer::resized(x->shape(), rank - 1, y->shape()[rank - 2]));
  }
  static M float_complex_mul(T x, T y, bool) { return of_shape(x, together(x, y)); }
  static M float_complex_div(T x, T y) { return of_shape(x, together(x, y)); }
  static M float_complex_pow(T x, T y) { return of_shape(x, together(x, y)); }
  static M float_complex_abs(T x) { return of_shape(x, infer::without_parts(x->shape())); }
  static M float_complex_unary(T x, ComplexFunction) { return like(x); }
  static M float_complex_rows(T x) {
    Shape s = infer::without_parts(x->shape());
    s[s.rank() - 2] *= 2;
    s.back() *= 2;
    return of_shape(x, s);
  }
  static M float_fft(T x, int, bool, double) { return like(x); }
  static M float_fft_real(T x, const Dims&, bool, double) {
    return of_shape(x, infer::with_parts(x->shape()));
  }
  static M float_rfft(T x, double, double) {
    const Shape& s = x->shape();
    return of_shape(x, infer::with_parts(infer::resized(s, s.rank() - 1, s.back() / 2 + 1)));
  }
  static M float_irfft(T x, int64_t n, double, double) {
    const Shape s = infer::without_parts(x->shape());
    return of_shape(x, infer::resized(s, s.rank() - 1, n));
  }
  static std::tuple<M, M, M> float_layer_norm(T x, OptT, OptT, int n, double) {
    const Shape kept = infer::without_last(x->shape(), n);
    return {like(x), of_shape(x, kept), of_shape(x, kept)};
  }
  static std::tuple<M, M, M> float_layer_norm_backward(T, T x, OptT, T, T, int n) {
    const Shape weight = infer::last(x->shape(), n);
    return {like(x), of_shape(x, weight), of_shape(x, weight)};
  }
  static std::pair<M, M> float_cross_entropy(T logits, T targets, const CrossEntropyOptions&) {
    return {of_shape(logits, targets->shape()), of_shape(logits, targets->shape())};
  }
  static M float_cross_entropy_backward(T, T logits, T, T, const CrossEntropyOptions&) {
    return like(logits);
  }
  static M float_nll_loss(T x, T classes, OptT, int64_t) { return of_shape(x, classes->shape()); }
  static M float_nll_loss_backward(T g, T classes, OptT, int64_t count, int64_t) {
    return of_shape(g, {classes->shape()[0], count, classes->shape()[1]});
  }
  static M float_ctc_loss(T x, T, T, T, int64_t) { return of_shape(x, {x->shape()[1]}); }
  static M float_ctc_loss_backward(T, T x, T, T, T, int64_t) { return like(x); }
  static M float_rnnt_loss(T x, T, T, T, int64_t, double, bool) {
    return of_shape(x, {x->shape()[0]});
  }
  static M float_rnnt_loss_backward(T, T x, T, T, T, int64_t, double, bool) { return like(x); }
  static std::pair<M, M> float_attention(T q, T, T v, OptT, const AttentionOptions&) {
    Shape out = q->shape();
    out.back() = v->shape().back();
    const Shape rows{out[0], out[1], out[2]};
    return {heads(q, out), of_shape(q, rows, infer::statistics(q->dtype()))};
  }
  static std::tuple<M, M, M> float_attention_backward(T, T q, T k, T v, OptT, T, T,
                                                      const AttentionOptions&) {
    return {heads(q, q->shape()), heads(k, k->shape()), heads(v, v->shape())};
  }
  static std::tuple<M, M, M> float_recurrence(T x, T h, OptT, T, OptT,
                                              const RecurrenceOptions& options) {
    const int64_t rows = options.rows(), size = h->shape()[1];
    const Shape kept = options.saves ? Shape{rows, options.kept(), size} : Shape{0};
    return {of_shape(x, {rows, size}), of_shape(x, {options.states(), h->shape()[0], size}),
            of_shape(x, kept, infer::statistics(x->dtype()))};
  }
  static std::tuple<M, M, M> float_recurrence_backward(OptT, OptT, OptT, T, T, T h, OptT, T,
                                                       const RecurrenceOptions& options) {
    const int64_t size = h->shape()[1];
    const Shape gates{options.rows(), options.gates() * size};
    return {of_shape(h, gates), of_shape(h, gates),
            of_shape(h, {options.states(), h->shape()[0], size})};
  }
  static std::pair<M, M> float_recurrent_cell(T, T h, OptT c, T, T, OptT, OptT,
                                              const RecurrenceOptions&) {
    return {like(h), of_shape(h, c == nullptr ? Shape{0} : h->shape())};
  }
  static M float_dropout(T x, double, RandomStream) { return like(x); }
  static void float_optimizer_step(Mut params, List, Mut state, const OptimizerStep&) {
    written(params);
    written(state);
  }
  static void float_adamw_8bit(T p, T, T codes1, T largest1, T codes2, T largest2,
                               const AdamW8bitStep&) {
    for (const T* x : {&p, &codes1, &largest1, &codes2, &largest2}) written(*x);
  }

  // ----------------------------------------------------------------------------------- integers
  static M int_arange(int64_t, int64_t, int64_t count, DType dtype, Device on) {
    return fresh({count}, dtype, on);
  }
  static M int_into_float(T x, DType dtype) { return as(x, dtype); }
  static M int_clamp(T x, int64_t, int64_t) { return as(x); }
  KILN_META_BINARY(int_bitwise_and)
  KILN_META_BINARY(int_bitwise_or)
  KILN_META_BINARY(int_bitwise_xor)
  KILN_META_SAME(int_bitwise_not)
  static M int_binary(T x, T y, IntFunction) { return broadcast(x, y); }
  static M int_argsort(T x, int, bool) { return like(x, DType::i64); }

  // -------------------------------------------------------------------------------------- bools
  static M bool_empty(const Shape& shape, Device on) { return fresh(shape, DType::boolean, on); }
  static M bool_full(const Shape& shape, bool, Device on) {
    return fresh(shape, DType::boolean, on);
  }
  static M bool_into_float(T x, DType dtype) { return as(x, dtype); }
  static M bool_into_int(T x, DType dtype) { return as(x, dtype); }
  // The size of the result is one of the values.
  static M bool_nonzero(T) { throw_no_values("bool_nonzero"); }
  KILN_META_BINARY(bool_and)
  KILN_META_BINARY(bool_or)
  KILN_META_BINARY(bool_xor)
  KILN_META_SAME(bool_not)
  KILN_META_REDUCE(bool_any)
  KILN_META_REDUCE(bool_all)
  static M bool_count(T x, const Dims& dims, bool keepdim) {
    return of_shape(x, reduced_shape(x->shape(), dims, keepdim), DType::i64);
  }
  static M int_sum(T x, const Dims& dims, bool keepdim) { return bool_count(x, dims, keepdim); }

  // ---------------------------------------------------------------------------------- quantized
  static MetaQuantizedHandle q_from_parts(T values, T scales, const QuantScheme& scheme,
                                          const Shape& shape) {
    return make_handle<MetaQuantized>(values.get(), scales.get(), scheme, shape);
  }
  static M q_values(Q x) { return x->values(); }
  static M q_scales(Q x) { return x->scales(); }
  static QuantScheme q_scheme(Q x) { return x->scheme(); }
  static MetaQuantizedHandle q_reshape(Q x, const Shape& shape) {
    return make_handle<MetaQuantized>(reshaped(x->values(), shape), x->scales(), x->scheme(),
                                      shape);
  }
  static MetaQuantizedHandle float_quantize(T x, const QuantScheme& scheme) {
    const QuantLayout layout(x->shape(), scheme);
    return make_handle<MetaQuantized>(of_shape(x, layout.values_shape, layout.values_dtype),
                                      of_shape(x, layout.scales_shape, layout.scales_dtype), scheme,
                                      x->shape());
  }
  static M q_dequantize(Q x, DType dtype) { return of_shape(x->values(), x->shape(), dtype); }
  static M float_linear_quantized(T x, Q weight, OptT) {
    return of_shape(x, infer::linear(x->shape(), weight->shape()[0]));
  }
  static M q_matmul(Q a, Q b, bool transposed, DType dtype) {
    return of_shape(a->values(), {a->shape()[0], b->shape()[transposed ? 0 : 1]}, dtype);
  }

#undef KILN_META_SAME
#undef KILN_META_BINARY
#undef KILN_META_COMPARE
#undef KILN_META_COMPARE_SCALAR
#undef KILN_META_SCALAR
#undef KILN_META_REDUCE
#undef KILN_META_ALONG
};

// The rows of ops.def that have no rule here, or one with other parameters: on "meta" they are
// composed from other rows.
std::vector<const char*> rows_without_rule();

}  // namespace meta

struct Meta : meta::Rows<BackendDefaults<Meta>>, MetaTypes {
  using Device = kiln::Device;

  static std::string name(Device) { return "meta"; }
  static void seed(Device, uint64_t) {}
  static void sync(Device) {}

  static const Shape& shape(const MetaHandle& x) { return x->shape(); }
  static DType dtype(const MetaHandle& x) { return x->dtype(); }
  static Device device(const MetaHandle& x) { return x->device(); }
  static const Shape& shape(const MetaQuantizedHandle& x) { return x->shape(); }
  static DType dtype(const MetaQuantizedHandle& x) { return x->dtype(); }
  static Device device(const MetaQuantizedHandle& x) { return x->device(); }
  static uint32_t version(const MetaHandle& x) { return x->storage()->version(); }
  static MetaHandle own_version(const MetaHandle& x) {
    return make_handle<MetaTensor>(x->shape(), x->dtype(), x->device(), x->strides(), x->offset(),
                                   MetaStorage::alias(x->storage()));
  }
  static bool owns_memory(const MetaHandle& x) {
    return x.unique() && x->storage().unique() && x->is_contiguous();
  }

  static Layout layout(const MetaHandle& x);
  static MetaHandle as_strided(const MetaHandle& x, const Shape& shape, const Strides& strides,
                               int64_t offset) {
    return meta::view(x, shape, strides, offset);
  }
  static MetaHandle reinterpret(const MetaHandle& x, DType dtype, const Shape& shape,
                                const Strides& strides, int64_t offset) {
    return make_handle<MetaTensor>(shape, dtype, x->device(), strides, offset, x->storage());
  }
};

}  // namespace kiln
