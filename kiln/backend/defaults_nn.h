// Default ops of networks: linear, activations, softmax, normalization, cross-entropy, dropout.
#pragma once

#include <cmath>
#include <numbers>
#include <tuple>

#include "kiln/backend/activated.h"
#include "kiln/backend/composed_attention.h"
#include "kiln/backend/composed_ctc.h"
#include "kiln/backend/composed_recurrence.h"
#include "kiln/backend/composed_rnnt.h"
#include "kiln/backend/defaults_support.h"

namespace kiln::defaults {

template <class Bk>
struct NnDefaults {
  template <class X = Bk>
  static FloatOf<X> float_linear(const FloatOf<X>& x, const FloatOf<X>& weight,
                                 const FloatOf<X>* bias) {
    const Shape& shape = X::shape(x);
    const int64_t in = X::shape(weight)[1];
    const int64_t out_features = X::shape(weight)[0];
    int64_t rows = 1;
    for (int i = 0; i + 1 < shape.rank(); ++i) rows *= shape[i];
    Shape out_shape = shape;
    out_shape.back() = out_features;
    FloatOf<X> out =
        X::float_matmul(X::float_reshape(x, Shape{rows, in}), X::float_permute(weight, Dims{1, 0}));
    if (bias != nullptr) out = X::float_add(std::move(out), *bias);
    return X::float_reshape(std::move(out), out_shape);
  }

  template <class X = Bk>
  static FloatOf<X> float_linear_activation(const FloatOf<X>& x, const FloatOf<X>& weight,
                                            const FloatOf<X>* bias, const FloatOf<X>* residual,
                                            Activation activation) {
    FloatOf<X> out = activated<X>(X::float_linear(x, weight, bias), activation);
    return residual == nullptr ? out : X::float_add(std::move(out), *residual);
  }

  template <class X = Bk>
  static FloatOf<X> float_linear_quantized(const FloatOf<X>& x,
                                           const typename X::QuantizedTensorPrimitive& weight,
                                           const FloatOf<X>* bias) {
    const DType dtype = X::dtype(x);
    if (X::q_scheme(weight).activations == QuantActivations::floating) {
      return X::float_linear(x, X::q_dequantize(weight, dtype), bias);
    }
    const Shape shape = X::shape(x);
    int64_t rows = 1;
    for (int i = 0; i + 1 < shape.rank(); ++i) rows *= shape[i];
    const auto quantized = X::float_quantize(X::float_reshape(x, Shape{rows, shape.back()}),
                                             QuantScheme{.level = QuantLevel::channel});
    FloatOf<X> out = X::q_matmul(quantized, weight, true, dtype);
    if (bias != nullptr) out = X::float_add(std::move(out), *bias);
    Shape out_shape = shape;
    out_shape.back() = X::shape(weight)[0];
    return X::float_reshape(std::move(out), out_shape);
  }

  template <class X = Bk>
  static FloatOf<X> q_matmul(const typename X::QuantizedTensorPrimitive& a,
                             const typename X::QuantizedTensorPrimitive& b, bool transposed,
                             DType dtype) {
    // 16-bit floats would round the values before they are multiplied.
    const DType wide = dtype == DType::f64 ? dtype : DType::f32;
    const FloatOf<X> right = X::q_dequantize(b, wide);
    FloatOf<X> out = X::float_matmul(X::q_dequantize(a, wide),
                                     transposed ? X::float_permute(right, Dims{1, 0}) : right);
    return dtype == wide ? out : X::float_cast(std::move(out), dtype);
  }

  // ---- Activations
  template <class X = Bk>
  static FloatOf<X> float_relu(const FloatOf<X>& x) {
    return X::float_mask_fill(x, X::float_lower_scalar(x, 0.0), 0.0);
  }
  template <class X = Bk>
  static FloatOf<X> float_relu_backward(const FloatOf<X>& g, const FloatOf<X>& y) {
    return X::float_mask_fill(g, X::float_lower_equal_scalar(y, 0.0), 0.0);
  }

