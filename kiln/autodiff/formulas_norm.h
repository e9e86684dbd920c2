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
  using FormulasNeural<B>::dtype_of;
  using FormulasNeural<B>::in_dtype;
  using typename Base::A;
  using typename Base::F;
  using typename Base::P;
  using typename Base::T;
  using Norms = defaults::NormDefaults<A>;

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
    const T rows = A::float_reshape(x, defaults::group_rows(B::shape(x->inner), groups));
    const T variance = A::float_var(rows, Dims{2}, 0.0, true);
    return Norms::template float_group_norm_backward<A>(
        g.get(), x.get(), weight, A::float_mean(rows, Dims{2}, true),
        A::float_rsqrt(A::float_add_scalar(variance, Scalar(eps))), groups, eps);
  }

  // Statistics with a history are rare: then everything is composed.
  static T float_batch_norm_inference(F x, F mean, F var, const T* weight, const T* bias,
                                      double eps) {
    if (tracked(mean, var)) {
      return Norms::template float_batch_norm_inference<A>(x.get(), mean.get(), var.get(), weight,
                                                           bias, eps);
    }
    if (!tracked(x, weight, bias)) {
      return {B::float_batch_norm_inference(in(x), in(mean), in(var), in(weight), in(bias), eps)};
    }
    auto formula = [x_ = save(x), m_ = save(mean), v_ = save(var), w_ = save_if(true, weight),
                    params = std::array{dtype_of(weight), dtype_of(bias)}, eps](P& p) {
      const std::optional<T> w0 = w_ ? std::optional(w_->get(p)) : std::nullopt;
      auto [gx, gw, gb] = A::float_batch_norm_inference_backward(
          p.take(), x_.get(p), m_.get(p), v_.get(p), w0 ? &*w0 : nullptr, eps);
      p.give(0, std::move(gx));
      p.give(1, in_dtype(std::move(gw), params[0]));
      p.give(2, in_dtype(std::move(gb), params[1]));
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
    return Norms::template float_batch_norm_inference_backward<A>(g.get(), x.get(), mean.get(),
                                                                  var.get(), weight, eps);
  }
};

}  // namespace kiln::autodiff
