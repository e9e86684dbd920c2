#include "kiln/backend/cpu/image/grid_kernels.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "kiln/backend/cpu/kernel_table.h"

// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kiln/backend/cpu/image/grid_kernels.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kiln/backend/cpu/masked-inl.h"
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
namespace {
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

// The same with neighbors along the last dim read as one: from `place` the products with `low`,
// from the element behind it those with `high`. What is not read has weight 0.
struct Pairs {
  Line<float> lines[3];
  int count;
  HWY_ALIGN int32_t place[8][kRoom];
  HWY_ALIGN float low[8][kRoom];
  HWY_ALIGN float high[8][kRoom];
  // Whether a weight is 0 in the vector of points that begins there: what it meets counts as 0, so
  // that no NaN or infinity of the image gets in.
  bool zeros[8][kRoom];
};

template <class D, class V = hn::Vec<D>>
HWY_INLINE V limited(D d, V at, V last) {
  // NaN becomes 0.
  return hn::IfThenElseZero(hn::Ge(at, hn::Zero(d)), hn::IfThenElse(hn::Le(at, last), at, last));
}

// Mirrored at both ends until it lies inside; *sign becomes the slope.
template <class D, class V = hn::Vec<D>, class T = hn::TFromD<D>>
HWY_INLINE V reflected(D d, V at, const GridDim& dim, bool align_corners, V* sign) {
  // The mirrors stand at `low` and low + span: pixel centers, or the outer edges of pixels.
  const auto low = hn::Set(d, align_corners ? T(0) : T(-0.5));
  const T width = static_cast<T>(align_corners ? dim.size - 1 : dim.size);
  if (width == T(0)) {
    *sign = hn::Zero(d);
    return hn::Zero(d);
  }
  const auto span = hn::Set(d, width), one = hn::Set(d, T(1));
  const auto distance = hn::Abs(hn::Sub(at, low));
  const auto flips = hn::Floor(hn::Div(distance, span));
  const auto extra = hn::NegMulAdd(flips, span, distance);
  const auto pairs = hn::Floor(hn::Mul(flips, hn::Set(d, T(0.5))));
  const auto odd = hn::Gt(hn::NegMulAdd(pairs, hn::Set(d, T(2)), flips), hn::Set(d, T(0.5)));
  *sign = hn::IfThenElse(hn::Xor(hn::Lt(at, low), odd), hn::Neg(one), one);
  return hn::Add(hn::IfThenElse(odd, hn::Sub(span, extra), extra), low);
}

// The element at a whole number.
template <class D, class V = hn::Vec<D>, class T = hn::TFromD<D>>
HWY_INLINE auto index_inside(D d, V at, const GridDim& dim, const GridSpec& spec) {
  const hn::RebindToSigned<D> di;
  const auto last = hn::Set(d, static_cast<T>(dim.size - 1));
  if (spec.outside == GridOutside::zeros) {
    const auto inside = hn::And(hn::Ge(at, hn::Zero(d)), hn::Le(at, last));
    return hn::ConvertTo(di, hn::IfThenElse(inside, at, hn::Set(d, T(-1))));
  }
  if (spec.outside == GridOutside::reflection) {
    V sign;
    at = reflected(d, at, dim, spec.align_corners, &sign);
  }
  return hn::ConvertTo(di, limited(d, at, last));
}

// Weights of the four taps around a point that lies t behind the second, and their slopes.
template <class D, class V = hn::Vec<D>, class T = hn::TFromD<D>>
HWY_INLINE void cubic(D d, V t, V slope, V* weights, V* slopes) {
  constexpr T a = T(-0.75);
  const auto c = [&](T x) HWY_ATTR { return hn::Set(d, x); };
  const auto near = [&](V x) HWY_ATTR {
    return hn::MulAdd(hn::Mul(hn::MulAdd(c(a + 2), x, c(-(a + 3))), x), x, c(1));
  };
  const auto far = [&](V x) HWY_ATTR {
    return hn::MulAdd(hn::MulAdd(hn::MulAdd(c(a), x, c(-5 * a)), x, c(8 * a)), x, c(-4 * a));
  };
  const auto near_slope = [&](V x) HWY_ATTR {
    return hn::Mul(hn::MulAdd(c(3 * (a + 2)), x, c(-2 * (a + 3))), x);
  };
  const auto far_slope = [&](V x) HWY_ATTR {
    return hn::MulAdd(hn::MulAdd(c(3 * a), x, c(-10 * a)), x, c(8 * a));
  };
  const V other = hn::Sub(c(1), t), before = hn::Add(t, c(1)), behind = hn::Sub(c(2), t);
  weights[0] = far(before);
  weights[1] = near(t);
  weights[2] = near(other);
  weights[3] = far(behind);
  slopes[0] = hn::Mul(slope, far_slope(before));
  slopes[1] = hn::Mul(slope, near_slope(t));
  slopes[2] = hn::Neg(hn::Mul(slope, near_slope(other)));
  slopes[3] = hn::Neg(hn::Mul(slope, far_slope(behind)));
}

// How many taps a dim has.
HWY_INLINE int taps_of(const GridSpec& spec) {
  return spec.between == GridBetween::nearest ? 1 : spec.between == GridBetween::linear ? 2 : 4;
}

// The taps of points whose coordinates along one dim are `along`, padded to whole vectors.
template <class T>
void fill_line(const GridSpec& spec, const GridDim& dim, const T* along, int64_t n, Line<T>& line) {
  const hn::ScalableTag<T> d;
  const hn::RebindToSigned<decltype(d)> di;
  using V = hn::Vec<decltype(d)>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const bool zeros = spec.outside == GridOutside::zeros;
  const V shift = hn::Set(d, static_cast<T>(dim.shift));
  const V scale = hn::Set(d, static_cast<T>(dim.scale));
  const V offset = hn::Set(d, static_cast<T>(dim.offset));
  const V half = hn::Set(d, static_cast<T>(dim.half));
  const V last = hn::Set(d, static_cast<T>(dim.size - 1));
  const V lowest = hn::Set(d, zeros ? T(-4) : T(-1e9));
  const V highest = hn::Set(d, zeros ? static_cast<T>(dim.size) + T(3) : T(1e9));
  for (int64_t i = 0; i < n; i += lanes) {
    V at = hn::Mul(hn::Sub(hn::Mul(hn::Add(hn::LoadU(d, along + i), shift), scale), offset), half);
    V slope = hn::Mul(scale, half);
    // Far outside (or nowhere) is as good as just outside, and stays a number.
    at = hn::IfThenElse(hn::IsNaN(at), hn::Set(d, T(-4)), at);
    if (spec.between != GridBetween::cubic && !zeros) {
      if (spec.outside == GridOutside::reflection) {
        V sign;
        at = reflected(d, at, dim, spec.align_corners, &sign);
        slope = hn::Mul(slope, sign);
      }
      const auto inside = hn::And(hn::Gt(at, hn::Zero(d)), hn::Lt(at, last));
      slope = hn::IfThenElseZero(inside, slope);
      at = limited(d, at, last);
    }
    at = hn::IfThenElse(hn::Ge(at, lowest), hn::IfThenElse(hn::Le(at, highest), at, highest),
                        lowest);
    const auto put = [&](int k, V place, V weight, V by) HWY_ATTR {
      hn::StoreU(index_inside(d, place, dim, spec), di, line.index[k] + i);
      hn::StoreU(weight, d, line.weight[k] + i);
      hn::StoreU(by, d, line.slope[k] + i);
    };
    if (spec.between == GridBetween::nearest) {
      put(0, hn::Round(at), hn::Set(d, T(1)), hn::Zero(d));
      continue;
    }
    const V first = hn::Floor(at), one = hn::Set(d, T(1));
    const V t = hn::Sub(at, first);
    if (spec.between == GridBetween::linear) {
      put(0, first, hn::Sub(one, t), hn::Neg(slope));
      put(1, hn::Add(first, one), t, slope);
      continue;
    }
    V weights[4], slopes[4];
    cubic(d, t, slope, weights, slopes);
    for (int k = 0; k < 4; ++k) {
      put(k, hn::Add(first, hn::Set(d, static_cast<T>(k - 1))), weights[k], slopes[k]);
    }
  }
}

template <class T>
void fill_lines(const GridSpec& spec, const T* points, int64_t n, Line<T>* lines) {
  HWY_ALIGN T along[kRoom];
  for (int i = 0; i < spec.dims; ++i) {
    const T* from = points + (spec.dims - 1 - i);
    for (int64_t j = 0; j < n; ++j) along[j] = from[j * spec.dims];
    std::fill(along + n, along + kRoom, T(0));
    fill_line(spec, spec.dim[i], along, n, lines[i]);
  }
}

// Which tap of dim i is meant by tap k of all dims together.
HWY_INLINE int part_of(int k, int i, int dims, int per_dim) {
  for (int j = dims - 1; j > i; --j) k /= per_dim;
  return k % per_dim;
}

// Every combination of the dims' taps.
template <class T>
void fill_taps(const GridSpec& spec, const T* points, int64_t n, Taps<T>& taps) {
  const int per_dim = taps_of(spec);
  fill_lines(spec, points, n, taps.lines);
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
}

// Whether two neighbors can be read as one: a pair of floats has the size of what gathers read.
template <class T>
HWY_INLINE bool reads_pairs(const GridSpec& spec) {
  return sizeof(T) == 4 && spec.between != GridBetween::nearest &&
         spec.dim[spec.dims - 1].size > 1 && spec.dim[spec.dims - 1].stride == 1;
}

// Every combination of the outer dims' taps with the pairs of the last dim.
HWY_INLINE void fill_pairs(const GridSpec& spec, const float* points, int64_t n, Pairs& pairs) {
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> di;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int per_dim = taps_of(spec), outer = spec.dims - 1;
  fill_lines(spec, points, n, pairs.lines);
  int rows = 1;
  for (int i = 0; i < outer; ++i) rows *= per_dim;
  pairs.count = rows * per_dim / 2;
  const Line<float>& inner = pairs.lines[outer];
  const auto none = hn::Set(di, -1), one = hn::Set(di, 1);
  const auto last = hn::Set(di, static_cast<int32_t>(spec.dim[outer].size - 2));
  for (int64_t j = 0; j < n; j += lanes) {
    for (int k = 0; k < pairs.count; ++k) {
      const int row = k / (per_dim / 2), tap = k % (per_dim / 2) * 2;
      auto place = hn::Zero(di);
      auto weight = hn::Set(d, 1.0F);
      for (int i = 0; i < outer; ++i) {
        const int part = part_of(row, i, outer, per_dim);
        const auto index = hn::LoadU(di, pairs.lines[i].index[part] + j);
        const auto inside = hn::Gt(index, none);
        const auto stride = hn::Set(di, static_cast<int32_t>(spec.dim[i].stride));
        place = hn::Add(place, hn::IfThenElseZero(inside, hn::Mul(index, stride)));
        weight = hn::IfThenElseZero(hn::RebindMask(d, inside),
                                    hn::Mul(weight, hn::LoadU(d, pairs.lines[i].weight[part] + j)));
      }
      // The two taps are neighbors in either order, or the same element, or outside.
      const auto a = hn::LoadU(di, inner.index[tap] + j);
      const auto b = hn::LoadU(di, inner.index[tap + 1] + j);
      const auto first =
          hn::IfThenElse(hn::Gt(a, none), hn::IfThenElse(hn::Gt(b, none), hn::Min(a, b), a), b);
      const auto base = hn::Max(hn::Min(first, last), hn::Zero(di));
      const auto behind = hn::Add(base, one);
      const auto wa = hn::Mul(weight, hn::LoadU(d, inner.weight[tap] + j));
      const auto wb = hn::Mul(weight, hn::LoadU(d, inner.weight[tap + 1] + j));
      const auto chosen = [&](auto at) HWY_ATTR {
        return hn::Add(hn::IfThenElseZero(hn::RebindMask(d, hn::Eq(a, at)), wa),
                       hn::IfThenElseZero(hn::RebindMask(d, hn::Eq(b, at)), wb));
      };
      const auto low = chosen(base), high = chosen(behind);
      hn::StoreU(hn::Add(place, base), di, pairs.place[k] + j);
      hn::StoreU(low, d, pairs.low[k] + j);
      hn::StoreU(high, d, pairs.high[k] + j);
      const auto zero = hn::Or(hn::Eq(low, hn::Zero(d)), hn::Eq(high, hn::Zero(d)));
      pairs.zeros[k][j] = !hn::AllFalse(d, zero);
    }
  }
}

// The elements at a vector of places, and those behind them.
template <class D, class V = hn::Vec<D>>
HWY_INLINE void gathered_pairs(D d, const float* image, const int32_t* places, V* low, V* high) {
#if HWY_TARGET == HWY_SCALAR
  *low = hn::Load(d, image + *places);
  *high = hn::Load(d, image + *places + 1);
#else
  const hn::ScalableTag<double> dd;
  const hn::ScalableTag<int64_t> d64;
  const hn::Rebind<int32_t, decltype(d64)> half;
  const auto* base = reinterpret_cast<const double*>(image);
  const auto at = [&](const int32_t* from) HWY_ATTR {
    const auto offset = hn::ShiftLeft<2>(hn::PromoteTo(d64, hn::LoadU(half, from)));
    return hn::BitCast(d, hn::GatherOffset(dd, base, offset));
  };
  const V first = at(places), second = at(places + hn::Lanes(d64));
  *low = hn::ConcatEven(d, second, first);
  *high = hn::ConcatOdd(d, second, first);
#endif
}

template <class D, class T>
HWY_INLINE hn::Vec<D> gathered(D d, const T* image, const Place<T>* places) {
  const hn::RebindToSigned<D> di;
  const auto place = hn::LoadU(di, places);
  const auto inside = hn::RebindMask(d, hn::Gt(place, hn::Set(di, Place<T>(-1))));
  const auto v = hn::GatherIndex(d, image, hn::Max(place, hn::Zero(di)));
  return hn::IfThenElseZero(inside, v);
}

void read_pairs(const GridSpec& spec, const float* points, int64_t n, const float* image,
                int64_t channels, int64_t places, float* out, int64_t row) {
  Pairs pairs;
  fill_pairs(spec, points, n, pairs);
  const hn::ScalableTag<float> d;
  using V = hn::Vec<decltype(d)>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t c = 0; c < channels; ++c, image += places, out += row) {
    for (int64_t j = 0; j < n; j += lanes) {
      V sum = hn::Zero(d);
      for (int k = 0; k < pairs.count; ++k) {
        V a, b;
        gathered_pairs(d, image, pairs.place[k] + j, &a, &b);
        const V low = hn::LoadU(d, pairs.low[k] + j), high = hn::LoadU(d, pairs.high[k] + j);
        if (pairs.zeros[k][j]) {
          a = hn::IfThenElseZero(hn::Ne(low, hn::Zero(d)), a);
          b = hn::IfThenElseZero(hn::Ne(high, hn::Zero(d)), b);
        }
        sum = hn::MulAdd(b, high, hn::MulAdd(a, low, sum));
      }
      if (j + lanes <= n) {
        hn::StoreU(sum, d, out + j);
      } else {
        masked_store(sum, hn::FirstN(d, static_cast<size_t>(n - j)), d, out + j);
      }
    }
  }
}