  // With e = exp(-|x|), which cannot overflow: 1 / (1 + e) for x >= 0, e / (1 + e) below.
  template <class X = Bk>
  static FloatOf<X> float_sigmoid(const FloatOf<X>& x) {
    const FloatOf<X> wide = widen<X>(x);
    const FloatOf<X> e = X::float_exp(X::float_neg(X::float_abs(wide)));
    const FloatOf<X> scale = X::float_recip(X::float_add_scalar(e, 1.0));
    return narrow<X>(
        X::float_mask_where(scale, X::float_lower_scalar(wide, 0.0), X::float_mul(e, scale)),
        X::dtype(x));
  }
  // g y (1 - y)
  template <class X = Bk>
  static FloatOf<X> float_sigmoid_backward(const FloatOf<X>& g, const FloatOf<X>& y) {
    const FloatOf<X> wide = widen<X>(y);
    FloatOf<X> slope = X::float_mul(X::float_rsub_scalar(wide, 1.0), wide);
    return narrow<X>(X::float_mul(widen<X>(g), std::move(slope)), X::dtype(g));
  }
  // g (1 - y^2), factored so that it does not cancel near |y| = 1.
  template <class X = Bk>
  static FloatOf<X> float_tanh_backward(const FloatOf<X>& g, const FloatOf<X>& y) {
    const FloatOf<X> wide = widen<X>(y);
    FloatOf<X> slope =
        X::float_mul(X::float_rsub_scalar(wide, 1.0), X::float_add_scalar(wide, 1.0));
    return narrow<X>(X::float_mul(widen<X>(g), std::move(slope)), X::dtype(g));
  }

  template <class X = Bk>
  static FloatOf<X> float_silu(const FloatOf<X>& x) {
    const FloatOf<X> wide = widen<X>(x);
    return narrow<X>(X::float_mul(wide, X::float_sigmoid(wide)), X::dtype(x));
  }
  // With s = sigmoid(x): g s (1 + x (1 - s)).
  template <class X = Bk>
  static FloatOf<X> float_silu_backward(const FloatOf<X>& g, const FloatOf<X>& x) {
    const FloatOf<X> wide = widen<X>(x);
    const FloatOf<X> s = X::float_sigmoid(wide);
    FloatOf<X> slope = X::float_add_scalar(X::float_mul(wide, X::float_rsub_scalar(s, 1.0)), 1.0);
    return narrow<X>(X::float_mul(widen<X>(g), X::float_mul(s, std::move(slope))), X::dtype(g));
  }

  // x/2 (1 + erf(x / sqrt 2)), or with tanh(k (x + 0.044715 x^3)) for the erf, k = sqrt(2 / pi).
  template <class X = Bk>
  static FloatOf<X> float_gelu(const FloatOf<X>& x, bool approximate) {
    const FloatOf<X> wide = widen<X>(x);
    FloatOf<X> inner = approximate ? X::float_tanh(gelu_argument<X>(wide))
                                   : X::float_erf(X::float_mul_scalar(wide, kInvSqrt2));
    FloatOf<X> half = X::float_mul_scalar(wide, 0.5);
    return narrow<X>(X::float_mul(std::move(half), X::float_add_scalar(std::move(inner), 1.0)),
                     X::dtype(x));
  }
  template <class X = Bk>
  static FloatOf<X> float_gelu_backward(const FloatOf<X>& g, const FloatOf<X>& x,
                                        bool approximate) {
    const FloatOf<X> wide = widen<X>(x);
    FloatOf<X> slope = approximate ? gelu_tanh_slope<X>(wide) : gelu_erf_slope<X>(wide);
    return narrow<X>(X::float_mul(widen<X>(g), std::move(slope)), X::dtype(g));
  }

