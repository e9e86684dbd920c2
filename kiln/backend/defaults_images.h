// Default ops of images: windows' largest elements, images read at points, in other sizes, and
// continued at their edges.
#pragma once

#include "kiln/backend/composed_grid.h"

namespace kiln::defaults {

template <class Bk>
struct ImageDefaults {
  // Every window's elements are gathered; shorter ones repeat their last.
  template <class X = Bk>
  static IntOf<X> float_window_argmax(const FloatOf<X>& x, const IntOf<X>& starts,
                                      const IntOf<X>& lengths, const Shape& out,
                                      const Shape& longest) {
    const Shape s = X::shape(x);
    const Device device = X::device(x);
    const int64_t rows = X::shape(starts)[0];
    const int64_t planes = s[0] * s[1];
    if (planes * out.numel() == 0) {
      return X::int_empty(Shape{s[0], s[1], out.numel()}, DType::i64, device);
    }
    // Places [rows, OD, OH, OW, LD, LH, LW].
    IntOf<X> places = X::int_full(Shape{1, 1, 1, 1, 1, 1, 1}, 0, DType::i64, device);
    int64_t begin = 0;
    for (int d = 0; d < 3; ++d) {
      const Range range{begin, begin + out[d], 1};
      Shape window = Shape::filled(7, 1);
      window[d + 1] = out[d];
      const IntOf<X> last =
          X::int_add_scalar(X::int_reshape(X::int_slice(lengths, 0, range), window), -1);
      Shape steps = Shape::filled(7, 1);
      steps[d + 4] = longest[d];
      const IntOf<X> step =
          X::int_reshape(X::int_arange(0, 1, longest[d], DType::i64, device), steps);
      window[0] = rows;
      const IntOf<X> first = X::int_reshape(X::int_slice(starts, 1, range), window);
      const IntOf<X> at = X::int_add(first, X::int_minimum(step, last));
      places = X::int_add(X::int_mul_scalar(places, s[d + 2]), at);
      begin += out[d];
    }
    const int64_t windows = out.numel();
    const int64_t size = longest.numel();
    const IntOf<X> index = X::int_expand(X::int_reshape(places, Shape{rows, windows * size}),
                                         Shape{planes, windows * size});
    const FloatOf<X> flat = X::float_reshape(x, Shape{planes, s[2] * s[3] * s[4]});
    const FloatOf<X> values =
        X::float_reshape(X::float_gather(flat, 1, index), Shape{planes, windows, size});
    const IntOf<X> best = X::float_argmax(values, 2, true);
    const IntOf<X> found =
        X::int_gather(X::int_reshape(index, Shape{planes, windows, size}), 2, best);
    return X::int_reshape(found, Shape{s[0], s[1], windows});
  }

  template <class X = Bk>
  static FloatOf<X> float_grid_sample(const FloatOf<X>& x, const FloatOf<X>& points,
                                      const GridOptions& options) {
    return ComposedGrid<X>(X::shape(x), points, options).read(x);
  }
  template <class X = Bk>
  static FloatOf<X> float_grid_sample_input_grad(const FloatOf<X>& g, const FloatOf<X>& points,
                                                 const Shape& x_shape, const GridOptions& options) {
    return ComposedGrid<X>(x_shape, points, options).input_grad(g);
  }
  template <class X = Bk>
  static FloatOf<X> float_grid_sample_points_grad(const FloatOf<X>& g, const FloatOf<X>& x,
                                                  const FloatOf<X>& points,
                                                  const GridOptions& options) {
    return ComposedGrid<X>(X::shape(x), points, options).points_grad(g, x);
  }

