#include "kiln/vision/border.h"

#include "kiln/core/error.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/ops.h"

namespace kiln::vision {

namespace {

// Wider borders are a mistake, and would overflow.
constexpr int64_t kWidest = int64_t{1} << 24;

int64_t floor_mod(int64_t a, int64_t n) { return ((a % n) + n) % n; }

// Which of n places stands at place i, which may lie outside.
int64_t source(const std::string& mode, int64_t i, int64_t n) {
  if (mode == "replicate") return i < 0 ? 0 : i >= n ? n - 1 : i;
  if (mode == "circular") return floor_mod(i, n);
  if (mode == "symmetric") {
    const int64_t k = floor_mod(i, 2 * n);
    return k < n ? k : 2 * n - 1 - k;
  }
  if (n == 1) return 0;
  const int64_t k = floor_mod(i, 2 * n - 2);
  return k < n ? k : 2 * n - 2 - k;
}

Tensor padded(const Tensor& x, int64_t dim, int64_t before, int64_t after, const Border& border) {
  if (before == 0 && after == 0) return x;
  if (border.mode == "constant") {
    const auto edge = [&](int64_t width) {
      Shape shape = x.shape();
      shape[static_cast<int>(dim)] = width;
      return full(shape, border.value, {x.dtype(), x.device()});
    };
    return cat({edge(before), x, edge(after)}, dim);
  }
  const int64_t n = x.size(dim);
  std::vector<int64_t> places(static_cast<size_t>(before + n + after));
  for (size_t i = 0; i < places.size(); ++i) {
    places[i] = source(border.mode, static_cast<int64_t>(i) - before, n);
  }
  return x.index_select(dim, tensor(places, {i64, x.device()}));
}

}  // namespace

Tensor pad_border(const Tensor& x, int64_t top, int64_t bottom, int64_t left, int64_t right,
                  const Border& border) {
  constexpr const char* op = "pad_border";
  detail::require_image(op, x);
  for (const int64_t width : {top, bottom, left, right}) {
    if (width < 0 || width > kWidest) {
      throw_error<ValueError>(op, ": widths must be from 0 to 2^24; got ", width);
    }
  }
  const std::string& m = border.mode;
  if (m != "constant" && m != "replicate" && m != "reflect" && m != "symmetric" &&
      m != "circular") {
    throw_error<ValueError>(op, ": unknown border mode; got '", m,
                            "'; expected constant, replicate, reflect, symmetric or circular");
  }
  const int64_t rows = x.dim() - 2;
  return padded(padded(x, rows, top, bottom, border), rows + 1, left, right, border);
}

namespace detail {

void require_image(const char* op, const Tensor& x) {
  if (x.dim() < 2 || x.size(-1) == 0 || x.size(-2) == 0) {
    throw_error<ShapeError>(op, ": expected an image [.., H, W] that is not empty; got ",
                            x.shape());
  }
}

void require_float_image(const char* op, const Tensor& x) {
  require_image(op, x);
  if (x.dtype() != f32 && x.dtype() != f64) {
    throw_error<DTypeError>(op, ": expected float32 or float64 (x.to(f32) / 255 of bytes); got ",
                            x.dtype());
  }
}

}  // namespace detail
}  // namespace kiln::vision