  // ---- Softmax
  template <class X = Bk>
  static FloatOf<X> float_softmax(const FloatOf<X>& x, int dim) {
    if (X::shape(x).numel() == 0) return X::float_empty(X::shape(x), X::dtype(x), X::device(x));
    const FloatOf<X> wide = widen<X>(x);
    const FloatOf<X> e = X::float_exp(X::float_sub(wide, X::float_amax(wide, Dims{dim}, true)));
    return narrow<X>(X::float_div(e, X::float_sum(e, Dims{dim}, true)), X::dtype(x));
  }
  // y (g - sum(g y))
  template <class X = Bk>
  static FloatOf<X> float_softmax_backward(const FloatOf<X>& g, const FloatOf<X>& y, int dim) {
    const FloatOf<X> wide_y = widen<X>(y);
    const FloatOf<X> wide_g = widen<X>(g);
    FloatOf<X> sum = X::float_sum(X::float_mul(wide_g, wide_y), Dims{dim}, true);
    return narrow<X>(X::float_mul(wide_y, X::float_sub(wide_g, std::move(sum))), X::dtype(g));
  }
  template <class X = Bk>
  static FloatOf<X> float_log_softmax(const FloatOf<X>& x, int dim) {
    if (X::shape(x).numel() == 0) return X::float_empty(X::shape(x), X::dtype(x), X::device(x));
    const FloatOf<X> wide = widen<X>(x);
    const FloatOf<X> shifted = X::float_sub(wide, X::float_amax(wide, Dims{dim}, true));
    FloatOf<X> sum = X::float_sum(X::float_exp(shifted), Dims{dim}, true);
    return narrow<X>(X::float_sub(shifted, X::float_log(std::move(sum))), X::dtype(x));
  }
  // g - exp(y) sum(g)
  template <class X = Bk>
  static FloatOf<X> float_log_softmax_backward(const FloatOf<X>& g, const FloatOf<X>& y, int dim) {
    const FloatOf<X> wide = widen<X>(g);
    FloatOf<X> share = X::float_mul(X::float_exp(widen<X>(y)), X::float_sum(wide, Dims{dim}, true));
    return narrow<X>(X::float_sub(wide, std::move(share)), X::dtype(g));
  }

  // ---- Cross-entropy

  // With s the smoothing: (1 - s) (lse - x[t]) + s / C sum_c (lse - x_c).
  template <class X = Bk>
  static std::pair<FloatOf<X>, FloatOf<X>> float_cross_entropy(const FloatOf<X>& logits,
                                                               const IntOf<X>& targets,
                                                               const CrossEntropyOptions& options) {
    const Shape& shape = X::shape(logits);
    const DType dtype = X::dtype(logits);
    const double s = options.label_smoothing;
    const FloatOf<X> wide = widen<X>(logits);
    const FloatOf<X> lse = X::float_logsumexp(wide, Dims{1}, false);
    const BoolOf<X> ignored = X::int_equal_scalar(targets, options.ignore_index);
    const IntOf<X> index =
        X::int_reshape(X::int_mask_fill(targets, ignored, 0), Shape{shape[0], 1});
    FloatOf<X> loss =
        X::float_sub(lse, X::float_reshape(X::float_gather(wide, 1, index), Shape{shape[0]}));
    if (s > 0.0) {
      // The mean of the differences, not the difference of the means: one logit of -inf makes it
      // inf, not NaN.
      FloatOf<X> smooth = X::float_mean(
          X::float_sub(X::float_reshape(lse, Shape{shape[0], 1}), wide), Dims{1}, false);
      loss = X::float_add(X::float_mul_scalar(std::move(loss), 1.0 - s),
                          X::float_mul_scalar(std::move(smooth), s));
    }
    return {narrow<X>(X::float_mask_fill(std::move(loss), ignored, 0.0), dtype),
            narrow<X>(lse, dtype)};
  }

  // g (softmax(x) - (1 - s) onehot(t) - s / C), and 0 for rows that are ignored.
  template <class X = Bk>
  static FloatOf<X> float_cross_entropy_backward(const FloatOf<X>& g, const FloatOf<X>& logits,
                                                 const IntOf<X>& targets, const FloatOf<X>& lse,
                                                 const CrossEntropyOptions& options) {
    const Shape& shape = X::shape(logits);
    const Shape column = {shape[0], 1};
    const double s = options.label_smoothing;
    const BoolOf<X> ignored = X::int_equal_scalar(targets, options.ignore_index);
    const IntOf<X> index = X::int_reshape(X::int_mask_fill(targets, ignored, 0), column);
    const FloatOf<X> weight = X::float_reshape(widen<X>(g), column);
    FloatOf<X> p =
        X::float_exp(X::float_sub(widen<X>(logits), X::float_reshape(widen<X>(lse), column)));
    if (s > 0.0) p = X::float_add_scalar(std::move(p), -s / static_cast<double>(shape[1]));
    FloatOf<X> out = X::float_scatter_add(X::float_mul(std::move(p), weight), 1, index,
                                          X::float_mul_scalar(weight, s - 1.0));
    return narrow<X>(X::float_mask_fill(std::move(out), X::bool_reshape(ignored, column), 0.0),
                     X::dtype(logits));
  }

