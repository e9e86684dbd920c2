// Fourier transforms. Each is linear, and its adjoint one of them again.
#pragma once

#include "kiln/autodiff/formulas_norm.h"

namespace kiln::autodiff {

template <class B>
struct FormulasFft : FormulasNorm<B> {
  using Base = AutodiffBase<B>;
  using Base::attach;
  using Base::edges;
  using Base::in;
  using Base::tracked;
  using typename Base::A;
  using typename Base::F;
  using typename Base::P;
  using typename Base::T;

  static T float_fft(F x, int dim, bool inverse, double scale) {
    if (!tracked(x)) return {B::float_fft(in(x), dim, inverse, scale)};
    auto formula = [dim, inverse, scale](P& p) {
      p.give(0, A::float_fft(p.take(), dim, !inverse, scale));
    };
    auto to = edges(x);
    return attach("fft", B::float_fft(in(x), dim, inverse, scale), std::move(to),
                  std::move(formula));
  }

  static T float_fft_real(F x, const Dims& dims, bool inverse, double scale) {
    if (!tracked(x)) return {B::float_fft_real(in(x), dims, inverse, scale)};
    auto formula = [from = Shape(B::shape(x->inner)), dims, inverse, scale](P& p) {
      T g = p.take();
      double by = scale;
      for (const int64_t d : dims) {
        g = A::float_fft(std::move(g), static_cast<int>(d), !inverse, by);
        by = 1.0;
      }
      // The real parts.
      p.give(0, A::float_reshape(A::float_slice(std::move(g), from.rank(), Range{0, 1, 1}), from));
    };
    auto to = edges(x);
    return attach("fft", B::float_fft_real(in(x), dims, inverse, scale), std::move(to),
                  std::move(formula));
  }

  // The adjoint of one is the other: what stands for two numbers counts half, or twice.
  static T float_rfft(F x, double scale, double ends) {
    if (!tracked(x)) return {B::float_rfft(in(x), scale, ends)};
    auto formula = [n = Shape(B::shape(x->inner)).back(), scale, ends](P& p) {
      p.give(0, A::float_irfft(p.take(), n, 0.5 * scale, 2.0 * ends));
    };
    auto to = edges(x);
    return attach("rfft", B::float_rfft(in(x), scale, ends), std::move(to), std::move(formula));
  }
  static T float_irfft(F x, int64_t n, double scale, double ends) {
    if (!tracked(x)) return {B::float_irfft(in(x), n, scale, ends)};
    auto formula = [scale, ends](P& p) {
      p.give(0, A::float_rfft(p.take(), 2.0 * scale, 0.5 * ends));
    };
    auto to = edges(x);
    return attach("irfft", B::float_irfft(in(x), n, scale, ends), std::move(to),
                  std::move(formula));
  }
};

}  // namespace kiln::autodiff
