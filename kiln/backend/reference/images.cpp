// Images: the largest elements of windows, reading at points, other sizes, edges.
#include <algorithm>
#include <cmath>

#include "kiln/backend/reference/elements.h"

namespace kiln {

using reference::for_each_index;
using reference::make;
using reference::Ops;
using reference::position;
using reference::read;
using reference::Tensor;

// ---- Windows

HostHandle Ops::float_window_argmax(Tensor x, Tensor starts, Tensor lengths, const Shape& out,
                                    const Shape&) {
  const Shape s = x->shape();
  const Shape plane{s[2], s[3], s[4]};
  const std::vector<double> values = read<double>(x);
  const std::vector<int64_t> begins = read<int64_t>(starts);
  const std::vector<int64_t> counts = read<int64_t>(lengths);
  const int64_t row = out[0] + out[1] + out[2];
  std::vector<int64_t> found;
  for (int64_t p = 0; p < s[0] * s[1]; ++p) {
    const int64_t of_plane = starts->shape()[0] == 1 ? 0 : p * row;
    for_each_index(out, [&](const Shape& window) {
      // Where the dims' windows stand in the lists, one dim after the other.
      const Shape at{window[0], out[0] + window[1], out[0] + out[1] + window[2]};
      Shape first, size;
      for (const int64_t i : at) {
        first.push_back(begins[static_cast<size_t>(of_plane + i)]);
        size.push_back(counts[static_cast<size_t>(i)]);
      }
      int64_t best = -1;
      double top = 0.0;
      for_each_index(size, [&](const Shape& step) {
        const Shape place{first[0] + step[0], first[1] + step[1], first[2] + step[2]};
        const auto here = static_cast<int64_t>(position(plane, place));
        const double value = values[static_cast<size_t>(p * plane.numel() + here)];
        if (best < 0 || value > top || (std::isnan(value) && !std::isnan(top))) {
          best = here;
          top = value;
        }
      });
      found.push_back(best);
    });
  }
  return make({s[0], s[1], out.numel()}, DType::i64, x->device(), found);
}

// ---- Reading at points

namespace {

// An element that a point reads along one dim (-1: the zeros outside), its weight, and the weight's
// derivative by the point's coordinate.
struct Tap {
  int64_t index;
  double weight;
  double slope;
};

struct Line {
  int64_t size;
  GridOptions how;

  double scale() const {
    if (!how.normalized) return 1.0;
    return 0.5 * static_cast<double>(how.align_corners ? size - 1 : size);
  }
  // Mirrored until it lies inside; turns `slope` around with every mirror.
  double reflected(double at, double* slope) const {
    const double low = how.align_corners ? 0.0 : -0.5;
    const double high = low + static_cast<double>(how.align_corners ? size - 1 : size);
    if (high == low) {
      *slope = 0.0;
      return 0.0;
    }
    while (at < low || at > high) {
      at = at < low ? 2.0 * low - at : 2.0 * high - at;
      *slope = -*slope;
    }
    return at;
  }
  double limited(double at, double* slope) const {
    const double inside = std::clamp(at, 0.0, static_cast<double>(size - 1));
    if (inside != at) *slope = 0.0;
    return inside;
  }
  int64_t element(double at) const {
    double unused = 0.0;
    if (how.outside == GridOutside::zeros) {
      return at < 0.0 || at > static_cast<double>(size - 1) ? -1 : static_cast<int64_t>(at);
    }
    if (how.outside == GridOutside::reflection) at = reflected(at, &unused);
    return static_cast<int64_t>(limited(at, &unused));
  }

  std::vector<Tap> taps(double point) const {
    double slope = scale();
    double at = point;
    if (how.normalized) {
      at = (point + 1.0) * slope;
      if (!how.align_corners) at -= 0.5;
    }
    if (std::isnan(at)) {
      at = -4.0;
      slope = 0.0;
    }
    if (how.between != GridBetween::cubic && how.outside == GridOutside::reflection) {
      at = reflected(at, &slope);
    }
    if (how.between != GridBetween::cubic && how.outside != GridOutside::zeros) {
      at = limited(at, &slope);
    }
    if (how.between == GridBetween::nearest) return {{element(std::nearbyint(at)), 1.0, 0.0}};
    const double first = std::floor(at);
    if (how.between == GridBetween::linear) {
      return {{element(first), 1.0 - (at - first), -slope},
              {element(first + 1), at - first, slope}};
    }
    std::vector<Tap> out;
    for (int k = -1; k <= 2; ++k) out.push_back(cubic_tap(at, first + k, slope));
    return out;
  }

