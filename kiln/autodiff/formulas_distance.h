// Distances between rows.
#pragma once

#include "kiln/autodiff/formulas_fft.h"

namespace kiln::autodiff {

template <class B>
struct FormulasDistance : FormulasFft<B> {
  using Base = AutodiffBase<B>;
  using Base::attach;
  using Base::edges;
  using Base::in;
  using Base::save;
  using Base::save_output;
  using Base::tracked;
  using Base::zeros_like;
  using typename Base::A;
  using typename Base::Bool;
  using typename Base::F;
  using typename Base::Inner;
  using typename Base::P;
  using typename Base::T;

  static T float_cdist(F x, F y, double norm, bool by_product) {
    if (!tracked(x, y)) return {B::float_cdist(in(x), in(y), norm, by_product)};
    auto to = edges(x, y);
    auto x_ = save(x);
    auto y_ = save(y);
    Inner out = B::float_cdist(in(x), in(y), norm, by_product);
    auto formula = [x_ = std::move(x_), y_ = std::move(y_), d_ = save_output(out), norm](P& p) {
      const T g = p.take();
      auto [gx, gy] = cdist_gradients(x_.get(p), y_.get(p), d_.get(p), g, norm);
      if (p.needs(0)) p.give(0, std::move(gx));
      if (p.needs(1)) p.give(1, std::move(gy));
    };
    return attach("cdist", std::move(out), std::move(to), std::move(formula));
  }

 private:
  static T with_dim(const T& x, int at) {
    Shape shape = B::shape(x.inner);
    shape.insert(at, 1);
    return A::float_reshape(x, shape);
  }
  static T turned(const T& x) {
    const int rank = Shape(B::shape(x.inner)).rank();
    Dims order = all_dims(rank);
    std::swap(order[rank - 1], order[rank - 2]);
    return A::float_permute(x, order);
  }

  // g d^(1-p), and 0 where the distance is.
  static T distance_weights(const T& g, const T& d, double norm) {
    const Bool none = B::float_equal_scalar(d.inner, Scalar(0.0));
    T power = A::float_mask_fill(d, none, Scalar(1.0));
    if (norm != 2.0) power = A::float_pow_scalar(std::move(power), Scalar(norm - 1.0));
    return A::float_mask_fill(A::float_div(g, std::move(power)), none, Scalar(0.0));
  }

  static std::pair<T, T> cdist_gradients(const T& x, const T& y, const T& d, const T& g,
                                         double norm) {
    if (norm == 0.0) {
      return {zeros_like(x, B::shape(x.inner)), zeros_like(y, B::shape(y.inner))};
    }
    const int rank = Shape(B::shape(x.inner)).rank();
    const Dims last{rank - 1};
    if (norm == 2.0) {
      // sum_j w_ij (x_i - y_j), without the differences.
      const T w = distance_weights(g, d, norm);
      const T wt = turned(w);
      return {A::float_sub(A::float_mul(x, A::float_sum(w, last, true)), A::float_matmul(w, y)),
              A::float_sub(A::float_mul(y, A::float_sum(wt, last, true)), A::float_matmul(wt, x))};
    }
    const T gap = A::float_sub(with_dim(x, rank - 1), with_dim(y, rank - 2));
    const T sign = A::float_sign(gap);
    T part;
    if (norm == 1.0) {
      part = A::float_mul(sign, with_dim(g, rank));
    } else if (std::isinf(norm)) {
      const Inner size = B::float_abs(gap.inner);
      const T hit{
          B::bool_into_float(B::float_equal(size, with_dim(d, rank).inner), B::dtype(x.inner))};
      part = A::float_mul(A::float_mul(sign, hit), with_dim(g, rank));
    } else {
      const Bool zero = B::float_equal_scalar(gap.inner, Scalar(0.0));
      const T safe = A::float_mask_fill(A::float_abs(gap), zero, Scalar(1.0));
      const T power =
          A::float_mask_fill(A::float_pow_scalar(safe, Scalar(norm - 1.0)), zero, Scalar(0.0));
      part = A::float_mul(A::float_mul(sign, power), with_dim(distance_weights(g, d, norm), rank));
    }
    return {A::float_sum(part, Dims{rank - 1}, false),
            A::float_neg(A::float_sum(part, Dims{rank - 2}, false))};
  }
};

}  // namespace kiln::autodiff