template <class T>
void read(const GridSpec& spec, const T* points, int64_t n, const T* image, int64_t channels,
          int64_t places, T* out, int64_t row) {
  if constexpr (std::is_same_v<T, float>) {
    if (reads_pairs<T>(spec)) {
      return read_pairs(spec, points, n, image, channels, places, out, row);
    }
  }
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
        masked_store(sum, hn::FirstN(d, static_cast<size_t>(n - j)), d, out + j);
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

// The slopes of points from the products of the gradients with what each tap read, over all
// channels.
template <class T, class F>
HWY_INLINE void put_slopes(const GridSpec& spec, int count, const Line<T>* lines, int64_t n,
                           F&& product_of, T* grad_points) {
  const int per_dim = taps_of(spec);
  for (int i = 0; i < spec.dims; ++i) {
    HWY_ALIGN T totals[kRoom] = {};
    for (int k = 0; k < count; ++k) {
      HWY_ALIGN T products[kRoom];
      product_of(k, products);
      for (int other = 0; other < spec.dims; ++other) {
        const int part = part_of(k, other, spec.dims, per_dim);
        const T* by = other == i ? lines[other].slope[part] : lines[other].weight[part];
        for (int64_t j = 0; j < n; ++j) products[j] *= by[j];
      }
      for (int64_t j = 0; j < n; ++j) totals[j] += products[j];
    }
    T* to = grad_points + (spec.dims - 1 - i);
    for (int64_t j = 0; j < n; ++j) to[j * spec.dims] = totals[j];
  }
}

// Gradients of a vector of points, zeros behind the last.
template <class D, class T>
HWY_INLINE hn::Vec<D> points_at(D d, const T* grad, int64_t left) {
  return left >= static_cast<int64_t>(hn::Lanes(d))
             ? hn::LoadU(d, grad)
             : masked_load(hn::FirstN(d, static_cast<size_t>(left)), d, grad);
}

void pair_slopes(const GridSpec& spec, const float* points, int64_t n, const float* image,
                 int64_t channels, int64_t places, const float* grad, int64_t row,
                 float* grad_points) {
  Pairs pairs;
  fill_pairs(spec, points, n, pairs);
  const hn::ScalableTag<float> d;
  using V = hn::Vec<decltype(d)>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  // The weights become the products.
  for (int k = 0; k < pairs.count; ++k) {
    std::fill(pairs.low[k], pairs.low[k] + kRoom, 0.0F);
    std::fill(pairs.high[k], pairs.high[k] + kRoom, 0.0F);
  }
  for (int64_t c = 0; c < channels; ++c, image += places, grad += row) {
    for (int64_t j = 0; j < n; j += lanes) {
      const V g = points_at(d, grad + j, n - j);
      for (int k = 0; k < pairs.count; ++k) {
        V a, b;
        gathered_pairs(d, image, pairs.place[k] + j, &a, &b);
        float* low = pairs.low[k] + j;
        float* high = pairs.high[k] + j;
        hn::StoreU(hn::MulAdd(a, g, hn::LoadU(d, low)), d, low);
        hn::StoreU(hn::MulAdd(b, g, hn::LoadU(d, high)), d, high);
      }
    }
  }
  const int per_dim = taps_of(spec), outer = spec.dims - 1;
  const auto product_of = [&](int tap, float* products) {
    const int pair = tap / 2;
    const int32_t last = static_cast<int32_t>(spec.dim[outer].size - 2);
    const int32_t* mine = pairs.lines[outer].index[tap % per_dim];
    const int32_t* other = pairs.lines[outer].index[tap % per_dim ^ 1];
    const int row_taps = tap / per_dim;
    for (int64_t j = 0; j < n; ++j) {
      const int32_t first = mine[j] < 0    ? other[j]
                            : other[j] < 0 ? mine[j]
                                           : std::min(mine[j], other[j]);
      const int32_t base = std::max(std::min(first, last), 0);
      products[j] = mine[j] < 0 ? 0.0F : mine[j] == base ? pairs.low[pair][j] : pairs.high[pair][j];
    }
    for (int i = 0; i < outer; ++i) {
      const int32_t* index = pairs.lines[i].index[part_of(row_taps, i, outer, per_dim)];
      for (int64_t j = 0; j < n; ++j) products[j] = index[j] < 0 ? 0.0F : products[j];
    }
  };
  put_slopes(spec, 2 * pairs.count, pairs.lines, n, product_of, grad_points);
}

template <class T>
void slopes(const GridSpec& spec, const T* points, int64_t n, const T* image, int64_t channels,
            int64_t places, const T* grad, int64_t row, T* grad_points) {
  if constexpr (std::is_same_v<T, float>) {
    if (reads_pairs<T>(spec)) {
      return pair_slopes(spec, points, n, image, channels, places, grad, row, grad_points);
    }
  }
  Taps<T> taps;
  fill_taps(spec, points, n, taps);
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  // The weights become the products.
  for (int k = 0; k < taps.count; ++k) std::fill(taps.weight[k], taps.weight[k] + kRoom, T(0));
  for (int64_t c = 0; c < channels; ++c, image += places, grad += row) {
    for (int64_t j = 0; j < n; j += lanes) {
      const auto g = points_at(d, grad + j, n - j);
      for (int k = 0; k < taps.count; ++k) {
        T* sum = taps.weight[k] + j;
        hn::StoreU(hn::MulAdd(gathered(d, image, taps.place[k] + j), g, hn::LoadU(d, sum)), d, sum);
      }
    }
  }
  const auto product_of = [&](int tap, T* products) {
    std::copy(taps.weight[tap], taps.weight[tap] + n, products);
  };
  put_slopes(spec, taps.count, taps.lines, n, product_of, grad_points);
}

const GridTable* grid_table() {
  static constexpr GridTable table = {{read<float>, scatter<float>, slopes<float>},
                                      {read<double>, scatter<double>, slopes<double>}};
  return &table;
}

}  // namespace
}  // namespace kiln::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kiln::cpu {
namespace {
KILN_KERNEL_TABLE(GridTable, grid_tables, grid_table)
}  // namespace
template <>
const GridKernels<float>& grid_kernels<float>() {
  return grid_tables().f32;
}
template <>
const GridKernels<double>& grid_kernels<double>() {
  return grid_tables().f64;
}
}  // namespace kiln::cpu
#endif
