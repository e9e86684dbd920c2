#include "kiln/tensor/nn/interpolate.h"

#include <cmath>
#include <numbers>

#include "kiln/tensor/autograd/view_history.h"
#include "kiln/tensor/complex/complex_impl.h"
#include "kiln/tensor/memory_check.h"
#include "kiln/tensor/nn/functional_support.h"
#include "kiln/tensor/nn/pooling.h"
#include "kiln/tensor/nn/resampling.h"

namespace kiln::functional {

using namespace detail;

namespace {

constexpr const char* kInterpolateOp = "interpolate";

double cubic_near(double x, double a) { return ((a + 2) * x - (a + 3)) * x * x + 1; }
double cubic_far(double x, double a) { return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a; }

using Filter = double (*)(double);
double triangle(double x) { return std::max(0.0, 1.0 - std::abs(x)); }
double cubic_filter(double x) {  // Keys' kernel, as image libraries have it
  x = std::abs(x);
  return x < 1 ? cubic_near(x, -0.5) : x < 2 ? cubic_far(x, -0.5) : 0.0;
}
double sinc(double x) {
  return x == 0.0 ? 1.0 : std::sin(std::numbers::pi * x) / (std::numbers::pi * x);
}
double lanczos_filter(double x) { return std::abs(x) < 3.0 ? sinc(x) * sinc(x / 3.0) : 0.0; }

// One spatial dim: its sizes, and how far apart its outputs lie in the input.
struct Axis {
  int64_t in, out;
  std::optional<double> scale_factor;  // as given, when positions follow it
  bool align_corners;