  // Keys' cubic convolution with a = -3/4, of the distance to an element.
  Tap cubic_tap(double at, double place, double slope) const {
    constexpr double a = -0.75;
    const double x = std::abs(at - place);
    const double away = at < place ? -1.0 : 1.0;
    if (x <= 1.0) {
      return {element(place), (a + 2) * x * x * x - (a + 3) * x * x + 1.0,
              away * slope * (3 * (a + 2) * x * x - 2 * (a + 3) * x)};
    }
    return {element(place), a * x * x * x - 5 * a * x * x + 8 * a * x - 4 * a,
            away * slope * (3 * a * x * x - 10 * a * x + 8 * a)};
  }
};

// f(image, point, place in the plane, weight, derivatives of the weight by the coordinates) for
// every element that every point reads.
template <class F>
void for_each_read(const Shape& x, const HostHandle& points, const GridOptions& how, F&& f) {
  const int spatial = x.rank() - 2;
  const std::vector<double> coordinates = read<double>(points);
  const int64_t count = points->shape()[1];
  Shape plane;
  for (int i = 0; i < spatial; ++i) plane.push_back(x[i + 2]);
  for (int64_t n = 0; n < x[0]; ++n) {
    for (int64_t l = 0; l < count; ++l) {
      std::vector<std::vector<Tap>> taps;
      Shape choices;
      for (int i = 0; i < spatial; ++i) {
        const auto at = static_cast<size_t>((n * count + l) * spatial + spatial - 1 - i);
        taps.push_back(Line{plane[i], how}.taps(coordinates[at]));
        choices.push_back(static_cast<int64_t>(taps.back().size()));
      }
      for_each_index(choices, [&](const Shape& choice) {
        Shape place;
        double weight = 1.0;
        std::vector<double> slopes(static_cast<size_t>(spatial), 1.0);
        for (int i = 0; i < spatial; ++i) {
          const Tap& tap = taps[static_cast<size_t>(i)][static_cast<size_t>(choice[i])];
          place.push_back(tap.index);
          weight *= tap.weight;
          for (int j = 0; j < spatial; ++j) {
            slopes[static_cast<size_t>(j)] *= i == j ? tap.slope : tap.weight;
          }
        }
        if (!place.contains(-1))
          f(n, l, static_cast<int64_t>(position(plane, place)), weight, slopes);
      });
    }
  }
}

int64_t plane_of(const Shape& x) { return x.numel() / std::max<int64_t>(1, x[0] * x[1]); }

}  // namespace

HostHandle Ops::float_grid_sample(Tensor x, Tensor points, const GridOptions& how) {
  const Shape s = x->shape();
  const Shape shape{s[0], s[1], points->shape()[1]};
  const std::vector<double> values = read<double>(x);
  std::vector<double> out(static_cast<size_t>(shape.numel()), 0.0);
  for_each_read(s, points, how, [&](int64_t n, int64_t l, int64_t place, double weight, auto&&) {
    for (int64_t c = n * s[1]; c < (n + 1) * s[1]; ++c) {
      out[static_cast<size_t>(c * shape[2] + l)] +=
          weight * values[static_cast<size_t>(c * plane_of(s) + place)];
    }
  });
  return make(shape, x->dtype(), x->device(), out);
}

HostHandle Ops::float_grid_sample_input_grad(Tensor g, Tensor points, const Shape& s,
                                             const GridOptions& how) {
  const std::vector<double> grads = read<double>(g);
  const int64_t count = points->shape()[1];
  std::vector<double> out(static_cast<size_t>(s.numel()), 0.0);
  for_each_read(s, points, how, [&](int64_t n, int64_t l, int64_t place, double weight, auto&&) {
    for (int64_t c = n * s[1]; c < (n + 1) * s[1]; ++c) {
      out[static_cast<size_t>(c * plane_of(s) + place)] +=
          weight * grads[static_cast<size_t>(c * count + l)];
    }
  });
  return make(s, g->dtype(), g->device(), out);
}

HostHandle Ops::float_grid_sample_points_grad(Tensor g, Tensor x, Tensor points,
                                              const GridOptions& how) {
  const Shape s = x->shape();
  const int spatial = s.rank() - 2;
  const std::vector<double> grads = read<double>(g);
  const std::vector<double> values = read<double>(x);
  const int64_t count = points->shape()[1];
  std::vector<double> out(static_cast<size_t>(points->numel()), 0.0);
  for_each_read(s, points, how,
                [&](int64_t n, int64_t l, int64_t place, double, const std::vector<double>& by) {
                  double met = 0.0;
                  for (int64_t c = n * s[1]; c < (n + 1) * s[1]; ++c) {
                    met += grads[static_cast<size_t>(c * count + l)] *
                           values[static_cast<size_t>(c * plane_of(s) + place)];
                  }
                  for (int i = 0; i < spatial; ++i) {
                    out[static_cast<size_t>((n * count + l) * spatial + spatial - 1 - i)] +=
                        met * by[static_cast<size_t>(i)];
                  }
                });
  return make(points->shape(), x->dtype(), x->device(), out);
}

// ---- Other sizes

namespace {

template <class V>
HostHandle resampled(const Tensor& x, const DimMaps& maps) {
  Shape shape = x->shape();
  std::vector<V> values = read<V>(x);
  for (const DimMap& applied : *maps) {
    const int dim = applied.dim;
    const LineMap& map = applied.map;
    const Shape from = shape;
    shape[dim] = map.out;
    std::vector<V> out;
    for_each_index(shape, [&](const Shape& index) {
      const auto o = static_cast<size_t>(index[dim]);
      V sum = 0;
      for (int64_t k = map.first[o]; k < map.first[o + 1]; ++k) {
        Shape source = index;
        source[dim] = map.index[static_cast<size_t>(k)];
        sum += static_cast<V>(map.weight[static_cast<size_t>(k)]) * values[position(from, source)];
      }
      out.push_back(sum);
    });
    values = std::move(out);
  }
  return make(shape, x->dtype(), x->device(), values);
}

}  // namespace

HostHandle Ops::float_resample(Tensor x, const DimMaps& maps) {
  // What every map picks stays as it is, also where it is infinite.
  return resampled<double>(x, maps);
}
HostHandle Ops::int_resample(Tensor x, const DimMaps& maps) { return resampled<int64_t>(x, maps); }

// ---- Edges

namespace {

Shape grown(Shape shape, const Shape& before, const Shape& behind, int64_t sign) {
  for (int d = 0; d < shape.rank(); ++d) shape[d] += sign * (before[d] + behind[d]);
  return shape;
}

// Where element `index` of the padded tensor comes from, in one of `shape`.
size_t source(const Shape& shape, const Shape& index, const Shape& before, EdgeMode mode) {
  Shape from = index;
  for (int d = 0; d < shape.rank(); ++d) {
    from[d] = edge_source(mode, index[d] - before[d], shape[d]);
  }
  return position(shape, from);
}

template <class V>
HostHandle padded(const Tensor& x, const Shape& before, const Shape& behind, EdgeMode mode) {
  const Shape shape = grown(x->shape(), before, behind, 1);
  const std::vector<V> values = read<V>(x);
  std::vector<V> out;
  for_each_index(shape, [&](const Shape& index) {
    out.push_back(values[source(x->shape(), index, before, mode)]);
  });
  return make(shape, x->dtype(), x->device(), out);
}

// `value` where no element of x is.
template <class V>
HostHandle padded_with(const Tensor& x, const Shape& before, const Shape& behind, V value) {
  const Shape shape = grown(x->shape(), before, behind, 1);
  const std::vector<V> values = read<V>(x);
  std::vector<V> out;
  for_each_index(shape, [&](const Shape& index) {
    Shape from = index;
    bool inside = true;
    for (int d = 0; d < shape.rank(); ++d) {
      from[d] -= before[d];
      inside = inside && from[d] >= 0 && from[d] < x->shape()[d];
    }
    out.push_back(inside ? values[position(x->shape(), from)] : value);
  });
  return make(shape, x->dtype(), x->device(), out);
}

}  // namespace

HostHandle Ops::float_pad(Tensor x, const Shape& before, const Shape& behind, Scalar value) {
  return padded_with<double>(x, before, behind, value.to_double());
}
HostHandle Ops::int_pad(Tensor x, const Shape& before, const Shape& behind, Scalar value) {
  return padded_with<int64_t>(x, before, behind, value.to_int());
}
HostHandle Ops::bool_pad(Tensor x, const Shape& before, const Shape& behind, Scalar value) {
  return padded_with<int64_t>(x, before, behind, value.to_bool() ? 1 : 0);
}

HostHandle Ops::float_pad_edges(Tensor x, const Shape& before, const Shape& behind, EdgeMode mode) {
  return padded<double>(x, before, behind, mode);
}
HostHandle Ops::int_pad_edges(Tensor x, const Shape& before, const Shape& behind, EdgeMode mode) {
  return padded<int64_t>(x, before, behind, mode);
}
HostHandle Ops::bool_pad_edges(Tensor x, const Shape& before, const Shape& behind, EdgeMode mode) {
  return padded<int64_t>(x, before, behind, mode);
}

HostHandle Ops::float_pad_edges_backward(Tensor g, const Shape& before, const Shape& behind,
                                         EdgeMode mode) {
  const Shape shape = grown(g->shape(), before, behind, -1);
  const std::vector<double> grads = read<double>(g);
  std::vector<double> out(static_cast<size_t>(shape.numel()), 0.0);
  size_t i = 0;
  for_each_index(g->shape(), [&](const Shape& index) {
    out[source(shape, index, before, mode)] += grads[i++];
  });
  return make(shape, g->dtype(), g->device(), out);
}

}  // namespace kiln