  // What x [N, C, P] and a weight [C] have for classes [N, P]: -w[class] x[n, class, p].
  template <class X = Bk>
  static FloatOf<X> float_nll_loss(const FloatOf<X>& x, const IntOf<X>& classes,
                                   const FloatOf<X>* weight, int64_t ignored) {
    const Shape places = X::shape(classes);
    const BoolOf<X> none = X::int_equal_scalar(classes, ignored);
    const IntOf<X> safe = X::int_mask_fill(classes, none, 0);
    const IntOf<X> index = X::int_reshape(safe, Shape{places[0], 1, places[1]});
    FloatOf<X> loss = X::float_neg(X::float_reshape(X::float_gather(x, 1, index), places));
    if (weight != nullptr) {
      const IntOf<X> flat = X::int_reshape(safe, Shape{places.numel()});
      loss = X::float_mul(std::move(loss),
                          X::float_reshape(X::float_index_select(*weight, 0, flat), places));
    }
    return X::float_mask_fill(std::move(loss), none, 0.0);
  }

  template <class X = Bk>
  static FloatOf<X> float_nll_loss_backward(const FloatOf<X>& g, const IntOf<X>& classes,
                                            const FloatOf<X>* weight, int64_t count,
                                            int64_t ignored) {
    const Shape places = X::shape(classes);
    const Shape one = {places[0], 1, places[1]};
    const BoolOf<X> none = X::int_equal_scalar(classes, ignored);
    const IntOf<X> safe = X::int_mask_fill(classes, none, 0);
    FloatOf<X> each = X::float_neg(X::float_mask_fill(g, none, 0.0));
    if (weight != nullptr) {
      const IntOf<X> flat = X::int_reshape(safe, Shape{places.numel()});
      each = X::float_mul(std::move(each),
                          X::float_reshape(X::float_index_select(*weight, 0, flat), places));
    }
    const FloatOf<X> zeros =
        X::float_full(Shape{places[0], count, places[1]}, 0.0, X::dtype(g), X::device(g));
    return X::float_scatter_add(zeros, 1, X::int_reshape(safe, one),
                                X::float_reshape(std::move(each), one));
  }

  // ---- Connectionist temporal classification
  template <class X = Bk>
  static FloatOf<X> float_ctc_loss(const FloatOf<X>& x, const IntOf<X>& targets,
                                   const IntOf<X>& ends, const IntOf<X>& sizes, int64_t blank) {
    return ComposedCtc<X>::loss(x, targets, ends, sizes, blank);
  }
  template <class X = Bk>
  static FloatOf<X> float_ctc_loss_backward(const FloatOf<X>& g, const FloatOf<X>& x,
                                            const IntOf<X>& targets, const IntOf<X>& ends,
                                            const IntOf<X>& sizes, int64_t blank) {
    return ComposedCtc<X>::gradient(g, x, targets, ends, sizes, blank);
  }

  // ---- RNN transducer
  template <class X = Bk>
  static FloatOf<X> float_rnnt_loss(const FloatOf<X>& x, const IntOf<X>& targets,
                                    const IntOf<X>& ends, const IntOf<X>& sizes, int64_t blank,
                                    double /*clamp*/, bool softmax) {
    return ComposedRnnt<X>::loss(x, targets, ends, sizes, blank, softmax);
  }
  template <class X = Bk>
  static FloatOf<X> float_rnnt_loss_backward(const FloatOf<X>& g, const FloatOf<X>& x,
                                             const IntOf<X>& targets, const IntOf<X>& ends,
                                             const IntOf<X>& sizes, int64_t blank, double clamp,
                                             bool softmax) {
    return ComposedRnnt<X>::gradient(g, x, targets, ends, sizes, blank, clamp, softmax);
  }

  // ---- Attention
  template <class X = Bk>
  static std::pair<FloatOf<X>, FloatOf<X>> float_attention(const FloatOf<X>& q, const FloatOf<X>& k,
                                                           const FloatOf<X>& v,
                                                           const FloatOf<X>* mask,
                                                           const AttentionOptions& options) {
    return ComposedAttention<X>::forward(q, k, v, mask, options);
  }
  template <class X = Bk>
  static std::tuple<FloatOf<X>, FloatOf<X>, FloatOf<X>> float_attention_backward(
      const FloatOf<X>& g, const FloatOf<X>& q, const FloatOf<X>& k, const FloatOf<X>& v,
      const FloatOf<X>* mask, const FloatOf<X>&, const FloatOf<X>&,
      const AttentionOptions& options) {
    return ComposedAttention<X>::backward(g, q, k, v, mask, options);
  }

