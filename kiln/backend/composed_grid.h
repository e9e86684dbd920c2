// Images read at points, from the other ops of a backend X: what a backend without kernels runs,
// and what Autodiff<B> runs where gradients have gradients.
#pragma once

#include <optional>

#include "kiln/backend/defaults_support.h"

namespace kiln::defaults {

template <class X>
struct ComposedGrid {
  using T = FloatOf<X>;
  using Index = IntOf<X>;

  // One element that every point [N, L] reads along one dim: its index, its weight (none: 1) and
  // the weight's derivative by the point's coordinate.
  struct Tap {
    Index index;
    std::optional<T> weight;
    std::optional<T> slope;
  };

  ComposedGrid(const Shape& x_shape, const T& points, const GridOptions& options)
      : shape_(x_shape), options_(options) {
    const int spatial = shape_.rank() - 2;
    const Shape column{X::shape(points)[0], X::shape(points)[1]};
    for (int i = 0; i < spatial; ++i) {
      const Range at{spatial - 1 - i, spatial - i, 1};
      const Reader reader{shape_[i + 2], options};
      taps_.push_back(reader.taps(X::float_reshape(X::float_slice(points, 2, at), column)));
      sizes_.push_back(reader.padded_size());
      places_ *= sizes_.back();
    }
    points_ = column;
  }

  T read(const T& x) const {
    const T flat = flattened(x);
    std::optional<T> sum;
    for_each_choice([&](const Index& index, const std::vector<const Tap*>& chosen) {
      T part = X::float_gather(flat, 2, index);
      if (const std::optional<T> w = weight(chosen, -1)) part = X::float_mul(part, by_channel(*w));
      sum = sum ? X::float_add(std::move(*sum), std::move(part)) : std::move(part);
    });
    return *std::move(sum);
  }

  T input_grad(const T& g) const {
    T sum = X::float_full(Shape{shape_[0], shape_[1], places_}, 0.0, X::dtype(g), X::device(g));
    for_each_choice([&](const Index& index, const std::vector<const Tap*>& chosen) {
      const std::optional<T> w = weight(chosen, -1);
      sum = X::float_scatter_add(std::move(sum), 2, index, w ? X::float_mul(g, by_channel(*w)) : g);
    });
    return cropped(sum);
  }

  T points_grad(const T& g, const T& x) const {
    const int spatial = shape_.rank() - 2;
    const T flat = flattened(x);
    std::vector<std::optional<T>> sums(static_cast<size_t>(spatial));
    for_each_choice([&](const Index& index, const std::vector<const Tap*>& chosen) {
      if (!chosen[0]->slope) return;
      const T met = X::float_sum(X::float_mul(g, X::float_gather(flat, 2, index)), Dims{1}, false);
      for (int i = 0; i < spatial; ++i) {
        std::optional<T>& sum = sums[static_cast<size_t>(i)];
        T part = X::float_mul(met, *weight(chosen, i));
        sum = sum ? X::float_add(std::move(*sum), std::move(part)) : std::move(part);
      }
    });
    Shape column = points_;
    column.push_back(1);
    std::vector<T> parts;
    for (size_t i = sums.size(); i-- > 0;) {
      parts.push_back(sums[i] ? X::float_reshape(*sums[i], column)
                              : X::float_full(column, 0.0, X::dtype(g), X::device(g)));
    }
    return X::float_cat(std::span<const T>(parts), 2);
  }

 private:
  // A coordinate and its derivative by the point's, which is constant between the places where it
  // jumps.
  struct Place {
    T at, slope;
  };

  // How points [N, L] along one dim of `size` elements read it.
  struct Reader {
    int64_t size;
    GridOptions how;

    bool is_zeros() const { return how.outside == GridOutside::zeros; }
    int64_t padded_size() const { return is_zeros() ? size + 2 : size; }

