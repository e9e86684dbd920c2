#include "kiln/vision/transform.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "kiln/core/error.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/linalg/linalg.h"
#include "kiln/tensor/nn/interpolate.h"
#include "kiln/tensor/ops.h"
#include "kiln/vision/border.h"

namespace kiln::vision {

namespace {

constexpr int64_t kLargestSide = int64_t{1} << 24;

double radians(double degrees) { return degrees * std::numbers::pi / 180.0; }

Transform2D around(const std::array<double, 2>& center, const Transform2D& t) {
  return Transform2D::translation(-center[0], -center[1])
      .then(t)
      .then(Transform2D::translation(center[0], center[1]));
}

std::array<double, 2> middle_of(const char* op, const Tensor& x) {
  detail::require_image(op, x);
  return {static_cast<double>(x.size(-1) - 1) / 2, static_cast<double>(x.size(-2) - 1) / 2};
}

double determinant(const std::array<double, 9>& m) {
  return m[0] * (m[4] * m[8] - m[5] * m[7]) - m[1] * (m[3] * m[8] - m[5] * m[6]) +
         m[2] * (m[3] * m[7] - m[4] * m[6]);
}

}  // namespace

Transform2D::Transform2D() : rows_{1, 0, 0, 0, 1, 0, 0, 0, 1} {}

Transform2D Transform2D::translation(double dx, double dy) {
  return Transform2D({1, 0, dx, 0, 1, dy, 0, 0, 1});
}

Transform2D Transform2D::rotation(double degrees, std::array<double, 2> center) {
  // Rows count downwards, so that a turn to the left has the signs of one to the right.
  const double c = std::cos(radians(degrees)), s = std::sin(radians(degrees));
  return around(center, Transform2D({c, s, 0, -s, c, 0, 0, 0, 1}));
}

Transform2D Transform2D::scaling(double sx, double sy, std::array<double, 2> center) {
  return around(center, Transform2D({sx, 0, 0, 0, sy, 0, 0, 0, 1}));
}

Transform2D Transform2D::shearing(double degrees_x, double degrees_y,
                                  std::array<double, 2> center) {
  return around(center, Transform2D({1, std::tan(radians(degrees_x)), 0,
                                     std::tan(radians(degrees_y)), 1, 0, 0, 0, 1}));
}

Transform2D Transform2D::perspective(const std::array<std::array<double, 2>, 4>& from,
                                     const std::array<std::array<double, 2>, 4>& to) {
  for (const auto* points : {&from, &to}) {
    for (size_t skip = 0; skip < 4; ++skip) {
      const auto& a = (*points)[(skip + 1) % 4];
      const auto& b = (*points)[(skip + 2) % 4];
      const auto& c = (*points)[(skip + 3) % 4];
      const double area = (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]);
      if (!(std::abs(area) > 1e-12) || !std::isfinite(area)) {
        throw_error<ValueError>("perspective: no three of the points may lie on a line");
      }
    }
  }
  // u (g x + h y + 1) = a x + b y + c, and likewise v: two equations for each point.
  std::vector<double> a, b;
  for (size_t i = 0; i < 4; ++i) {
    const double x = from[i][0], y = from[i][1], u = to[i][0], v = to[i][1];
    for (const double value : {x, y, 1.0, 0.0, 0.0, 0.0, -u * x, -u * y}) a.push_back(value);
    for (const double value : {0.0, 0.0, 0.0, x, y, 1.0, -v * x, -v * y}) a.push_back(value);
    b.push_back(u);
    b.push_back(v);
  }
  const auto solved =
      linalg::solve(from_vector(a, {8, 8}), from_vector(b, {8, 1})).to_vector<double>();
  std::array<double, 9> rows{};
  std::copy(solved.begin(), solved.end(), rows.begin());
  rows[8] = 1;
  return Transform2D(rows);
}

Transform2D Transform2D::then(const Transform2D& other) const {
  std::array<double, 9> out{};
  for (size_t r = 0; r < 3; ++r) {
    for (size_t c = 0; c < 3; ++c) {
      for (size_t k = 0; k < 3; ++k) out[3 * r + c] += other.rows_[3 * r + k] * rows_[3 * k + c];
    }
  }
  return Transform2D(out);
}

Transform2D Transform2D::inverse() const {
  const auto& m = rows_;
  const double d = determinant(m);
  if (d == 0 || !std::isfinite(d)) {
    throw_error<ValueError>("Transform2D: has no inverse; its determinant is ", d);
  }
  return Transform2D({(m[4] * m[8] - m[5] * m[7]) / d, (m[2] * m[7] - m[1] * m[8]) / d,
                      (m[1] * m[5] - m[2] * m[4]) / d, (m[5] * m[6] - m[3] * m[8]) / d,
                      (m[0] * m[8] - m[2] * m[6]) / d, (m[2] * m[3] - m[0] * m[5]) / d,
                      (m[3] * m[7] - m[4] * m[6]) / d, (m[1] * m[6] - m[0] * m[7]) / d,
                      (m[0] * m[4] - m[1] * m[3]) / d});
}