  template <class X = Bk>
  static std::tuple<FloatOf<X>, FloatOf<X>, FloatOf<X>> float_recurrence(
      const FloatOf<X>& x, const FloatOf<X>& h, const FloatOf<X>* c, const FloatOf<X>& w,
      const FloatOf<X>* b, const RecurrenceOptions& options) {
    return ComposedRecurrence<X>::forward(x, h, c, w, b, options);
  }
  template <class X = Bk>
  static std::tuple<FloatOf<X>, FloatOf<X>, FloatOf<X>> float_recurrence_backward(
      const FloatOf<X>* g_out, const FloatOf<X>* g_last, const FloatOf<X>* g_kept,
      const FloatOf<X>& out, const FloatOf<X>& kept, const FloatOf<X>& h, const FloatOf<X>* c,
      const FloatOf<X>& w, const RecurrenceOptions& options) {
    return ComposedRecurrence<X>::backward(g_out, g_last, g_kept, out, kept, h, c, w, options);
  }

  template <class X = Bk>
  static std::pair<FloatOf<X>, FloatOf<X>> float_recurrent_cell(
      const FloatOf<X>& x, const FloatOf<X>& h, const FloatOf<X>* c, const FloatOf<X>& w_ih,
      const FloatOf<X>& w_hh, const FloatOf<X>* b_ih, const FloatOf<X>* b_hh,
      const RecurrenceOptions& options) {
    return ComposedRecurrence<X>::cell(x, h, c, w_ih, w_hh, b_ih, b_hh, options);
  }

  template <class X = Bk>
  static FloatOf<X> float_dropout(const FloatOf<X>& x, double p, RandomStream stream) {
    const FloatOf<X> draws =
        X::float_random(X::shape(x), Distribution::uniform(), stream, DType::f32, X::device(x));
    // Draws are multiples of 2^-24. Rounded up to one, p is exact in f32 and keeps the same
    // elements.
    const double threshold = std::ceil(p * 0x1p24) * 0x1p-24;
    FloatOf<X> kept = X::float_mul_scalar(widen<X>(x), 1.0 / (1.0 - p));
    return narrow<X>(
        X::float_mask_fill(std::move(kept), X::float_lower_scalar(draws, threshold), 0.0),
        X::dtype(x));
  }

 private:
  static constexpr double kInvSqrt2 = 1.0 / std::numbers::sqrt2;
  static constexpr double kGeluScale = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;
  static constexpr double kGeluCube = 0.044715;

  // k (x + c x^3), as k x (1 + c x^2).
  template <class X>
  static FloatOf<X> gelu_argument(const FloatOf<X>& x) {
    FloatOf<X> factor =
        X::float_add_scalar(X::float_mul_scalar(X::float_square(x), kGeluCube), 1.0);
    return X::float_mul(X::float_mul_scalar(x, kGeluScale), std::move(factor));
  }

  // Phi(x) + x phi(x), the normal distribution's integral and density.
  template <class X>
  static FloatOf<X> gelu_erf_slope(const FloatOf<X>& x) {
    FloatOf<X> integral = X::float_mul_scalar(
        X::float_add_scalar(X::float_erf(X::float_mul_scalar(x, kInvSqrt2)), 1.0), 0.5);
    FloatOf<X> density =
        X::float_mul_scalar(X::float_exp(X::float_mul_scalar(X::float_square(x), -0.5)),
                            0.5 * std::numbers::inv_sqrtpi * std::numbers::sqrt2);
    return X::float_add(std::move(integral), X::float_mul(std::move(density), x));
  }

