// Resize: each dim by itself.
#include <algorithm>
#include <cmath>

#include "kiln/onnx/read/call.h"

namespace kiln::onnx {

namespace {

constexpr double kMostElements = 1 << 24;  // along one dim

double cubic_weight(double d, double a) {
  d = std::abs(d);
  if (d <= 1) return ((a + 2) * d - (a + 3)) * d * d + 1;
  return d < 2 ? ((d - 5) * d + 8) * d * a - 4 * a : 0;
}

// One of the four elements that cubic interpolation reads for each place, and how it counts.
struct CubicTap {
  std::vector<int64_t> at;
  std::vector<double> weight;
};
// exclude: what lies outside does not count; else it is the element at the edge.
std::vector<CubicTap> cubic_taps(const std::vector<double>& places, int64_t n, double a,
                                 bool exclude) {
  std::vector<CubicTap> taps(4);
  for (const double p : places) {
    const double floor = std::floor(p), t = p - floor;
    double weight[4], sum = 0;
    for (int k = 0; k < 4; ++k) {
      weight[k] = cubic_weight(t + 1 - k, a);
      const double at = floor - 1 + k;
      if (exclude && (at < 0 || at >= static_cast<double>(n))) weight[k] = 0;
      sum += weight[k];
    }
    for (int k = 0; k < 4; ++k) {
      CubicTap& tap = taps[static_cast<size_t>(k)];
      const auto at = static_cast<int64_t>(floor) - 1 + k;
      tap.at.push_back(std::clamp(at, int64_t{0}, n - 1));
      tap.weight.push_back(exclude ? weight[k] / sum : weight[k]);
    }
  }
  return taps;
}

// What one dim becomes; of which part of it, as a share, where it is cropped.
struct Target {
  int64_t dim = 0, size = 0;
  double scale = 1, begin = 0, end = 1;
};

// The weight of each element (column) in each result (row) when a filter of the size of a result
// goes over them, so that what is smaller than it does not alias.
std::vector<double> antialias_matrix(Call& c, const std::vector<double>& places, double given,
                                     int64_t n) {
  const bool cubic = c.s("mode", "nearest") == "cubic", exclude = c.i("exclude_outside", 0) != 0;
  const double scale = std::min(given, 1.0), a = c.f("cubic_coeff_a", -0.75);
  const double reach = (cubic ? 2.0 : 1.0) / scale;
  const auto rows = static_cast<int64_t>(places.size());
  if (rows * n > (1 << 26) || !(reach < (1 << 20)) || static_cast<double>(rows) * reach > 1 << 26) {
    c.refuse("an antialiased dim of so many elements");
  }
  const auto first = static_cast<int64_t>(std::floor(-reach)) + 1;
  std::vector<double> out(static_cast<size_t>(rows * n), 0.0);
  for (int64_t row = 0; row < rows; ++row) {
    const double p = places[static_cast<size_t>(row)], base = std::ceil(p) - 1;
    const auto weight = [&](int64_t i) {
      const double d = (static_cast<double>(i) - (p - base)) * scale;
      const auto at = base + static_cast<double>(i);
      if (exclude && (at < 0 || at >= static_cast<double>(n))) return 0.0;
      return cubic ? cubic_weight(d, a) : std::max(0.0, 1 - std::abs(d));
    };
    double sum = 0;
    for (int64_t i = first; i < 2 - first; ++i) sum += weight(i);
    for (int64_t i = first; i < 2 - first; ++i) {
      const int64_t at = std::clamp(static_cast<int64_t>(base) + i, int64_t{0}, n - 1);
      out[static_cast<size_t>(row * n + at)] += weight(i) / sum;
    }
  }
  return out;
}

int64_t checked_size(Call& c, double size) {
  if (!(size >= 0 && size <= kMostElements)) c.fail(concat("got the size ", size));
  return static_cast<int64_t>(size);
}

// By sizes, or by scales, which older operator sets have elsewhere.
std::vector<Target> targets_of(Call& c, const Tensor& x) {
  std::vector<int64_t> axes = c.ints("axes");
  if (axes.empty()) {
    for (int64_t d = 0; d < x.dim(); ++d) axes.push_back(d);
  }
  std::vector<int64_t> sizes;
  std::vector<double> scales;
  if (c.has(3) && c.in(3).numel() != 0) {
    sizes = c.integers(3);
  } else if (const auto* a = c.attribute("scales")) {
    scales.assign(a->floats.begin(), a->floats.end());
  } else {
    scales = c.numbers(c.version() < 11 ? 1 : 2);
  }
  if (std::max(sizes.size(), scales.size()) != axes.size()) c.fail("expected a size for each axis");
  std::vector<Target> out;
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t dim = c.axis(axes[i], x.dim());
    const auto n = static_cast<double>(x.size(dim));
    const double scale = sizes.empty() ? scales[i] : static_cast<double>(sizes[i]) / n;
    const double size = sizes.empty() ? std::floor(n * scale) : static_cast<double>(sizes[i]);
    out.push_back({dim, checked_size(c, size), scale});
    if (c.s("coordinate_transformation_mode", "half_pixel") == "tf_crop_and_resize") {
      const std::vector<double> region =
          c.numbers(1);  // where it begins on each axis, where it ends
      if (region.size() != 2 * axes.size())
        c.fail("expected two numbers of a region for each axis");
      out.back().begin = region[i];
      out.back().end = region[i + axes.size()];
    }
  }
  const std::string policy = c.s("keep_aspect_ratio_policy", "stretch");
  if (sizes.empty() || policy == "stretch") return out;
  const auto by_scale = [](const Target& a, const Target& b) { return a.scale < b.scale; };
  const double scale = policy == "not_larger"
                           ? std::min_element(out.begin(), out.end(), by_scale)->scale
                           : std::max_element(out.begin(), out.end(), by_scale)->scale;
  for (Target& t : out) {
    const double size = std::floor(scale * static_cast<double>(x.size(t.dim)) + 0.5);
    t = {t.dim, checked_size(c, size), scale, t.begin, t.end};
  }
  return out;
}

// Where among n elements the elements of a result read, by coordinate_transformation_mode.
std::vector<double> places_of(const std::string& mode, const Target& t, int64_t n) {
  const double wanted = static_cast<double>(n) * t.scale;  // not rounded
  std::vector<double> out;
  for (int64_t o = 0; o < t.size; ++o) {
    const auto at = static_cast<double>(o);
    double p = (at + 0.5) / t.scale - 0.5;
    if (mode == "asymmetric") p = at / t.scale;
    if (mode == "pytorch_half_pixel" && t.size == 1) p = 0.0;
    if (mode == "align_corners") {
      p = t.size == 1 ? 0.0 : at * static_cast<double>(n - 1) / (wanted - 1);
    }
    if (mode == "tf_crop_and_resize") {
      const auto last = static_cast<double>(n - 1);
      p = t.begin * last + (t.size == 1 ? (t.end - t.begin) * last / 2
                                        : at * (t.end - t.begin) * last / (wanted - 1));
      if (!(std::abs(p) <= kMostElements)) p = -kMostElements;  // it is outside
    }
    if (mode == "half_pixel_symmetric") {
      p += static_cast<double>(n) / 2 * (1 - static_cast<double>(t.size) / wanted);
    }
    out.push_back(p);
  }
  return out;
}

double rounded(const std::string& mode, double p) {
  if (mode == "floor") return std::floor(p);
  if (mode == "ceil") return std::ceil(p);
  return mode == "round_prefer_floor" ? std::ceil(p - 0.5) : std::floor(p + 0.5);
}

void resize(Call& c) {
  Tensor x = c.in(0);
  const bool upsample = c.version() < 11;
  const std::string mode = c.s("mode", "nearest");
  const std::string place =
      upsample ? "asymmetric" : c.s("coordinate_transformation_mode", "half_pixel");
  const std::string nearest = upsample ? "floor" : c.s("nearest_mode", "round_prefer_floor");
  const bool cubic = mode == "cubic", exclude = c.i("exclude_outside", 0) != 0;
  const bool antialias = c.i("antialias", 0) != 0 && mode != "nearest";
  const bool crop = place == "tf_crop_and_resize";
  if (exclude && !cubic && !antialias) c.refuse("exclude_outside without cubic interpolation");
  for (const Target& t : targets_of(c, x)) {
    const int64_t n = x.size(t.dim);
    if (n == 0 || !(t.scale > 0)) c.fail(concat("got the size ", t.size));
    if (t.size == n && t.scale == 1.0 && !crop) continue;
    const std::vector<double> places = places_of(place, t, n);
    const auto rows = [&](const std::vector<int64_t>& index) {
      return x.index_select(t.dim, Tensor(TensorData(index, {t.size})));
    };
    Shape along = Shape::filled(static_cast<int>(x.dim()), 1);
    along[static_cast<int>(t.dim)] = t.size;
    const auto weights = [&](const std::vector<double>& by) {
      return Tensor(TensorData(by, {t.size}).cast(x.dtype())).reshape(along);
    };
    // What lies outside of the input has a value of its own, where a region is cut out.
    const auto with_outside = [&](const Tensor& y) {
      std::vector<int64_t> inside;
      for (const double p : places) inside.push_back(p >= 0 && p <= static_cast<double>(n - 1));
      const Tensor is_inside = Tensor(TensorData(inside, {t.size})).ne(0).reshape(along);
      return kiln::where(is_inside, y, full_like(y, c.f("extrapolation_value", 0.0)));
    };
    if (antialias) {
      const TensorData by(antialias_matrix(c, places, t.scale, n), {t.size, n});
      const Tensor moved = x.transpose(t.dim, -1);
      x = moved.matmul(Tensor(by.cast(x.dtype())).t()).transpose(t.dim, -1);
      if (crop) x = with_outside(x);
      continue;
    }
    if (cubic) {
      Tensor sum;
      for (const CubicTap& tap : cubic_taps(places, n, c.f("cubic_coeff_a", -0.75), exclude)) {
        const Tensor part = rows(tap.at).mul(weights(tap.weight));
        sum = sum.defined() ? sum.add(part) : part;
      }
      x = crop ? with_outside(sum) : sum;
      continue;
    }
    std::vector<int64_t> low, high;
    std::vector<double> share;
    for (const double exact : places) {
      const double p = mode == "nearest" ? rounded(nearest, exact) : exact;
      const auto floor = static_cast<int64_t>(std::floor(p));
      low.push_back(std::clamp(floor, int64_t{0}, n - 1));
      high.push_back(std::clamp(floor + 1, int64_t{0}, n - 1));
      share.push_back(p - std::floor(p));
    }
    if (mode == "nearest") {
      x = rows(low);
    } else {
      const Tensor a = rows(low), b = rows(high);
      x = a.add(b.sub(a).mul(weights(share)));
    }
    if (crop) x = with_outside(x);
  }
  c.out(x);
}

constexpr Operator kResizeOperators[] = {{"Resize", resize}, {"Upsample", resize}};

}  // namespace

std::span<const Operator> resize_operators() { return kResizeOperators; }

}  // namespace kiln::onnx
