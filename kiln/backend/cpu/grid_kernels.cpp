#include "kiln/backend/cpu/grid_kernels.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "kiln/backend/cpu/kernel_table.h"

// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kiln/backend/cpu/grid_kernels.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
// clang-format on

#ifndef KILN_BACKEND_CPU_GRID_TABLE
#define KILN_BACKEND_CPU_GRID_TABLE
namespace kiln::cpu {
struct GridTable {
  GridKernels<float> f32;
  GridKernels<double> f64;
};
}  // namespace kiln::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace kiln::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// An element's place in an image, as wide as what is read there; -1 outside.
template <class T>
using Place = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;

// Room for whole vectors behind a block.
constexpr int64_t kRoom = kGridBlock + HWY_MAX_BYTES / 4;

// What the points of a block read along one dim: up to 4 elements each.
template <class T>
struct Line {
  Place<T> index[4][kRoom];
  T weight[4][kRoom];
  T slope[4][kRoom];  // of the weight, by the point's coordinate as it was given
};

// And in all dims together: up to 4^2 or 2^3 elements.
template <class T>
struct Taps {
  Line<T> lines[3];
  int count;
  HWY_ALIGN Place<T> place[16][kRoom];
  HWY_ALIGN T weight[16][kRoom];
};

template <class T>
HWY_INLINE T limited(T at, T last) {
  return at >= T(0) ? (at <= last ? at : last) : T(0);  // NaN becomes 0
}

// Mirrored at both ends until it lies inside; *sign becomes the slope.
template <class T>
HWY_INLINE T reflected(T at, const GridDim& dim, bool align_corners, T* sign) {
  // The mirrors stand at `low` and low + span: pixel centers, or the outer edges of pixels.
  const T low = align_corners ? T(0) : T(-0.5);
  const T span = static_cast<T>(align_corners ? dim.size - 1 : dim.size);
  if (span == T(0)) {
    *sign = T(0);
    return T(0);
  }
  const T distance = std::abs(at - low);
  const T flips = std::floor(distance / span);
  const T extra = distance - flips * span;
  const bool odd = flips - std::floor(flips / 2) * 2 > T(0.5);
  *sign = (at < low) == odd ? T(1) : T(-1);
  return (odd ? span - extra : extra) + low;
}

template <class T>
HWY_INLINE Place<T> index_inside(T at, const GridDim& dim, const GridSpec& spec) {
  const T last = static_cast<T>(dim.size - 1);
  if (spec.outside == GridOutside::zeros) {
    return at >= T(0) && at <= last ? static_cast<Place<T>>(at) : Place<T>(-1);
  }
  if (spec.outside == GridOutside::reflection) {
    T sign;
    at = reflected(at, dim, spec.align_corners, &sign);
  }
  return static_cast<Place<T>>(limited(at, last));
}