  // A tap of every output at a time.
  template <class X = Bk>
  static FloatOf<X> float_resample(const FloatOf<X>& x, const DimMaps& maps) {
    FloatOf<X> now = x;
    for (const auto& [dim, map] : *maps) {
      if (map.picks()) {
        now = X::float_index_select(now, dim, index_of<X>(map.index, X::device(x)));
        continue;
      }
      int64_t taps = 0;
      for (int64_t o = 0; o < map.out; ++o) taps = std::max(taps, map.taps(o));
      Shape shape = X::shape(now);
      shape[dim] = map.out;
      FloatOf<X> sum = X::float_full(shape, 0.0, X::dtype(x), X::device(x));
      for (int64_t k = 0; k < taps; ++k) {
        std::vector<int64_t> index;
        std::vector<double> weights;
        for (int64_t o = 0; o < map.out; ++o) {
          const bool there = k < map.taps(o);
          const auto at = static_cast<size_t>(map.first[static_cast<size_t>(o)] + (there ? k : 0));
          index.push_back(there ? map.index[at] : 0);
          weights.push_back(there ? map.weight[at] : 0.0);
        }
        Shape along = Shape::filled(shape.rank(), 1);
        along[dim] = map.out;
        const FloatOf<X> weight =
            X::float_from_data(TensorData(weights, along).cast(X::dtype(x)), X::device(x));
        const FloatOf<X> part = X::float_index_select(now, dim, index_of<X>(index, X::device(x)));
        sum = X::float_add(std::move(sum), X::float_mul(part, weight));
      }
      now = std::move(sum);
    }
    return now;
  }
  template <class X = Bk>
  static IntOf<X> int_resample(const IntOf<X>& x, const DimMaps& maps) {
    IntOf<X> now = x;
    for (const auto& [dim, map] : *maps) {
      now = X::int_index_select(now, dim, index_of<X>(map.index, X::device(x)));
    }
    return now;
  }

#define KILN_PAD(kind, Kind, full)                                                      \
  template <class X = Bk>                                                               \
  static Kind<X> kind##_pad(const Kind<X>& x, const Shape& before, const Shape& behind, \
                            Scalar value) {                                             \
    const Shape from = X::shape(x);                                                     \
    Shape to = from;                                                                    \
    for (int d = 0; d < to.rank(); ++d) to[d] += before[d] + behind[d];                 \
    Kind<X> out = full;                                                                 \
    if (from.numel() == 0) return out;                                                  \
    Kind<X> part = out;                                                                 \
    for (int d = 0; d < to.rank(); ++d) {                                               \
      if (from[d] == to[d]) continue;                                                   \
      part = X::kind##_slice(part, d, Range{before[d], before[d] + from[d], 1});        \
    }                                                                                   \
    X::kind##_assign(part, x);                                                          \
    return out;                                                                         \
  }
  KILN_PAD(float, FloatOf, X::float_full(to, value, X::dtype(x), X::device(x)))
  KILN_PAD(int, IntOf, X::int_full(to, value, X::dtype(x), X::device(x)))
  KILN_PAD(bool, BoolOf, X::bool_full(to, value.to_bool(), X::device(x)))
#undef KILN_PAD

#define KILN_PAD_EDGES(kind, Kind)                                                            \
  template <class X = Bk>                                                                     \
  static Kind<X> kind##_pad_edges(const Kind<X>& x, const Shape& before, const Shape& behind, \
                                  EdgeMode mode) {                                            \
    Kind<X> now = x;                                                                          \
    for (int d = 0; d < before.rank(); ++d) {                                                 \
      if (before[d] + behind[d] == 0) continue;                                               \
      const int64_t n = X::shape(now)[d];                                                     \
      now = X::kind##_index_select(                                                           \
          now, d, index_of<X>(sources(-before[d], n + behind[d], n, mode), X::device(x)));    \
    }                                                                                         \
    return now;                                                                               \
  }
  KILN_PAD_EDGES(float, FloatOf)
  KILN_PAD_EDGES(int, IntOf)
  KILN_PAD_EDGES(bool, BoolOf)
#undef KILN_PAD_EDGES

  template <class X = Bk>
  static FloatOf<X> float_pad_edges_backward(const FloatOf<X>& g, const Shape& before,
                                             const Shape& behind, EdgeMode mode) {
    FloatOf<X> now = widen<X>(g);
    for (int d = 0; d < before.rank(); ++d) {
      if (before[d] + behind[d] == 0) continue;
      Shape shape = X::shape(now);
      const int64_t n = shape[d] - before[d] - behind[d];
      shape[d] = n;
      now = X::float_index_add(
          X::float_full(shape, 0.0, X::dtype(now), X::device(g)), d,
          index_of<X>(sources(-before[d], n + behind[d], n, mode), X::device(g)), now);
    }
    return narrow<X>(std::move(now), X::dtype(g));
  }

 private:
  static std::vector<int64_t> sources(int64_t begin, int64_t end, int64_t n, EdgeMode mode) {
    std::vector<int64_t> out;
    for (int64_t i = begin; i < end; ++i) out.push_back(edge_source(mode, i, n));
    return out;
  }
  template <class X>
  static IntOf<X> index_of(const std::vector<int64_t>& places, Device device) {
    return X::int_from_data(TensorData(places, Shape{static_cast<int64_t>(places.size())}), device);
  }
};

}  // namespace kiln::defaults