    static Place clamped(const Place& p, double low, double high) {
      const BoolOf<X> outside =
          X::bool_or(X::float_lower_scalar(p.at, low), X::float_greater_scalar(p.at, high));
      return {X::float_clamp(p.at, low, high), X::float_mask_fill(p.slope, outside, 0.0)};
    }
    Place limited(const Place& p) const { return clamped(p, 0.0, static_cast<double>(size - 1)); }
    // Mirrored at both ends until it lies inside.
    Place reflected(const Place& p) const {
      // The mirrors stand at `low` and low + span: pixel centers, or the outer edges of pixels.
      const double low = how.align_corners ? 0.0 : -0.5;
      const double span = static_cast<double>(how.align_corners ? size - 1 : size);
      if (span == 0.0) return {X::float_mul_scalar(p.at, 0.0), X::float_mul_scalar(p.slope, 0.0)};
      const T moved = X::float_add_scalar(p.at, -low);
      const T distance = X::float_abs(moved);
      const T flips = X::float_floor(X::float_div_scalar(distance, span));
      const T extra = X::float_sub(distance, X::float_mul_scalar(flips, span));
      const T halves = X::float_floor(X::float_mul_scalar(flips, 0.5));
      const BoolOf<X> odd =
          X::float_greater_scalar(X::float_sub(flips, X::float_mul_scalar(halves, 2.0)), 0.5);
      const T slope = X::float_mul(p.slope, X::float_sign(moved));
      return {X::float_add_scalar(
                  X::float_mask_where(extra, odd, X::float_rsub_scalar(extra, span)), low),
              X::float_mask_where(slope, odd, X::float_neg(slope))};
    }
    // With zeros there is one element of 0 at each end, which everything outside comes to lie on.
    Index index_of(const T& at) const {
      if (is_zeros()) {
        const T inside = X::float_clamp(at, -1.0, static_cast<double>(size));
        return X::float_into_int(X::float_add_scalar(inside, 1.0), DType::i64);
      }
      const Place p{at, at};
      const Place inside = limited(how.outside == GridOutside::reflection ? reflected(p) : p);
      return X::float_into_int(inside.at, DType::i64);
    }

    // From [-1, 1] to elements.
    Place in_elements(const T& point) const {
      const auto n = static_cast<double>(size);
      T at = point;
      double by = 1.0;
      if (how.normalized && how.align_corners) {
        by = 0.5 * (n - 1.0);
        at = X::float_mul_scalar(X::float_add_scalar(point, 1.0), by);
      } else if (how.normalized) {
        by = 0.5 * n;
        const T edges = X::float_mul_scalar(X::float_add_scalar(point, 1.0), n);
        at = X::float_mul_scalar(X::float_add_scalar(edges, -1.0), 0.5);
      }
      // Nowhere is as good as far outside, and stays a number.
      const BoolOf<X> nowhere = X::float_is_nan(at);
      const T slope = X::float_full(X::shape(point), by, X::dtype(point), X::device(point));
      return {X::float_mask_fill(at, nowhere, -4.0), X::float_mask_fill(slope, nowhere, 0.0)};
    }

    std::vector<Tap> taps(const T& point) const {
      Place p = in_elements(point);
      if (how.between != GridBetween::cubic && !is_zeros()) {
        p = limited(how.outside == GridOutside::reflection ? reflected(p) : p);
      }
      p = is_zeros() ? clamped(p, -4.0, static_cast<double>(size) + 3.0) : clamped(p, -1e9, 1e9);
      if (how.between == GridBetween::nearest) {
        return {{index_of(X::float_round(p.at)), std::nullopt, std::nullopt}};
      }
      const T first = X::float_floor(p.at);
      const T t = X::float_sub(p.at, first);
      const T left = X::float_rsub_scalar(t, 1.0);
      const auto index = [&](double by) { return index_of(X::float_add_scalar(first, by)); };
      if (how.between == GridBetween::linear) {
        return {{index(0.0), left, X::float_neg(p.slope)}, {index(1.0), t, p.slope}};
      }
      const T outer = X::float_add_scalar(t, 1.0);
      const T inner = X::float_add_scalar(left, 1.0);
      const T back = X::float_neg(p.slope);
      return {{index(-1.0), far(outer), X::float_mul(far_slope(outer), p.slope)},
              {index(0.0), near(t), X::float_mul(near_slope(t), p.slope)},
              {index(1.0), near(left), X::float_mul(near_slope(left), back)},
              {index(2.0), far(inner), X::float_mul(far_slope(inner), back)}};
    }

