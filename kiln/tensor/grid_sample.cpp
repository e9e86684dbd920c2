// Sampling at computed points: grid_sample, affine_grid and deformable convolution.
#include <cmath>

#include "kiln/tensor/convolution.h"
#include "kiln/tensor/functional_support.h"
#include "kiln/tensor/interpolate.h"

namespace kiln::functional {

using namespace detail;

namespace {

enum class Outside : uint8_t { zeros, border, reflection };
enum class Between : uint8_t { nearest, linear, cubic };

// One element that a point reads along one dim: its index, and its weight (undefined: 1).
struct Tap {
  Tensor index;
  Tensor weight;
};

// How points [N, L] along one dim of `size` elements read it.
struct Reader {
  int64_t size;
  Outside outside;
  Between between;
  bool align_corners;

  // Mirrored at both ends until it lies inside.
  Tensor reflected(const Tensor& at) const {
    // The mirrors stand at `low` and low + span: pixel centers, or the outer edges of pixels.
    const double low = align_corners ? 0.0 : -0.5;
    const double span = static_cast<double>(align_corners ? size - 1 : size);
    if (span == 0.0) return at * 0.0;
    const Tensor distance = (at - low).abs();
    const Tensor flips = kiln::floor(distance / span).detach();
    const Tensor extra = distance - flips * span;
    const Tensor odd = (flips - kiln::floor(flips / 2.0) * 2.0).gt(0.5);
    return where(odd, span - extra, extra) + low;
  }
  Tensor limited(const Tensor& at) const { return at.clamp(0.0, static_cast<double>(size - 1)); }
  // The coordinate of an element that is read, moved inside. With zeros there is one element of 0
  // at each end, which everything outside comes to lie on.
  Tensor inside(const Tensor& at) const {
    if (outside == Outside::zeros) return at.clamp(-1.0, static_cast<double>(size)) + 1.0;
    return limited(outside == Outside::reflection ? reflected(at) : at);
  }
  Tensor index_of(const Tensor& at) const { return inside(at.detach()).to(i64); }
  int64_t padded_size() const { return outside == Outside::zeros ? size + 2 : size; }

