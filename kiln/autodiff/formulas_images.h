// Images read at points, in other sizes, and continued at their edges.
#pragma once

#include "kiln/autodiff/formulas_complex.h"
#include "kiln/backend/composed_grid.h"

namespace kiln::autodiff {

template <class B>
struct FormulasImages : FormulasComplex<B> {
  using Base = AutodiffBase<B>;
  using Base::attach;
  using Base::edges;
  using Base::has_node;
  using Base::in;
  using Base::save;
  using Base::save_if;
  using Base::tracked;
  using typename Base::A;
  using typename Base::F;
  using typename Base::Int;
  using typename Base::P;
  using typename Base::T;

  static Int float_window_argmax(F x, const Arg<Int>& starts, const Arg<Int>& lengths,
                                 const Shape& out, const Shape& longest) {
    return B::float_window_argmax(in(x), starts, lengths, out, longest);
  }

  static T float_grid_sample(F x, F points, const GridOptions& options) {
    if (!tracked(x, points)) return {B::float_grid_sample(in(x), in(points), options)};
    auto formula = [shape = Shape(B::shape(x->inner)), x_ = save_if(has_node(points), x),
                    points_ = save(points), options](P& p) {
      const T g = p.take();
      const T places = points_.get(p);
      if (p.needs(0)) p.give(0, A::float_grid_sample_input_grad(g, places, shape, options));
      if (p.needs(1)) {
        p.give(1, A::float_grid_sample_points_grad(g, x_->get(p), places, options));
      }
    };
    auto to = edges(x, points);
    return attach("grid_sample", B::float_grid_sample(in(x), in(points), options), std::move(to),
                  std::move(formula));
  }
  static T float_grid_sample_input_grad(F g, F points, const Shape& x_shape,
                                        const GridOptions& options) {
    if (!tracked(g, points)) {
      return {B::float_grid_sample_input_grad(in(g), in(points), x_shape, options)};
    }
    return defaults::ComposedGrid<A>(x_shape, points.get(), options).input_grad(g.get());
  }
  static T float_grid_sample_points_grad(F g, F x, F points, const GridOptions& options) {
    if (!tracked(g, x, points)) {
      return {B::float_grid_sample_points_grad(in(g), in(x), in(points), options)};
    }
    const Shape shape = B::shape(x->inner);
    return defaults::ComposedGrid<A>(shape, points.get(), options).points_grad(g.get(), x.get());
  }

  static T float_resample(F x, const DimMaps& maps) {
    if (!tracked(x)) return {B::float_resample(in(x), maps)};
    auto formula = [maps](P& p) { p.give(0, A::float_resample(p.take(), transposed(maps))); };
    auto to = edges(x);
    return attach("interpolate", B::float_resample(in(x), maps), std::move(to), std::move(formula));
  }

  static T float_pad(F x, const Shape& before, const Shape& behind, Scalar value) {
    if (!tracked(x)) return {B::float_pad(in(x), before, behind, value)};
    auto formula = [from = Shape(B::shape(x->inner)), before](P& p) {
      T grad = p.take();
      for (int d = 0; d < from.rank(); ++d) {
        if (B::shape(grad.inner)[d] == from[d]) continue;
        grad = A::float_slice(grad, d, Range{before[d], before[d] + from[d], 1});
      }
      p.give(0, std::move(grad));
    };
    auto to = edges(x);
    return attach("pad", B::float_pad(in(x), before, behind, value), std::move(to),
                  std::move(formula));
  }
  static T float_pad_edges(F x, const Shape& before, const Shape& behind, EdgeMode mode) {
    if (!tracked(x)) return {B::float_pad_edges(in(x), before, behind, mode)};
    auto formula = [before, behind, mode](P& p) {
      p.give(0, A::float_pad_edges_backward(p.take(), before, behind, mode));
    };
    auto to = edges(x);
    return attach("pad", B::float_pad_edges(in(x), before, behind, mode), std::move(to),
                  std::move(formula));
  }
  static T float_pad_edges_backward(F g, const Shape& before, const Shape& behind, EdgeMode mode) {
    if (!tracked(g)) return {B::float_pad_edges_backward(in(g), before, behind, mode)};
    auto formula = [before, behind, mode](P& p) {
      p.give(0, A::float_pad_edges(p.take(), before, behind, mode));
    };
    auto to = edges(g);
    return attach("pad_backward", B::float_pad_edges_backward(in(g), before, behind, mode),
                  std::move(to), std::move(formula));
  }
};

}  // namespace kiln::autodiff
