// Sampling at computed points: grid_sample, affine_grid and deformable convolution.
#include <cmath>

#include "kiln/tensor/amp/op_lists.h"
#include "kiln/tensor/nn/convolution.h"
#include "kiln/tensor/nn/functional_support.h"
#include "kiln/tensor/nn/interpolate.h"

namespace kiln::functional {

using namespace detail;

namespace {

// x [N, C, spatial..] (2 or 3 spatial dims, f32 or f64) read at points [N, L, spatial] of its
// dtype, the last dim's coordinate first, -> [N, C, L].
Tensor sampled_points(const Tensor& x, const Tensor& points, const GridOptions& how) {
  constexpr const char* op = "grid_sample";
  return wrap(AD::float_grid_sample(value_of(op, x), value_of(op, points), how));
}

using Outside = GridOutside;
using Between = GridBetween;

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
  KILN_AUTOCAST(f32, grid_sample, x, grid, mode, padding_mode, align_corners);
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
  const int64_t places = s[0] == 0 ? 0 : grid.numel() / (s[0] * spatial);
  const Tensor points = grid.reshape({s[0], places, spatial}).to(wide);
  Shape out{s[0], s[1]};
  for (int i = 1; i + 1 < g.rank(); ++i) out.push_back(g[i]);
  if (out.numel() == 0) return zeros(out, {x.dtype(), x.device()});
  return sampled_points(x.to(wide), points, {outside, between, align_corners, true})
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
  Tensor read = sampled_points(frames, stack({moved(1, columns), moved(0, rows)}, -1),
                               {Outside::zeros, Between::linear, false, false});
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
