#include "kiln/vision/morphology.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "kiln/core/error.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/ops.h"

namespace kiln::vision {

namespace {

// A kernel's places that count, and its anchor.
struct Kernel {
  int64_t rows, columns, row, column;
  std::vector<uint8_t> places;

  bool is_full() const {
    for (const uint8_t place : places) {
      if (place == 0) return false;
    }
    return true;
  }
  Kernel turned() const {
    return {rows, columns, rows - 1 - row, columns - 1 - column,
            std::vector<uint8_t>(places.rbegin(), places.rend())};
  }
};

Kernel kernel_of(const char* op, const Tensor& kernel, const MorphologyOptions& o) {
  if (kernel.dim() != 2 || kernel.numel() == 0) {
    throw_error<ShapeError>(op, ": the kernel is [rows, columns] and not empty; got ",
                            kernel.shape());
  }
  Kernel out{kernel.size(0), kernel.size(1), o.anchor_row.value_or(kernel.size(0) / 2),
             o.anchor_column.value_or(kernel.size(1) / 2),
             kernel.detach().ne(0).to(u8).to_vector<uint8_t>()};
  if (out.row < 0 || out.row >= out.rows || out.column < 0 || out.column >= out.columns) {
    throw_error<ValueError>(op, ": the anchor lies outside the kernel; got (", out.row, ", ",
                            out.column, ") in ", kernel.shape());
  }
  bool any = false;
  for (const uint8_t place : out.places) any |= place != 0;
  if (!any) throw_error<ValueError>(op, ": the kernel has no place that is not 0");
  if (o.iterations < 0) {
    throw_error<ValueError>(op, ": iterations must not be negative; got ", o.iterations);
  }
  return out;
}

// The value that never wins.
Scalar neutral(DType dtype, bool largest) {
  const auto of = [&]<class T>(T low, T high) { return Scalar(largest ? low : high); };
  switch (dtype) {
    case u8:
      return of(int64_t{0}, int64_t{255});
    case i8:
      return of(int64_t{-128}, int64_t{127});
    case i16:
      return of(int64_t{-32768}, int64_t{32767});
    case i32:
      return of(-(int64_t{1} << 31), (int64_t{1} << 31) - 1);
    case i64:
      return of(std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max());
    default:
      return of(-std::numeric_limits<double>::infinity(), std::numeric_limits<double>::infinity());
  }
}

// The extreme of `count` neighbours along a dim, by doubling: log2(count) steps.
Tensor run(const Tensor& x, int64_t dim, int64_t count, bool largest) {
  const int64_t length = x.size(dim) - count + 1;
  Tensor out = x;
  int64_t have = 1;
  while (have < count) {
    const int64_t step = std::min(have, count - have);
    const int64_t kept = out.size(dim) - step;
    const Tensor a = out.narrow(dim, 0, kept), b = out.narrow(dim, step, kept);
    out = largest ? a.maximum(b) : a.minimum(b);
    have += step;
  }
  return out.narrow(dim, 0, length);
}

Tensor once(const Tensor& x, const Kernel& k, bool largest, const Border& border) {
  const Tensor wide =
      pad_border(x, k.row, k.rows - 1 - k.row, k.column, k.columns - 1 - k.column, border);
  const int64_t rows = x.dim() - 2, columns = rows + 1;
  if (k.is_full()) return run(run(wide, rows, k.rows, largest), columns, k.columns, largest);
  Tensor out;
  for (int64_t r = 0; r < k.rows; ++r) {
    for (int64_t c = 0; c < k.columns; ++c) {
      if (k.places[static_cast<size_t>(r * k.columns + c)] == 0) continue;
      const Tensor part = wide.narrow(rows, r, x.size(rows)).narrow(columns, c, x.size(columns));
      out = !out.defined() ? part : largest ? out.maximum(part) : out.minimum(part);
    }
  }
  return out;
}

Tensor extreme(const char* op, const Tensor& given, const Kernel& kernel, bool largest,
               const MorphologyOptions& o) {
  detail::require_image(op, given);
  if (given.is_complex()) throw_error<DTypeError>(op, ": complex numbers have no order");
  // Bools are bytes meanwhile.
  Tensor x = given.dtype() == bool_ ? given.to(u8) : given;
  const Border border =
      o.border.value_or(Border{.mode = "constant", .value = neutral(x.dtype(), largest)});
  for (int64_t i = 0; i < o.iterations; ++i) x = once(x, kernel, largest, border);
  return given.dtype() == bool_ ? x.ne(0) : x;
}

// a - b; of bools, whether they differ.
Tensor difference(const Tensor& a, const Tensor& b) {
  return a.dtype() == bool_ ? a.logical_xor(b) : a - b;
}

}  // namespace

Tensor structuring_element(const std::string& shape, int64_t rows, int64_t columns) {
  constexpr const char* op = "structuring_element";
  constexpr int64_t kMost = 4096;
  if (rows < 1 || columns < 1 || rows > kMost || columns > kMost) {
    throw_error<ValueError>(op, ": sizes must be from 1 to ", kMost, "; got ", rows, " and ",
                            columns);
  }
  Tensor out = zeros({rows, columns}, {.dtype = bool_});
  bool* places = out.data_ptr<bool>();
  // From the middle, in halves of a pixel, so that even sizes have a middle, too.
  const auto off = [](int64_t i, int64_t n) { return static_cast<double>(2 * i - (n - 1)); };
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) {
      bool& place = places[r * columns + c];
      if (shape == "rect") {
        place = true;
      } else if (shape == "cross") {
        place = r == rows / 2 || c == columns / 2;
      } else if (shape == "ellipse") {
        const double y = off(r, rows) / static_cast<double>(rows);
        const double x = off(c, columns) / static_cast<double>(columns);
        place = x * x + y * y <= 1.0;
      } else {
        throw_error<ValueError>(op, ": unknown shape; got '", shape,
                                "'; expected rect, cross or ellipse");
      }
    }
  }
  return out;
}

Tensor dilate(const Tensor& x, const Tensor& kernel, const MorphologyOptions& o) {
  return extreme("dilate", x, kernel_of("dilate", kernel, o), true, o);
}

Tensor erode(const Tensor& x, const Tensor& kernel, const MorphologyOptions& o) {
  return extreme("erode", x, kernel_of("erode", kernel, o), false, o);
}

Tensor opening(const Tensor& x, const Tensor& kernel, const MorphologyOptions& o) {
  const Kernel k = kernel_of("opening", kernel, o);
  return extreme("opening", extreme("opening", x, k, false, o), k.turned(), true, o);
}

Tensor closing(const Tensor& x, const Tensor& kernel, const MorphologyOptions& o) {
  const Kernel k = kernel_of("closing", kernel, o);
  return extreme("closing", extreme("closing", x, k, true, o), k.turned(), false, o);
}

Tensor morphological_gradient(const Tensor& x, const Tensor& kernel, const MorphologyOptions& o) {
  return difference(dilate(x, kernel, o), erode(x, kernel, o));
}

Tensor top_hat(const Tensor& x, const Tensor& kernel, const MorphologyOptions& o) {
  return difference(x, opening(x, kernel, o));
}

Tensor black_hat(const Tensor& x, const Tensor& kernel, const MorphologyOptions& o) {
  return difference(closing(x, kernel, o), x);
}

}  // namespace kiln::vision