  double step() const {
    if (align_corners) {
      return out > 1 ? static_cast<double>(in - 1) / static_cast<double>(out - 1) : 0.0;
    }
    if (scale_factor && *scale_factor > 0) return 1.0 / *scale_factor;
    return static_cast<double>(in) / static_cast<double>(out);
  }
  // The input's coordinate of an output.
  double position(int64_t o) const {
    return align_corners ? step() * static_cast<double>(o)
                         : step() * (static_cast<double>(o) + 0.5) - 0.5;
  }
  int64_t clamped(int64_t i) const { return std::clamp<int64_t>(i, 0, in - 1); }
};

// In single precision, in which PyTorch rounds these positions.
LineMap nearest(const Axis& a, bool exact) {
  LineMap map(a.in);
  const float step = a.scale_factor && *a.scale_factor > 0
                         ? static_cast<float>(1.0 / *a.scale_factor)
                         : static_cast<float>(a.in) / static_cast<float>(a.out);
  for (int64_t o = 0; o < a.out; ++o) {
    const float at = static_cast<float>(o) + (exact ? 0.5F : 0.0F);
    map.begin_output();
    map.put(a.clamped(static_cast<int64_t>(std::floor(at * step))), 1.0);
  }
  return map;
}

LineMap linear_taps(const Axis& a) {
  LineMap map(a.in);
  for (int64_t o = 0; o < a.out; ++o) {
    const double at = std::max(0.0, a.position(o));
    const int64_t first = std::min(static_cast<int64_t>(at), a.in - 1);
    const double part = std::min(1.0, at - static_cast<double>(first));
    map.begin_output();
    map.put(first, 1.0 - part);
    map.put(a.clamped(first + 1), part);
  }
  return map;
}

LineMap cubic_taps(const Axis& a) {
  LineMap map(a.in);
  for (int64_t o = 0; o < a.out; ++o) {
    const double at = a.position(o);
    const double first = std::floor(at), t = at - first;
    const double w = -0.75;
    const double weights[] = {cubic_far(t + 1, w), cubic_near(t, w), cubic_near(1 - t, w),
                              cubic_far(2 - t, w)};
    map.begin_output();
    for (int64_t k = 0; k < 4; ++k) {
      map.put(a.clamped(static_cast<int64_t>(first) + k - 1), weights[k]);
    }
  }
  return map;
}

// The six pixels around a point, whatever the sizes.
LineMap lanczos_taps(const Axis& a) {
  LineMap map(a.in);
  for (int64_t o = 0; o < a.out; ++o) {
    const double at = a.position(o);
    const auto first = static_cast<int64_t>(std::floor(at));
    double sum = 0;
    for (int64_t k = -2; k <= 3; ++k) sum += lanczos_filter(at - static_cast<double>(first + k));
    map.begin_output();
    for (int64_t k = -2; k <= 3; ++k) {
      map.put(a.clamped(first + k), lanczos_filter(at - static_cast<double>(first + k)) / sum);
    }
  }
  return map;
}

// A filter of this half width, stretched where sizes shrink.
LineMap filtered(const Axis& a, Filter filter, double half_width) {
  const double step = a.step();
  const double stretch = std::max(1.0, step);
  const double support = half_width * stretch;
  const int64_t most = static_cast<int64_t>(std::ceil(support)) * 2 + 1;
  LineMap map(a.in);
  std::vector<double> w;
  for (int64_t o = 0; o < a.out; ++o) {
    const double center = step * (static_cast<double>(o) + 0.5);
    const auto first = std::max<int64_t>(0, static_cast<int64_t>(center - support + 0.5));
    const auto end = std::min<int64_t>(a.in, static_cast<int64_t>(center + support + 0.5));
    const int64_t count = std::clamp<int64_t>(end - first, 0, most);
    double sum = 0;
    w.clear();
    for (int64_t k = 0; k < count; ++k) {
      w.push_back(filter((static_cast<double>(first + k) - center + 0.5) / stretch));
      sum += w.back();
    }
    map.begin_output();
    for (int64_t k = 0; k < count; ++k) {
      map.put(first + k, sum == 0 ? 0.0 : w[static_cast<size_t>(k)] / sum);
    }
  }
  return map;
}

void check_mode(const Tensor& x, const InterpolateOptions& o) {
  const std::string& m = o.mode;
  const int spatial = x.dim() - 2;
  const bool plain = m == "nearest" || m == "nearest-exact" || m == "area";
  const int needs = m == "linear"                                         ? 1
                    : m == "bilinear" || m == "bicubic" || m == "lanczos" ? 2
                    : m == "trilinear"                                    ? 3
                                                                          : 0;
  if (!plain && needs == 0) {
    throw_error<NotImplementedError>(
        kInterpolateOp, ": unknown mode; got '", m,
        "'; expected nearest, nearest-exact, linear, bilinear, bicubic, trilinear, lanczos or "
        "area");
  }
  if (spatial < 1 || spatial > 3 || (needs != 0 && needs != spatial)) {
    throw_error<NotImplementedError>(
        kInterpolateOp, ": mode '", m, "' does not fit the input; got ", x.shape(),
        "; expected [N, C, ..] with ", needs != 0 ? concat(needs) : "1 to 3", " spatial dims");
  }
  if (plain && o.align_corners) {
    throw_error<ValueError>(kInterpolateOp, ": align_corners has no meaning with mode '", m, "'");
  }
  if (m == "lanczos" && o.align_corners.value_or(false)) {
    throw_error<ValueError>(kInterpolateOp, ": mode 'lanczos' has no align_corners=True");
  }
  if (o.antialias && m != "bilinear" && m != "bicubic" && m != "lanczos") {
    throw_error<ValueError>(kInterpolateOp,
                            ": antialias works with bilinear, bicubic and lanczos; got '", m, "'");
  }
}

std::vector<Axis> axes_of(const Tensor& x, const InterpolateOptions& o) {
  const int spatial = x.dim() - 2;
  const auto fits = [&](size_t n) { return n == 1 || n == static_cast<size_t>(spatial); };
  if (o.size.has_value() == !o.scale_factor.empty()) {
    throw_error<ValueError>(kInterpolateOp, ": expected either size or scale_factor; got ",
                            o.size ? "both" : "neither");
  }
  if (o.size ? !fits(o.size->values().size()) : !fits(o.scale_factor.size())) {
    throw_error<ValueError>(kInterpolateOp,
                            ": size or scale_factor has the wrong length; expected one number,",
                            " or ", spatial, " of them for input ", x.shape());
  }
  if (o.recompute_scale_factor && o.size) {
    throw_error<ValueError>(kInterpolateOp,
                            ": recompute_scale_factor has no meaning with an explicit size");
  }
  std::vector<Axis> axes;
  for (int i = 0; i < spatial; ++i) {
    Axis a{x.size(2 + i), 0, {}, o.align_corners.value_or(false)};
    if (o.size) {
      const Shape& sizes = o.size->values();
      a.out = sizes[sizes.rank() == 1 ? 0 : i];
    } else {
      const double scale = o.scale_factor[o.scale_factor.size() == 1 ? 0 : static_cast<size_t>(i)];
      const double out = std::floor(static_cast<double>(a.in) * scale);
      a.out = out >= 1 && out < 0x1p31 ? static_cast<int64_t>(out) : 0;
      if (!o.recompute_scale_factor && o.mode != "area") a.scale_factor = scale;
    }
    if (a.in < 1 || a.out < 1 || a.out >= int64_t{1} << 31) {
      throw_error<ShapeError>(
          kInterpolateOp, ": input and output sizes must be at least 1 and below 2^31; got input ",
          x.shape(), " and size ", a.out, " in dim ", 2 + i);
    }
    check_memory(kInterpolateOp, Shape{a.out, 6}, f64);  // what each place is made of
    axes.push_back(a);
  }
  Shape result = {x.size(0), x.size(1)};
  for (const Axis& a : axes) result.push_back(a.out);
  check_memory(kInterpolateOp, result, f32);
  return axes;
}

LineMap map_of(const Axis& a, const InterpolateOptions& o) {
  const std::string& m = o.mode;
  if (m == "nearest" || m == "nearest-exact") return nearest(a, m == "nearest-exact");
  if (m == "bicubic") return o.antialias ? filtered(a, cubic_filter, 2.0) : cubic_taps(a);
  if (m == "lanczos") return o.antialias ? filtered(a, lanczos_filter, 3.0) : lanczos_taps(a);
  return o.antialias ? filtered(a, triangle, 1.0) : linear_taps(a);
}

}  // namespace

Tensor interpolate(const Tensor& input, const InterpolateOptions& o) {
  static_cast<void>(value_of(kInterpolateOp, input));
  check_mode(input, o);
  const std::vector<Axis> axes = axes_of(input, o);
  const bool picks = o.mode == "nearest" || o.mode == "nearest-exact";
  const DType dtype = input.dtype();
  if (!picks && dtype == u8) {
    return interpolate(input.to(f32), o).round().clamp(0.0, 255.0).to(u8);
  }
  if (!picks) require_floating(kInterpolateOp, input);
  if (o.mode == "area") {
    Shape size;
    for (const Axis& a : axes) size.push_back(a.out);
    if (size.rank() == 1) return adaptive_avg_pool1d(input, size);
    return size.rank() == 2 ? adaptive_avg_pool2d(input, size) : adaptive_avg_pool3d(input, size);
  }
  Tensor x = picks ? input : input.to(wide_dtype(dtype));
  std::vector<size_t> order;
  for (size_t i = axes.size(); i-- > 0;) {
    const bool same =
        axes[i].in == axes[i].out && (!axes[i].scale_factor || *axes[i].scale_factor == 1.0);
    if (!same) order.push_back(i);
  }
  // What shrinks most goes first; of dims alike, the last.
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return axes[a].out * axes[b].in < axes[b].out * axes[a].in;
  });
  std::vector<DimMap> maps;
  for (const size_t i : order) maps.push_back({static_cast<int>(i) + 2, map_of(axes[i], o)});
  if (!maps.empty()) x = resampled(x, std::move(maps));
  if (x.is_same(input)) return input.clone();
  return x.to(dtype);
}