    // Keys' cubic convolution with a = -3/4: c3 t^3 + c2 t^2 + c1 t + c0, and its derivative.
    static constexpr double kA = -0.75;
    static T cubic(const T& t, double c3, double c2, double c1, double c0) {
      T out = X::float_add_scalar(X::float_mul_scalar(t, c3), c2);
      out = X::float_add_scalar(X::float_mul(out, t), c1);
      return X::float_add_scalar(X::float_mul(out, t), c0);
    }
    static T near(const T& t) { return cubic(t, kA + 2, -(kA + 3), 0, 1); }
    static T far(const T& t) { return cubic(t, kA, -5 * kA, 8 * kA, -4 * kA); }
    static T near_slope(const T& t) { return cubic(t, 0, 3 * (kA + 2), -2 * (kA + 3), 0); }
    static T far_slope(const T& t) { return cubic(t, 0, 3 * kA, -10 * kA, 8 * kA); }
  };

  // x [N, C, places], with a border of zeros where the reader wants one.
  T flattened(const T& x) const {
    T padded = x;
    for (int d = 2; d < shape_.rank() && options_.outside == GridOutside::zeros; ++d) {
      Shape border = X::shape(padded);
      border[d] = 1;
      const T zeros = X::float_full(border, 0.0, X::dtype(x), X::device(x));
      const T parts[] = {zeros, padded, zeros};
      padded = X::float_cat(std::span<const T>(parts), d);
    }
    return X::float_reshape(padded, Shape{shape_[0], shape_[1], places_});
  }
  // What flattened() made, back in x's shape.
  T cropped(const T& flat) const {
    Shape padded{shape_[0], shape_[1]};
    for (const int64_t n : sizes_) padded.push_back(n);
    T out = X::float_reshape(flat, padded);
    for (int d = 2; d < shape_.rank() && options_.outside == GridOutside::zeros; ++d) {
      out = X::float_slice(out, d, Range{1, 1 + shape_[d], 1});
    }
    return out;
  }

  // The product of the weights, with that of one dim replaced by its derivative (dim -1: none).
  static std::optional<T> weight(const std::vector<const Tap*>& chosen, int derived) {
    std::optional<T> out;
    for (size_t i = 0; i < chosen.size(); ++i) {
      const std::optional<T>& factor =
          static_cast<int>(i) == derived ? chosen[i]->slope : chosen[i]->weight;
      if (factor) out = out ? X::float_mul(std::move(*out), *factor) : *factor;
    }
    return out;
  }
  T by_channel(const T& weight) const {
    return X::float_reshape(weight, Shape{points_[0], 1, points_[1]});
  }

  // f(index [N, C, L], the dims' taps) for every combination of them.
  template <class F>
  void for_each_choice(F&& f) const {
    size_t count = 1;
    for (const std::vector<Tap>& taps : taps_) count *= taps.size();
    for (size_t choice = 0; choice < count; ++choice) {
      std::vector<const Tap*> chosen;
      std::optional<Index> index;
      size_t rest = choice;
      for (size_t i = 0; i < taps_.size(); ++i) {
        const Tap& tap = taps_[i][rest % taps_[i].size()];
        rest /= taps_[i].size();
        chosen.push_back(&tap);
        index =
            index ? X::int_add(X::int_mul_scalar(*index, Scalar(sizes_[i])), tap.index) : tap.index;
      }
      const Index row = X::int_reshape(*index, Shape{points_[0], 1, points_[1]});
      f(X::int_expand(row, Shape{points_[0], shape_[1], points_[1]}), chosen);
    }
  }

  Shape shape_;
  GridOptions options_;
  Shape points_;  // [N, L]
  std::vector<std::vector<Tap>> taps_;
  std::vector<int64_t> sizes_;
  int64_t places_ = 1;
};

}  // namespace kiln::defaults
