// Normalization of groups of channels, and with given statistics.
#pragma once

#include "kiln/autodiff/formulas_neural.h"

namespace kiln::autodiff {

template <class B>
struct FormulasNorm : FormulasNeural<B> {
  using Base = AutodiffBase<B>;
  using Base::attach;
  using Base::edges;
  using Base::in;
  using Base::save;
  using Base::save_constant;
  using Base::save_if;
  using Base::tracked;
  using typename Base::A;
  using typename Base::F;
  using typename Base::P;
  using typename Base::T;

  // The statistics returned beside the output carry no gradient.
  static std::tuple<T, T, T> float_group_norm(F x, const T* weight, const T* bias, int64_t groups,
                                              double eps) {
    const bool record = tracked(x, weight, bias);
    auto to = edges(x, weight, bias);
    auto x_ = record ? std::optional(save(x)) : std::nullopt;
    auto w_ = save_if(record, weight);
    auto [out, mean, rstd] = B::float_group_norm(in(x), in(weight), in(bias), groups, eps);
    if (!record) return {T{std::move(out)}, T{std::move(mean)}, T{std::move(rstd)}};
    auto formula = [x_ = std::move(x_), w_ = std::move(w_), m_ = save_constant(mean),
                    r_ = save_constant(rstd), groups, eps](P& p) {
      const T x0 = x_->get(p);
      const std::optional<T> w0 = w_ ? std::optional(w_->get(p)) : std::nullopt;
      auto [gx, gw, gb] = A::float_group_norm_backward(p.take(), x0, w0 ? &*w0 : nullptr,
                                                       T{m_.get(p)}, T{r_.get(p)}, groups, eps);
      p.give(0, std::move(gx));
      p.give(1, std::move(gw));
      p.give(2, std::move(gb));
    };
    return {attach("group_norm", std::move(out), std::move(to), std::move(formula)),
            T{std::move(mean)}, T{std::move(rstd)}};
  }
  // The statistics depend on x: a recorded pass computes them again from it.
  static std::tuple<T, T, T> float_group_norm_backward(F g, F x, const T* weight, F mean, F rstd,
                                                       int64_t groups, double eps) {
    if (!tracked(g, x, weight, mean, rstd)) {
      auto [gx, gw, gb] =
          B::float_group_norm_backward(in(g), in(x), in(weight), in(mean), in(rstd), groups, eps);
      return {T{std::move(gx)}, T{std::move(gw)}, T{std::move(gb)}};
    }
    const Shape shape = B::shape(x->inner);
    const Shape rows = group_rows(shape, groups);
    const Dims row{2};
    const T in_rows = A::float_reshape(x.get(), rows);
    const T gap = A::float_sub(in_rows, A::float_mean(in_rows, row, true));
    const T scale = A::float_rsqrt(
        A::float_add_scalar(A::float_mean(A::float_square(gap), row, true), Scalar(eps)));
    const T unit = A::float_mul(gap, scale);
    T weighted = g.get();
    if (weight != nullptr) weighted = A::float_mul(weighted, along_channels(*weight, shape));
    weighted = A::float_reshape(std::move(weighted), rows);
    // scale (h - mean(h) - unit mean(h unit)) with h = g weight
    const T along = A::float_mul(unit, A::float_mean(A::float_mul(weighted, unit), row, true));
    const T centered = A::float_sub(weighted, A::float_mean(weighted, row, true));
    T gx = A::float_reshape(A::float_mul(scale, A::float_sub(centered, along)), shape);
    const Dims others = all_but_channels(shape.rank());
    T gw = A::float_sum(A::float_mul(g.get(), A::float_reshape(unit, shape)), others, false);
    T gb = A::float_sum(g.get(), others, false);
    return {std::move(gx), std::move(gw), std::move(gb)};
  }

  // Statistics with a history are rare: then everything is composed.
  static T float_batch_norm_inference(F x, F mean, F var, const T* weight, const T* bias,
                                      double eps) {
    if (tracked(mean, var)) return composed_inference(x, mean, var, weight, bias, eps);
    if (!tracked(x, weight, bias)) {
      return {B::float_batch_norm_inference(in(x), in(mean), in(var), in(weight), in(bias), eps)};
    }
    auto formula = [x_ = save(x), m_ = save(mean), v_ = save(var), w_ = save_if(true, weight),
                    eps](P& p) {
      const std::optional<T> w0 = w_ ? std::optional(w_->get(p)) : std::nullopt;
      auto [gx, gw, gb] = A::float_batch_norm_inference_backward(
          p.take(), x_.get(p), m_.get(p), v_.get(p), w0 ? &*w0 : nullptr, eps);
      p.give(0, std::move(gx));
      p.give(1, std::move(gw));
      p.give(2, std::move(gb));
    };
    auto to = edges(x, weight, bias);
    return attach(
        "batch_norm",
        B::float_batch_norm_inference(in(x), in(mean), in(var), in(weight), in(bias), eps),
        std::move(to), std::move(formula));
  }
  static std::tuple<T, T, T> float_batch_norm_inference_backward(F g, F x, F mean, F var,
                                                                 const T* weight, double eps) {
    if (!tracked(g, x, mean, var, weight)) {
      auto [gx, gw, gb] =
          B::float_batch_norm_inference_backward(in(g), in(x), in(mean), in(var), in(weight), eps);
      return {T{std::move(gx)}, T{std::move(gw)}, T{std::move(gb)}};
    }
    const Shape shape = B::shape(x->inner);
    const T rstd =
        along_channels(A::float_rsqrt(A::float_add_scalar(var.get(), Scalar(eps))), shape);
    const T scale = weight == nullptr ? rstd : A::float_mul(rstd, along_channels(*weight, shape));
    const T unit = A::float_mul(A::float_sub(x.get(), along_channels(mean.get(), shape)), rstd);
    const Dims others = all_but_channels(shape.rank());
    T gx = A::float_mul(g.get(), scale);
    T gw = A::float_sum(A::float_mul(g.get(), unit), others, false);
    T gb = A::float_sum(g.get(), others, false);
    return {std::move(gx), std::move(gw), std::move(gb)};
  }

 private:
  // [N, groups, elements of a group]
  static Shape group_rows(const Shape& shape, int64_t groups) {
    int64_t elements = shape[1] / groups;
    for (int d = 2; d < shape.rank(); ++d) elements *= shape[d];
    return {shape[0], groups, elements};
  }
  static Dims all_but_channels(int rank) {
    Dims dims;
    for (int d = 0; d < rank; ++d) {
      if (d != 1) dims.push_back(d);
    }
    return dims;
  }
  // v [C] in a shape that broadcasts to [N, C, ..].
  static T along_channels(const T& v, const Shape& shape) {
    Shape out = Shape::filled(shape.rank(), 1);
    out[1] = shape[1];
    return A::float_reshape(v, out);
  }
  static T composed_inference(const T& x, const T& mean, const T& var, const T* weight,
                              const T* bias, double eps) {
    const Shape shape = B::shape(x.inner);
    T scale = A::float_rsqrt(A::float_add_scalar(along_channels(var, shape), Scalar(eps)));
    if (weight != nullptr) scale = A::float_mul(std::move(scale), along_channels(*weight, shape));
    T out = A::float_mul(A::float_sub(x, along_channels(mean, shape)), scale);
    return bias == nullptr ? out : A::float_add(std::move(out), along_channels(*bias, shape));
  }
};

}  // namespace kiln::autodiff
