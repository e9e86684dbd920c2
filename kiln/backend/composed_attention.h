// Attention composed from other ops, with the whole matrix of scores. It serves two: backends
// without an attention of their own, and gradients of gradients, where Autodiff differentiates
// these very ops.
#pragma once

#include <limits>
#include <tuple>
#include <utility>

#include "kiln/backend/defaults_support.h"

namespace kiln::defaults {

template <class X>
class ComposedAttention {
 public:
  using T = FloatOf<X>;

  // As float_attention and float_attention_backward in ops.def.
  static std::pair<T, T> forward(const T& q, const T& k, const T& v, const T* mask,
                                 const AttentionOptions& options) {
    const ComposedAttention a(q, k, v, mask, options);
    const DType wide = X::dtype(a.q_);
    const T scores = a.scores();
    T lse = a.s_ == 0 ? X::float_full(Shape{a.n_, a.h_, a.l_},
                                      -std::numeric_limits<double>::infinity(), wide, X::device(q))
                      : T(X::float_logsumexp(scores, Dims{3}, false));
    const T out = X::float_matmul(a.by_key_head(a.dropped(a.weights(scores))), a.v_);
    return {narrow<X>(X::float_reshape(out, Shape{a.n_, a.h_, a.l_, X::shape(v)[3]}), X::dtype(q)),
            std::move(lse)};
  }

  static std::tuple<T, T, T> backward(const T& g, const T& q, const T& k, const T& v, const T* mask,
                                      const AttentionOptions& options) {
    const ComposedAttention a(q, k, v, mask, options);
    const T weights = a.weights(a.scores());
    const T g_rows = a.by_key_head(widen<X>(g));
    T gv = X::float_matmul(transposed(a.by_key_head(a.dropped(weights))), g_rows);
    const T g_weights = a.dropped(a.by_query(X::float_matmul(g_rows, transposed(a.v_))));
    const T g_scores = a.by_key_head(X::float_softmax_backward(g_weights, weights, 3));
    const Scalar scale(options.scale);
    T gq = X::float_mul_scalar(X::float_matmul(g_scores, a.k_), scale);
    T gk = X::float_mul_scalar(X::float_matmul(transposed(g_scores), a.by_key_head(a.q_)), scale);
    const DType dtype = X::dtype(q);
    return {narrow<X>(X::float_reshape(std::move(gq), X::shape(q)), dtype),
            narrow<X>(std::move(gk), dtype), narrow<X>(std::move(gv), dtype)};
  }

 private:
  using Bool = BoolOf<X>;

  ComposedAttention(const T& q, const T& k, const T& v, const T* mask,
                    const AttentionOptions& options)
      : q_(widen<X>(q)), k_(widen<X>(k)), v_(widen<X>(v)), mask_(mask), options_(options) {
    const Shape queries = X::shape(q);
    n_ = queries[0];
    h_ = queries[1];
    l_ = queries[2];
    g_ = X::shape(k)[1];
    s_ = X::shape(k)[2];
  }

  static T transposed(const T& x) { return X::float_permute(x, Dims{0, 1, 3, 2}); }

  // [N, H, L, ..] as [N, G, H / G * L, ..]: the rows that meet one key head, and back.
  T by_key_head(const T& x) const {
    const int64_t rows = g_ == 0 ? 0 : h_ / g_ * l_;
    return X::float_reshape(x, Shape{n_, g_, rows, Shape(X::shape(x))[3]});
  }
  T by_query(const T& x) const {
    return X::float_reshape(x, Shape{n_, h_, l_, Shape(X::shape(x))[3]});
  }

  T scores() const {
    const T product = X::float_matmul(by_key_head(q_), transposed(k_));
    T scores = X::float_mul_scalar(by_query(product), Scalar(options_.scale));
    if (mask_ != nullptr) scores = X::float_add(std::move(scores), widen<X>(*mask_));
    if (!options_.causal) return scores;
    const Device device = X::device(q_);
    const auto keys = X::int_arange(0, 1, s_, DType::i64, device);
    const auto queries = X::int_reshape(X::int_arange(0, 1, l_, DType::i64, device), Shape{l_, 1});
    return X::float_mask_fill(std::move(scores), X::int_greater(keys, queries),
                              Scalar(-std::numeric_limits<double>::infinity()));
  }

  // softmax, but 0 where a query sees nothing.
  T weights(const T& scores) const {
    if (X::shape(scores).numel() == 0) return scores;
    const Bool blind = X::float_equal_scalar(X::float_amax(scores, Dims{3}, true),
                                             Scalar(-std::numeric_limits<double>::infinity()));
    const T seen = X::float_softmax(X::float_mask_fill(scores, blind, Scalar(0.0)), 3);
    return X::float_mask_fill(seen, blind, Scalar(0.0));
  }

  T dropped(const T& weights) const {
    if (options_.dropout == 0.0) return weights;
    return X::float_dropout(weights, options_.dropout, options_.stream);
  }

  T q_, k_, v_;
  const T* mask_;
  const AttentionOptions& options_;
  int64_t n_, h_, l_, g_, s_;
};

}  // namespace kiln::defaults