std::array<double, 2> Transform2D::operator()(double x, double y) const {
  const auto& m = rows_;
  const double w = m[6] * x + m[7] * y + m[8];
  return {(m[0] * x + m[1] * y + m[2]) / w, (m[3] * x + m[4] * y + m[5]) / w};
}

Tensor warp(const Tensor& x, const Transform2D& transform, const WarpOptions& options) {
  transform.inverse();  // throws where there is none
  const auto& rows = transform.rows();
  return warp(x, from_vector(std::vector<double>(rows.begin(), rows.end()), {3, 3}), options);
}

Tensor warp(const Tensor& x, const Tensor& transform, const WarpOptions& options) {
  constexpr const char* op = "warp";
  detail::require_float_image(op, x);
  if (transform.shape() != Shape{3, 3}) {
    throw_error<ShapeError>(op, ": a transform is [3, 3]; got ", transform.shape());
  }
  const int64_t height = x.size(-2), width = x.size(-1);
  const auto [rows, columns] = options.size.value_or(std::array<int64_t, 2>{height, width});
  if (rows < 1 || columns < 1 || rows > kLargestSide || columns > kLargestSide) {
    throw_error<ValueError>(op, ": sizes must be from 1 to 2^24; got ", rows, " and ", columns);
  }
  // Where each pixel of the result comes from, in double precision.
  const Device device = x.device();
  const Tensor back = linalg::inv(transform.to(device, f64));
  const TensorOptions precise{f64, device};
  const Tensor ys = arange(0, rows, 1, precise).reshape({rows, 1}).expand({rows, columns});
  const Tensor xs = arange(0, columns, 1, precise).reshape({1, columns}).expand({rows, columns});
  const auto map = [&](int64_t row) {
    const Tensor m = back.select(0, row);
    return xs * m.select(0, 0) + ys * m.select(0, 1) + m.select(0, 2);
  };
  const Tensor w = map(2);
  // As grid_sample has it: -1 and 1 are the outer edges.
  const auto place = [](const Tensor& p, int64_t n) {
    return (p * 2.0 + 1.0) / static_cast<double>(n) - 1.0;
  };
  const Tensor grid = stack({place(map(0) / w, width), place(map(1) / w, height)}, -1);
  const Tensor planes = x.reshape({1, -1, height, width});
  const Tensor out = functional::grid_sample(planes, grid.unsqueeze(0).to(x.dtype()), options.mode,
                                             options.padding_mode, false);
  Shape shape = x.shape();
  shape[x.dim() - 2] = rows;
  shape[x.dim() - 1] = columns;
  return out.reshape(shape);
}

Tensor rotate(const Tensor& x, double degrees, const WarpOptions& options) {
  return warp(x, Transform2D::rotation(degrees, middle_of("rotate", x)), options);
}

Tensor scale(const Tensor& x, double sx, double sy, const WarpOptions& options) {
  return warp(x, Transform2D::scaling(sx, sy, middle_of("scale", x)), options);
}

Tensor shear(const Tensor& x, double degrees_x, double degrees_y, const WarpOptions& options) {
  return warp(x, Transform2D::shearing(degrees_x, degrees_y, middle_of("shear", x)), options);
}

Tensor translate(const Tensor& x, double dx, double dy, const WarpOptions& options) {
  return warp(x, Transform2D::translation(dx, dy), options);
}

Tensor resize(const Tensor& x, int64_t rows, int64_t columns, const std::string& mode,
              bool antialias) {
  detail::require_image("resize", x);
  functional::InterpolateOptions options;
  options.size = Shape{rows, columns};
  options.mode = mode;
  options.antialias = antialias && mode != "nearest" && mode != "nearest-exact" && mode != "area";
  const Tensor planes = x.reshape({-1, 1, x.size(-2), x.size(-1)});
  Shape shape = x.shape();
  shape[x.dim() - 2] = rows;
  shape[x.dim() - 1] = columns;
  return functional::interpolate(planes, options).reshape(shape);
}

Tensor hflip(const Tensor& x) {
  detail::require_image("hflip", x);
  return x.flip({-1});
}

Tensor vflip(const Tensor& x) {
  detail::require_image("vflip", x);
  return x.flip({-2});
}

Tensor crop(const Tensor& x, int64_t top, int64_t left, int64_t rows, int64_t columns) {
  detail::require_image("crop", x);
  const int64_t height = x.size(-2), width = x.size(-1);
  if (rows < 0 || columns < 0 || rows > height || columns > width || top < 0 || left < 0 ||
      top > height - rows || left > width - columns) {
    throw_error<IndexError>("crop: the part lies outside the image; got ", rows, " x ", columns,
                            " at (", top, ", ", left, ") of ", x.shape());
  }
  return x.narrow(-2, top, rows).narrow(-1, left, columns);
}

Tensor center_crop(const Tensor& x, int64_t rows, int64_t columns) {
  detail::require_image("center_crop", x);
  return crop(x, (x.size(-2) - rows) / 2, (x.size(-1) - columns) / 2, rows, columns);
}

}  // namespace kiln::vision