  std::vector<Tap> taps(Tensor at) const {
    // Far outside (or nowhere) is as good as just outside, and stays a number.
    at = at.masked_fill(at.isnan(), -4.0);
    if (between != Between::cubic) {
      if (outside == Outside::reflection) at = limited(reflected(at));
      if (outside == Outside::border) at = limited(at);
    }
    at = at.clamp(outside == Outside::zeros ? -4.0 : -1e9,
                  outside == Outside::zeros ? static_cast<double>(size) + 3.0 : 1e9);
    if (between == Between::nearest) return {{index_of(at.detach().round()), {}}};
    const Tensor first = kiln::floor(at.detach());
    const Tensor t = at - first;
    if (between == Between::linear) {
      return {{index_of(first), 1.0 - t}, {index_of(first + 1.0), t}};
    }
    constexpr double a = -0.75;
    const auto near = [&](const Tensor& x) { return ((a + 2) * x - (a + 3)) * x * x + 1.0; };
    const auto far = [&](const Tensor& x) { return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a; };
    return {{index_of(first - 1.0), far(t + 1.0)},
            {index_of(first), near(t)},
            {index_of(first + 1.0), near(1.0 - t)},
            {index_of(first + 2.0), far(2.0 - t)}};
  }
};

// x [N, C, spatial..] read at points whose coordinates are given for each spatial dim, each [N, L]
// -> [N, C, L].
Tensor sampled(const Tensor& x, const std::vector<Tensor>& points, Outside outside, Between between,
               bool align_corners) {
  const Shape s = x.shape();
  Tensor padded = x;
  std::vector<std::vector<Tap>> taps;
  std::vector<int64_t> sizes;
  for (size_t i = 0; i < points.size(); ++i) {
    const int dim = static_cast<int>(i) + 2;
    const Reader reader{s[dim], outside, between, align_corners};
    taps.push_back(reader.taps(points[i]));
    sizes.push_back(reader.padded_size());
    if (outside == Outside::zeros) padded = padded_dim(padded, dim, 1, 1);
  }
  // A row of channels for each element of each image, so that a point reads rows.
  const int64_t count = points[0].size(1);
  const Tensor flat = padded.reshape({s[0], s[1], -1}).transpose(1, 2).reshape({-1, s[1]});
  const int64_t places = s[0] == 0 ? 0 : flat.size(0) / s[0];
  const Tensor first_row = arange(s[0], {i64, x.device()}).unsqueeze(1) * places;
  Tensor sum;
  // Every combination of the dims' taps.
  std::vector<size_t> chosen(taps.size(), 0);
  for (bool more = true; more;) {
    Tensor index, weight;
    for (size_t i = 0; i < taps.size(); ++i) {
      const Tap& tap = taps[i][chosen[i]];
      index = i == 0 ? tap.index : index * sizes[i] + tap.index;
      if (tap.weight.defined()) weight = weight.defined() ? weight * tap.weight : tap.weight;
    }
    Tensor part = flat.index_select(0, (index + first_row).reshape({-1}));
    if (weight.defined()) part = std::move(part) * weight.reshape({-1, 1});
    sum = sum.defined() ? std::move(sum) + std::move(part) : std::move(part);
    more = false;
    for (size_t i = taps.size(); i-- > 0;) {
      if (++chosen[i] < taps[i].size()) {
        more = true;
        break;
      }
      chosen[i] = 0;
    }
  }
  return sum.reshape({s[0], count, s[1]}).transpose(1, 2).contiguous();
}

// From [-1, 1] to elements.
Tensor in_elements(const Tensor& at, int64_t size, bool align_corners) {
  const auto n = static_cast<double>(size);
  if (align_corners) return (at + 1.0) * ((n - 1.0) / 2.0);
  return ((at + 1.0) * n - 1.0) / 2.0;
}

Outside outside_of(const char* op, const std::string& name) {
  if (name == "zeros") return Outside::zeros;
  if (name == "border") return Outside::border;
  if (name == "reflection") return Outside::reflection;
  throw_error<ValueError>(op, ": unknown padding_mode; got '", name,
                          "'; expected zeros, border or reflection");
}
Between between_of(const char* op, const std::string& name) {
  if (name == "nearest") return Between::nearest;
  if (name == "bilinear") return Between::linear;
  if (name == "bicubic") return Between::cubic;
  throw_error<ValueError>(op, ": unknown mode; got '", name,
                          "'; expected bilinear, nearest or bicubic");
}

}  // namespace

Tensor grid_sample(const Tensor& x, const Tensor& grid, const std::string& mode,
                   const std::string& padding_mode, bool align_corners) {
  constexpr const char* op = "grid_sample";
  require_alike(op, x, grid, "grid");
  const Shape s = x.shape(), g = grid.shape();
  const int spatial = s.rank() - 2;
  bool fits =
      (spatial == 2 || spatial == 3) && g.rank() == s.rank() && g[0] == s[0] && g.back() == spatial;
  for (int i = 0; fits && i < spatial; ++i) fits = s[2 + i] > 0;
  if (!fits) {
    throw_error<ShapeError>(op, ": input and grid do not fit; got ", s, " and ", g,
                            "; expected [N, C, H, W] and [N, OH, OW, 2], or [N, C, D, H, W] and "
                            "[N, OD, OH, OW, 3], with no empty spatial dim");
  }
  const Outside outside = outside_of(op, padding_mode);
  const Between between = between_of(op, mode);
  if (between == Between::cubic && spatial == 3) {
    throw_error<ValueError>(op, ": mode 'bicubic' needs 4 dims; got ", s);
  }
  const DType wide = wide_dtype(x.dtype());
  const Tensor points = grid.reshape({s[0], -1, spatial}).to(wide);
  std::vector<Tensor> coordinates;  // the grid has x first, and the input has it last
  for (int i = 0; i < spatial; ++i) {
    coordinates.push_back(in_elements(points.select(2, spatial - 1 - i), s[2 + i], align_corners));
  }
  Shape out{s[0], s[1]};
  for (int i = 1; i + 1 < g.rank(); ++i) out.push_back(g[i]);
  if (out.numel() == 0) return zeros(out, {x.dtype(), x.device()});
  return sampled(x.to(wide), coordinates, outside, between, align_corners)
      .to(x.dtype())
      .reshape(out);
}

Tensor affine_grid(const Tensor& theta, const Shape& size, bool align_corners) {
  constexpr const char* op = "affine_grid";
  require_floating(op, theta);
  const int spatial = size.rank() - 2;
  const bool known = spatial == 2 || spatial == 3;
  if (!known || !(theta.shape() == Shape{size[0], spatial, spatial + 1})) {
    throw_error<ShapeError>(op, ": theta and size do not fit; got ", theta.shape(), " and ", size,
                            "; expected [N, 2, 3] and {N, C, H, W}, or [N, 3, 4] and {N, C, D, H, "
                            "W}");
  }
  for (const int64_t n : size) {
    if (n < 1) throw_error<ValueError>(op, ": sizes must be positive; got ", size);
  }
  checked_numel(op, size);
  Shape space;
  for (int i = 0; i < spatial; ++i) space.push_back(size[2 + i]);
  Shape one = space;
  one.push_back(1);
  std::vector<Tensor> base;  // x, y, (z), 1
  for (int i = spatial - 1; i >= 0; --i) {
    const auto n = static_cast<double>(space[i]);
    const double edge = n <= 1 ? 0.0 : align_corners ? 1.0 : (n - 1.0) / n;
    const Tensor line = linspace(-edge, edge, space[i], {theta.dtype(), theta.device()});
    base.push_back(line.reshape(shape_along(spatial + 1, i, space[i])).expand(one));
  }
  base.push_back(ones(one, {theta.dtype(), theta.device()}));
  const Tensor points = cat(std::span<const Tensor>(base), spatial).reshape({-1, spatial + 1});
  Shape out{size[0]};
  for (const int64_t n : space) out.push_back(n);
  out.push_back(spatial);
  return points.unsqueeze(0)
      .expand({size[0], points.size(0), spatial + 1})
      .matmul(theta.transpose(1, 2))
      .reshape(out);
}

Tensor deform_conv2d(const Tensor& x, const Tensor& offset, const Tensor& weight,
                     const Tensor& bias, const Sizes& strides, const Sizes& paddings,
                     const Sizes& dilations, const Tensor& mask) {
  constexpr const char* op = "deform_conv2d";
  require_alike(op, x, offset, "offset");
  require_alike(op, x, weight, "weight");
  const Triple stride = triple_of(op, "stride", strides, 2, 1, 1);
  const Triple padding = triple_of(op, "padding", paddings, 2, 0, 0);
  const Triple dilation = triple_of(op, "dilation", dilations, 2, 1, 1);
  const Shape s = x.shape(), w = weight.shape(), o = offset.shape();
  if (s.rank() != 4 || w.rank() != 4 || o.rank() != 4 || w.numel() == 0 || s[1] % w[1] != 0 ||
      w[0] % (s[1] / w[1]) != 0) {
    throw_error<ShapeError>(op, ": the operands do not fit; got input ", s, ", offset ", o,
                            ", weight ", w,
                            "; expected [N, C, H, W], [N, 2 G KH KW, OH, OW] and [O, C / groups, "
                            "KH, KW]");
  }
  const int64_t height = conv_output_size(s[2], w[2], stride[1], padding[1], dilation[1]);
  const int64_t width = conv_output_size(s[3], w[3], stride[2], padding[2], dilation[2]);
  const int64_t area = w[2] * w[3];
  const int64_t offset_groups = o[1] / (2 * area);
  if (height < 1 || width < 1 || o[1] != offset_groups * 2 * area || offset_groups < 1 ||
      s[1] % offset_groups != 0 || !(o == Shape{s[0], o[1], height, width})) {
    throw_error<ShapeError>(op, ": the offset does not fit; got ", o, " for input ", s,
                            " and weight ", w, "; expected [", s[0], ", 2 G * ", area, ", ", height,
                            ", ", width, "] with C divisible by G");
  }
  require_param(op, x, bias, "bias", Shape{w[0]});
  require_param(op, x, mask, "mask", Shape{s[0], offset_groups * area, height, width});

  // Where each element of the kernel stands for each output: [KH KW, OH, OW].
  std::vector<double> rows, columns;
  for (int64_t i = 0; i < w[2]; ++i)
    for (int64_t j = 0; j < w[3]; ++j)
      for (int64_t y = 0; y < height; ++y)
        for (int64_t c = 0; c < width; ++c) {
          rows.push_back(static_cast<double>(y * stride[1] - padding[1] + i * dilation[1]));
          columns.push_back(static_cast<double>(c * stride[2] - padding[2] + j * dilation[2]));
        }
  const int64_t places = height * width;
  const DType wide = wide_dtype(x.dtype());
  const Tensor frames =
      x.to(wide).reshape({s[0] * offset_groups, s[1] / offset_groups, s[2], s[3]});
  const Tensor moves = offset.to(wide).reshape({s[0] * offset_groups, area, 2, places});
  const auto moved = [&](int64_t which, const std::vector<double>& from) {
    return (moves.select(2, which) + beside(frames, from, {1, area, places}))
        .reshape({s[0] * offset_groups, area * places});
  };
  Tensor read =
      sampled(frames, {moved(0, rows), moved(1, columns)}, Outside::zeros, Between::linear, false);
  if (mask.defined()) {
    read = read * mask.to(wide).reshape({s[0] * offset_groups, 1, area * places});
  }
  const int64_t groups = s[1] / w[1];
  const Tensor met = read.reshape({s[0], groups, w[1] * area, places});
  const Tensor kernel = weight.to(wide).reshape({1, groups, w[0] / groups, w[1] * area});
  Tensor out = kernel.matmul(met).reshape({s[0], w[0], height, width});
  if (bias.defined()) out = out + bias.to(wide).reshape({w[0], 1, 1});
  return out.to(x.dtype());
}

}  // namespace kiln::functional