template <class T>
int fill_line(const GridSpec& spec, const GridDim& dim, const T* points, int64_t step, int64_t n,
              Line<T>& line) {
  const T shift = static_cast<T>(dim.shift), scale = static_cast<T>(dim.scale);
  const T offset = static_cast<T>(dim.offset), half = static_cast<T>(dim.half);
  const T last = static_cast<T>(dim.size - 1);
  const bool zeros = spec.outside == GridOutside::zeros;
  const T lowest = zeros ? T(-4) : T(-1e9);
  const T highest = zeros ? static_cast<T>(dim.size) + T(3) : T(1e9);
  constexpr T a = T(-0.75);
  for (int64_t i = 0; i < n; ++i) {
    T at = ((points[i * step] + shift) * scale - offset) * half;
    T slope = scale * half;
    // Far outside (or nowhere) is as good as just outside, and stays a number.
    if (std::isnan(at)) at = T(-4);
    if (spec.between != GridBetween::cubic && !zeros) {
      if (spec.outside == GridOutside::reflection) {
        T sign;
        at = reflected(at, dim, spec.align_corners, &sign);
        slope *= sign;
      }
      if (!(at > T(0) && at < last)) slope = T(0);
      at = limited(at, last);
    }
    at = at >= lowest ? (at <= highest ? at : highest) : lowest;
    if (spec.between == GridBetween::nearest) {
      line.index[0][i] = index_inside(std::nearbyint(at), dim, spec);
      line.weight[0][i] = T(1);
      line.slope[0][i] = T(0);
      continue;
    }
    const T first = std::floor(at);
    const T t = at - first;
    if (spec.between == GridBetween::linear) {
      line.index[0][i] = index_inside(first, dim, spec);
      line.index[1][i] = index_inside(first + T(1), dim, spec);
      line.weight[0][i] = T(1) - t;
      line.weight[1][i] = t;
      line.slope[0][i] = -slope;
      line.slope[1][i] = slope;
      continue;
    }
    const auto near = [&](T x) { return ((a + 2) * x - (a + 3)) * x * x + T(1); };
    const auto far = [&](T x) { return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a; };
    const auto near_slope = [&](T x) { return (3 * (a + 2) * x - 2 * (a + 3)) * x; };
    const auto far_slope = [&](T x) { return (3 * a * x - 10 * a) * x + 8 * a; };
    for (int k = 0; k < 4; ++k) {
      line.index[k][i] = index_inside(first + static_cast<T>(k - 1), dim, spec);
    }
    line.weight[0][i] = far(t + T(1));
    line.weight[1][i] = near(t);
    line.weight[2][i] = near(T(1) - t);
    line.weight[3][i] = far(T(2) - t);
    line.slope[0][i] = slope * far_slope(t + T(1));
    line.slope[1][i] = slope * near_slope(t);
    line.slope[2][i] = -slope * near_slope(T(1) - t);
    line.slope[3][i] = -slope * far_slope(T(2) - t);
  }
  return spec.between == GridBetween::nearest ? 1 : spec.between == GridBetween::linear ? 2 : 4;
}

// Which tap of dim i is meant by tap k of all dims together.
HWY_INLINE int part_of(int k, int i, int dims, int per_dim) {
  for (int j = dims - 1; j > i; --j) k /= per_dim;
  return k % per_dim;
}

// Every combination of the dims' taps.
template <class T>
int fill_taps(const GridSpec& spec, const T* points, int64_t n, Taps<T>& taps) {
  int per_dim = 1;
  for (int i = 0; i < spec.dims; ++i) {
    per_dim =
        fill_line(spec, spec.dim[i], points + (spec.dims - 1 - i), spec.dims, n, taps.lines[i]);
  }
  taps.count = 1;
  for (int i = 0; i < spec.dims; ++i) taps.count *= per_dim;
  for (int k = 0; k < taps.count; ++k) {
    Place<T>* place = taps.place[k];
    T* weight = taps.weight[k];
    for (int i = 0; i < spec.dims; ++i) {
      const int part = part_of(k, i, spec.dims, per_dim);
      const Place<T>* index = taps.lines[i].index[part];
      const T* factor = taps.lines[i].weight[part];
      const auto stride = static_cast<Place<T>>(spec.dim[i].stride);
      for (int64_t j = 0; j < n; ++j) {
        const Place<T> here = index[j] * stride;
        if (i == 0) {
          place[j] = index[j] < 0 ? Place<T>(-1) : here;
          weight[j] = factor[j];
        } else {
          place[j] = index[j] < 0 || place[j] < 0 ? Place<T>(-1) : place[j] + here;
          weight[j] *= factor[j];
        }
      }
    }
    // Whole vectors are read.
    for (int64_t j = n; j < kRoom; ++j) {
      place[j] = Place<T>(-1);
      weight[j] = T(0);
    }
  }
  return per_dim;
}

template <class D, class T>
HWY_INLINE hn::Vec<D> gathered(D d, const T* image, const Place<T>* places) {
  const hn::RebindToSigned<D> di;
  const auto place = hn::LoadU(di, places);
  const auto inside = hn::RebindMask(d, hn::Gt(place, hn::Set(di, Place<T>(-1))));
  const auto v = hn::GatherIndex(d, image, hn::Max(place, hn::Zero(di)));
  return hn::IfThenElseZero(inside, v);
}