// ---- Channels and pixels

Tensor pixel_shuffle(const Tensor& x, int64_t r) {
  constexpr const char* op = "pixel_shuffle";
  const Shape s = impl_of(op, x).shape();
  const int n = s.rank();
  if (r < 1 || r >= int64_t{1} << 31) {
    throw_error<ValueError>(op, ": expected upscale_factor >= 1; got ", r);
  }
  if (n < 3 || s[n - 3] % (r * r) != 0) {
    throw_error<ShapeError>(op, ": expected [.., C * ", r * r, ", H, W]; got ", s);
  }
  Shape out = s;
  out[n - 3] /= r * r;
  out[n - 2] *= r;
  out[n - 1] *= r;
  if (s.numel() == 0) return own_memory(x, x.reshape(out));
  const Tensor parts = x.reshape({-1, s[n - 3] / (r * r), r, r, s[n - 2], s[n - 1]});
  return own_memory(x, parts.permute({0, 1, 4, 2, 5, 3}).reshape(out));
}

Tensor pixel_unshuffle(const Tensor& x, int64_t r) {
  constexpr const char* op = "pixel_unshuffle";
  const Shape s = impl_of(op, x).shape();
  const int n = s.rank();
  if (r < 1 || r >= int64_t{1} << 31) {
    throw_error<ValueError>(op, ": expected downscale_factor >= 1; got ", r);
  }
  if (n < 3 || s[n - 2] % r != 0 || s[n - 1] % r != 0) {
    throw_error<ShapeError>(op, ": expected [.., C, H, W] with H and W divisible by ", r, "; got ",
                            s);
  }
  Shape out = s;
  out[n - 3] *= r * r;
  out[n - 2] /= r;
  out[n - 1] /= r;
  if (s.numel() == 0) return own_memory(x, x.reshape(out));
  const Tensor parts = x.reshape({-1, s[n - 3], s[n - 2] / r, r, s[n - 1] / r, r});
  return own_memory(x, parts.permute({0, 1, 3, 5, 2, 4}).reshape(out));
}

Tensor channel_shuffle(const Tensor& x, int64_t groups) {
  constexpr const char* op = "channel_shuffle";
  const Shape s = impl_of(op, x).shape();
  if (s.rank() < 3 || groups < 1 || s[1] % groups != 0) {
    throw_error<ShapeError>(op, ": expected [N, C, ..] with C divisible by groups; got ", s,
                            " and groups ", groups);
  }
  if (s.numel() == 0) return x.clone();
  const Tensor parts = x.reshape({s[0], groups, s[1] / groups, -1});
  return own_memory(x, parts.transpose(1, 2).reshape(s));
}

}  // namespace kiln::functional
