// Images rotated, scaled, sheared, moved and seen in perspective.
//
// A point is (x, y): column and row, whole numbers at the middles of pixels. Angles are in degrees,
// and positive ones turn the picture counter-clockwise, as it is seen.
#pragma once

#include <array>
#include <optional>
#include <string>

#include "kiln/tensor/tensor.h"

namespace kiln::vision {

// A map of points, as a matrix of 3 x 3 on (x, y, 1).
class Transform2D {
 public:
  Transform2D();  // the identity
  explicit Transform2D(const std::array<double, 9>& rows) : rows_(rows) {}

  static Transform2D translation(double dx, double dy);
  // The others leave `center` where it is.
  static Transform2D rotation(double degrees, std::array<double, 2> center = {0, 0});
  static Transform2D scaling(double sx, double sy, std::array<double, 2> center = {0, 0});
  // x + tan(degrees_x) y and y + tan(degrees_y) x.
  static Transform2D shearing(double degrees_x, double degrees_y,
                              std::array<double, 2> center = {0, 0});
  // The perspective that takes four points to four others. Throws ValueError when three of the
  // points lie on a line.
  static Transform2D perspective(const std::array<std::array<double, 2>, 4>& from,
                                 const std::array<std::array<double, 2>, 4>& to);

  // First this, then the other.
  Transform2D then(const Transform2D& other) const;
  // Throws ValueError when there is none.
  Transform2D inverse() const;
  std::array<double, 2> operator()(double x, double y) const;
  // Row-major.
  const std::array<double, 9>& rows() const { return rows_; }

 private:
  std::array<double, 9> rows_;
};

struct WarpOptions {
  std::string mode = "bilinear";                    // or nearest, bicubic
  std::string padding_mode = "zeros";               // or border, reflection: what lies outside
  std::optional<std::array<int64_t, 2>> size = {};  // rows and columns of the result; x's
};

// The picture x [.., H, W] (f32, f64) as `transform` moves its points: out[transform(p)] = x[p].
// Differentiable. Throws ShapeError, DTypeError, ValueError.
Tensor warp(const Tensor& x, const Transform2D& transform, const WarpOptions& options = {});
// The same with a tensor [3, 3], through which gradients flow.
Tensor warp(const Tensor& x, const Tensor& transform, const WarpOptions& options = {});

// Around the middle of the picture.
Tensor rotate(const Tensor& x, double degrees, const WarpOptions& options = {});
Tensor scale(const Tensor& x, double sx, double sy, const WarpOptions& options = {});
Tensor shear(const Tensor& x, double degrees_x, double degrees_y, const WarpOptions& options = {});
// By columns to the right and rows down.
Tensor translate(const Tensor& x, double dx, double dy, const WarpOptions& options = {});

// x [.., H, W] in another size. mode and antialias as interpolate() has them; bytes stay bytes.
Tensor resize(const Tensor& x, int64_t rows, int64_t columns, const std::string& mode = "bilinear",
              bool antialias = true);
// Mirrored, left to right and top to bottom; any dtype.
Tensor hflip(const Tensor& x);
Tensor vflip(const Tensor& x);
// A part: `rows` from `top` on, `columns` from `left` on. Throws IndexError beyond the edges.
Tensor crop(const Tensor& x, int64_t top, int64_t left, int64_t rows, int64_t columns);
Tensor center_crop(const Tensor& x, int64_t rows, int64_t columns);

}  // namespace kiln::vision