template <class T>
void read(const GridSpec& spec, const T* points, int64_t n, const T* image, int64_t channels,
          int64_t places, T* out, int64_t row) {
  Taps<T> taps;
  fill_taps(spec, points, n, taps);
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t c = 0; c < channels; ++c, image += places, out += row) {
    for (int64_t j = 0; j < n; j += lanes) {
      auto sum = hn::Zero(d);
      for (int k = 0; k < taps.count; ++k) {
        sum = hn::MulAdd(gathered(d, image, taps.place[k] + j), hn::LoadU(d, taps.weight[k] + j),
                         sum);
      }
      if (j + lanes <= n) {
        hn::StoreU(sum, d, out + j);
      } else {
        hn::BlendedStore(sum, hn::FirstN(d, static_cast<size_t>(n - j)), d, out + j);
      }
    }
  }
}

template <class T>
void scatter(const GridSpec& spec, const T* points, int64_t n, const T* grad, int64_t channels,
             int64_t row, T* grad_image, int64_t places) {
  Taps<T> taps;
  fill_taps(spec, points, n, taps);
  for (int64_t c = 0; c < channels; ++c, grad_image += places, grad += row) {
    for (int k = 0; k < taps.count; ++k) {
      const Place<T>* place = taps.place[k];
      const T* weight = taps.weight[k];
      for (int64_t j = 0; j < n; ++j) {
        if (place[j] >= 0) grad_image[place[j]] += weight[j] * grad[j];
      }
    }
  }
}

template <class T>
void slopes(const GridSpec& spec, const T* points, int64_t n, const T* image, int64_t channels,
            int64_t places, const T* grad, int64_t row, T* grad_points) {
  Taps<T> taps;
  const int per_dim = fill_taps(spec, points, n, taps);
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  // The weights become the products of what was read with the gradients, over all channels.
  for (int k = 0; k < taps.count; ++k) std::fill(taps.weight[k], taps.weight[k] + kRoom, T(0));
  for (int64_t c = 0; c < channels; ++c, image += places, grad += row) {
    for (int64_t j = 0; j < n; j += lanes) {
      const auto g = j + lanes <= n
                         ? hn::LoadU(d, grad + j)
                         : hn::MaskedLoad(hn::FirstN(d, static_cast<size_t>(n - j)), d, grad + j);
      for (int k = 0; k < taps.count; ++k) {
        T* sum = taps.weight[k] + j;
        hn::StoreU(hn::MulAdd(gathered(d, image, taps.place[k] + j), g, hn::LoadU(d, sum)), d, sum);
      }
    }
  }
  for (int i = 0; i < spec.dims; ++i) {
    T* to = grad_points + (spec.dims - 1 - i);
    for (int64_t j = 0; j < n; ++j) {
      T total = T(0);
      for (int k = 0; k < taps.count; ++k) {
        T product = taps.weight[k][j];
        for (int other = 0; other < spec.dims; ++other) {
          const int part = part_of(k, other, spec.dims, per_dim);
          const Line<T>& line = taps.lines[other];
          product *= other == i ? line.slope[part][j] : line.weight[part][j];
        }
        total += product;
      }
      to[j * spec.dims] = total;
    }
  }
}

const GridTable* grid_table() {
  static constexpr GridTable table = {{read<float>, scatter<float>, slopes<float>},
                                      {read<double>, scatter<double>, slopes<double>}};
  return &table;
}

}  // namespace kiln::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kiln::cpu {
HWY_EXPORT(grid_table);
namespace {
const GridTable& chosen() {
  static constinit KernelTable<GridTable> table([] { return HWY_DYNAMIC_DISPATCH(grid_table)(); });
  return table.get();
}
}  // namespace
template <>
const GridKernels<float>& grid_kernels<float>() {
  return chosen().f32;
}
template <>
const GridKernels<double>& grid_kernels<double>() {
  return chosen().f64;
}
}  // namespace kiln::cpu
#endif