  // With t = tanh(u), u = k (x + c x^3): (1 + t) / 2 + x/2 (1 - t^2) k (1 + 3 c x^2).
  template <class X>
  static FloatOf<X> gelu_tanh_slope(const FloatOf<X>& x) {
    const FloatOf<X> t = X::float_tanh(gelu_argument<X>(x));
    FloatOf<X> du = X::float_mul_scalar(
        X::float_add_scalar(X::float_mul_scalar(X::float_square(x), 3.0 * kGeluCube), 1.0),
        kGeluScale);
    FloatOf<X> dt = X::float_mul(X::float_rsub_scalar(X::float_square(t), 1.0), std::move(du));
    FloatOf<X> sum = X::float_add(X::float_add_scalar(t, 1.0), X::float_mul(std::move(dt), x));
    return X::float_mul_scalar(std::move(sum), 0.5);
  }
};

// Every dim but the second, in which the channels lie.
inline Dims all_but_channels(int rank) {
  Dims dims;
  for (int i = 0; i < rank; ++i) {
    if (i != 1) dims.push_back(i);
  }
  return dims;
}

// The last n of `rank` dims.
inline Dims last_dims(int rank, int n) {
  Dims dims;
  for (int i = rank - n; i < rank; ++i) dims.push_back(i);
  return dims;
}

// [N, groups, elements of a group]
inline Shape group_rows(const Shape& shape, int64_t groups) {
  int64_t elements = shape[1] / groups;
  for (int i = 2; i < shape.rank(); ++i) elements *= shape[i];
  return {shape[0], groups, elements};
}

// [1, C, 1, ..]
inline Shape channel_shape(const Shape& shape) {
  Shape out = Shape::filled(shape.rank(), 1);
  out[1] = shape[1];
  return out;
}

// Batch and layer normalization. With x' = (x - mean) / std, both gradients of x are
//   1 / std (h - mean(h) - x' mean(h x')),  h = g weight,
// where the means run over what was normalized together.
template <class Bk>
struct NormDefaults {
  template <class X = Bk>
  static std::tuple<FloatOf<X>, FloatOf<X>, FloatOf<X>> float_batch_norm(const FloatOf<X>& x,
                                                                         const FloatOf<X>* weight,
                                                                         const FloatOf<X>* bias,
                                                                         double eps) {
    const Shape& shape = X::shape(x);
    const DType dtype = X::dtype(x);
    const Dims dims = all_but_channels(shape.rank());
    const FloatOf<X> wide = widen<X>(x);
    const FloatOf<X> mean = X::float_mean(wide, dims, false);
    const FloatOf<X> var = X::float_var(wide, dims, 0.0, false);
    const FloatOf<X> out = normalize_channels<X>(wide, mean, var, weight, bias, eps);
    return {narrow<X>(out, dtype), mean, var};
  }

  template <class X = Bk>
  static std::tuple<FloatOf<X>, FloatOf<X>, FloatOf<X>> float_batch_norm_backward(
      const FloatOf<X>& g, const FloatOf<X>& x, const FloatOf<X>* weight, const FloatOf<X>& mean,
      const FloatOf<X>& var, double eps) {
    const Shape& shape = X::shape(x);
    const DType dtype = X::dtype(x);
    const Shape channels = channel_shape(shape);
    const Dims dims = all_but_channels(shape.rank());
    const auto count = static_cast<double>(reduced_count(shape, dims));
    const FloatOf<X> wide_g = widen<X>(g);
    const FloatOf<X> rstd =
        X::float_reshape(X::float_rsqrt(X::float_add_scalar(widen<X>(var), eps)), channels);
    const FloatOf<X> normalized =
        X::float_mul(X::float_sub(widen<X>(x), X::float_reshape(widen<X>(mean), channels)), rstd);
    const FloatOf<X> bias_grad = X::float_sum(wide_g, dims, true);
    const FloatOf<X> weight_grad = X::float_sum(X::float_mul(wide_g, normalized), dims, true);
    // weight is constant over the dims of the means: it moves to the front, with 1 / std.
    const FloatOf<X> scale =
        weight == nullptr ? rstd
                          : X::float_mul(rstd, X::float_reshape(widen<X>(*weight), channels));
    FloatOf<X> centered = X::float_sub(wide_g, X::float_div_scalar(bias_grad, count));
    FloatOf<X> along = X::float_mul(normalized, X::float_div_scalar(weight_grad, count));
    FloatOf<X> x_grad = X::float_mul(X::float_sub(std::move(centered), std::move(along)), scale);
    return {narrow<X>(std::move(x_grad), dtype),
            narrow<X>(X::float_reshape(weight_grad, Shape{shape[1]}), X::dtype(mean)),
            narrow<X>(X::float_reshape(bias_grad, Shape{shape[1]}), X::dtype(mean))};
  }

  template <class X = Bk>
  static FloatOf<X> float_batch_norm_inference(const FloatOf<X>& x, const FloatOf<X>& mean,
                                               const FloatOf<X>& var, const FloatOf<X>* weight,
                                               const FloatOf<X>* bias, double eps) {
    return narrow<X>(
        normalize_channels<X>(widen<X>(x), widen<X>(mean), widen<X>(var), weight, bias, eps),
        X::dtype(x));
  }

  template <class X = Bk>
  static std::tuple<FloatOf<X>, FloatOf<X>, FloatOf<X>> float_batch_norm_inference_backward(
      const FloatOf<X>& g, const FloatOf<X>& x, const FloatOf<X>& mean, const FloatOf<X>& var,
      const FloatOf<X>* weight, double eps) {
    const Shape& shape = X::shape(x);
    const DType dtype = X::dtype(x);
    const Shape channels = channel_shape(shape);
    const Dims dims = all_but_channels(shape.rank());
    const FloatOf<X> wide_g = widen<X>(g);
    const FloatOf<X> rstd =
        X::float_reshape(X::float_rsqrt(X::float_add_scalar(widen<X>(var), eps)), channels);
    const FloatOf<X> unit =
        X::float_mul(X::float_sub(widen<X>(x), X::float_reshape(widen<X>(mean), channels)), rstd);
    const FloatOf<X> scale =
        weight == nullptr ? rstd
                          : X::float_mul(rstd, X::float_reshape(widen<X>(*weight), channels));
    return {narrow<X>(X::float_mul(wide_g, scale), dtype),
            narrow<X>(X::float_sum(X::float_mul(wide_g, unit), dims, false), X::dtype(mean)),
            narrow<X>(X::float_sum(wide_g, dims, false), X::dtype(mean))};
  }

  template <class X = Bk>
  static std::tuple<FloatOf<X>, FloatOf<X>, FloatOf<X>> float_group_norm(const FloatOf<X>& x,
                                                                         const FloatOf<X>* weight,
                                                                         const FloatOf<X>* bias,
                                                                         int64_t groups,
                                                                         double eps) {
    const Shape shape = X::shape(x);
    const DType dtype = X::dtype(x);
    const Shape channels = channel_shape(shape);
    const FloatOf<X> rows = X::float_reshape(widen<X>(x), group_rows(shape, groups));
    const FloatOf<X> mean = X::float_mean(rows, Dims{2}, true);
    const FloatOf<X> rstd =
        X::float_rsqrt(X::float_add_scalar(X::float_var(rows, Dims{2}, 0.0, true), eps));
    FloatOf<X> out = X::float_reshape(X::float_mul(X::float_sub(rows, mean), rstd), shape);
    if (weight != nullptr) {
      out = X::float_mul(std::move(out), X::float_reshape(widen<X>(*weight), channels));
    }
    if (bias != nullptr) {
      out = X::float_add(std::move(out), X::float_reshape(widen<X>(*bias), channels));
    }
    const Shape kept{shape[0], groups};
    return {narrow<X>(std::move(out), dtype), narrow<X>(X::float_reshape(mean, kept), dtype),
            narrow<X>(X::float_reshape(rstd, kept), dtype)};
  }

  template <class X = Bk>
  static std::tuple<FloatOf<X>, FloatOf<X>, FloatOf<X>> float_group_norm_backward(
      const FloatOf<X>& g, const FloatOf<X>& x, const FloatOf<X>* weight, const FloatOf<X>& mean,
      const FloatOf<X>& rstd, int64_t groups, double) {
    const Shape shape = X::shape(x);
    const DType dtype = X::dtype(x);
    const Shape rows = group_rows(shape, groups);
    const Shape kept{shape[0], groups, 1};
    const Dims dims = all_but_channels(shape.rank());
    const FloatOf<X> wide_g = widen<X>(g);
    const FloatOf<X> scale = X::float_reshape(widen<X>(rstd), kept);
    const FloatOf<X> unit = X::float_mul(
        X::float_sub(X::float_reshape(widen<X>(x), rows), X::float_reshape(widen<X>(mean), kept)),
        scale);
    const FloatOf<X> h = X::float_reshape(
        weight == nullptr
            ? wide_g
            : X::float_mul(wide_g, X::float_reshape(widen<X>(*weight), channel_shape(shape))),
        rows);
    FloatOf<X> centered = X::float_sub(h, X::float_mean(h, Dims{2}, true));
    FloatOf<X> along = X::float_mul(unit, X::float_mean(X::float_mul(h, unit), Dims{2}, true));
    FloatOf<X> x_grad = X::float_mul(X::float_sub(std::move(centered), std::move(along)), scale);
    const FloatOf<X> by_unit = X::float_mul(wide_g, X::float_reshape(unit, shape));
    return {narrow<X>(X::float_reshape(std::move(x_grad), shape), dtype),
            narrow<X>(X::float_sum(by_unit, dims, false), dtype),
            narrow<X>(X::float_sum(wide_g, dims, false), dtype)};
  }

  template <class X = Bk>
  static std::tuple<FloatOf<X>, FloatOf<X>, FloatOf<X>> float_layer_norm(const FloatOf<X>& x,
                                                                         const FloatOf<X>* weight,
                                                                         const FloatOf<X>* bias,
                                                                         int n, double eps) {
    const DType dtype = X::dtype(x);
    const Dims dims = last_dims(X::shape(x).rank(), n);
    const FloatOf<X> wide = widen<X>(x);
    const FloatOf<X> mean = X::float_mean(wide, dims, true);
    const FloatOf<X> rstd =
        X::float_rsqrt(X::float_add_scalar(X::float_var(wide, dims, 0.0, true), eps));
    FloatOf<X> out = X::float_mul(X::float_sub(wide, mean), rstd);
    if (weight != nullptr) out = X::float_mul(std::move(out), widen<X>(*weight));
    if (bias != nullptr) out = X::float_add(std::move(out), widen<X>(*bias));
    return {narrow<X>(std::move(out), dtype), narrow<X>(mean, dtype), narrow<X>(rstd, dtype)};
  }

  template <class X = Bk>
  static std::tuple<FloatOf<X>, FloatOf<X>, FloatOf<X>> float_layer_norm_backward(
      const FloatOf<X>& g, const FloatOf<X>& x, const FloatOf<X>* weight, const FloatOf<X>& mean,
      const FloatOf<X>& rstd, int n) {
    const Shape& shape = X::shape(x);
    const DType dtype = X::dtype(x);
    const Dims dims = last_dims(shape.rank(), n);
    const Dims lead = all_dims(shape.rank() - n);
    const FloatOf<X> wide_g = widen<X>(g);
    const FloatOf<X> wide_rstd = widen<X>(rstd);
    const FloatOf<X> normalized =
        X::float_mul(X::float_sub(widen<X>(x), widen<X>(mean)), wide_rstd);
    const FloatOf<X> h = weight == nullptr ? wide_g : X::float_mul(wide_g, widen<X>(*weight));
    FloatOf<X> centered = X::float_sub(h, X::float_mean(h, dims, true));
    FloatOf<X> along =
        X::float_mul(normalized, X::float_mean(X::float_mul(h, normalized), dims, true));
    FloatOf<X> x_grad =
        X::float_mul(X::float_sub(std::move(centered), std::move(along)), wide_rstd);
    return {narrow<X>(std::move(x_grad), dtype),
            narrow<X>(X::float_sum(X::float_mul(wide_g, normalized), lead, false), dtype),
            narrow<X>(X::float_sum(wide_g, lead, false), dtype)};
  }

 private:
  template <class X>
  static FloatOf<X> normalize_channels(const FloatOf<X>& x, const FloatOf<X>& mean,
                                       const FloatOf<X>& var, const FloatOf<X>* weight,
                                       const FloatOf<X>* bias, double eps) {
    const Shape channels = channel_shape(X::shape(x));
    FloatOf<X> scale = X::float_rsqrt(X::float_add_scalar(var, eps));
    if (weight != nullptr) scale = X::float_mul(std::move(scale), widen<X>(*weight));
    FloatOf<X> out = X::float_mul(X::float_sub(x, X::float_reshape(mean, channels)),
                                  X::float_reshape(std::move(scale), channels));
    if (bias == nullptr) return out;
    return X::float_add(std::move(out), X::float_reshape(widen<X>(*bias), channels));
  }
};

}  // namespace kiln::defaults
