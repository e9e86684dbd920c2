#include "kiln/tensor/padding.h"

#include <algorithm>

#include "kiln/tensor/creation.h"
#include "kiln/tensor/formula.h"
#include "kiln/tensor/ops.h"

namespace kiln::functional {

namespace {

enum class Mode { reflect, replicate, circular };

// Where element i (from -before on) of a padded dim of size n comes from.
int64_t source_of(Mode mode, int64_t i, int64_t n) {
  switch (mode) {
    case Mode::reflect:
      i = i < 0 ? -i : i;
      return i < n ? i : 2 * (n - 1) - i;
    case Mode::replicate:
      return std::clamp<int64_t>(i, 0, n - 1);
    default:
      return (i % n + n) % n;
  }
}

void check_width(Mode mode, int64_t before, int64_t behind, int64_t n, const Tensor& x) {
  const int64_t most = std::max(before, behind);
  const bool fits = mode == Mode::reflect    ? most < n && std::min(before, behind) > -n
                    : mode == Mode::circular ? most <= n && before + behind > -n
                                             : n > 0 && before + behind > -n;
  if (!fits || before + behind + n <= 0) {
    throw_error<ValueError>("pad: the width does not fit the dim; got (", before, ", ", behind,
                            ") for a dim of size ", n, " of ", x.shape(),
                            mode == Mode::reflect    ? "; expected less than the size"
                            : mode == Mode::circular ? "; expected at most the size"
                                                     : "; expected something left to repeat");
  }
}

Tensor padded_with_value(const Tensor& x, const Shape& pad, double value) {
  const int rank = x.dim();
  Tensor inner = x;
  Shape shape = x.shape();
  Shape start = Shape::filled(rank, 0);
  for (int k = 0; k < pad.rank() / 2; ++k) {
    const int d = rank - 1 - k;
    const int64_t before = pad[2 * k];
    const int64_t behind = pad[2 * k + 1];
    const int64_t cut = std::max<int64_t>(0, -before);
    const int64_t kept = inner.shape()[d] - cut - std::max<int64_t>(0, -behind);
    shape[d] += before + behind;
    if (shape[d] < 0 || kept < 0) {
      throw_error<ShapeError>("pad: more is taken away than there is; got ", pad, " for ",
                              x.shape());
    }
    if (kept != inner.shape()[d]) inner = inner.narrow(d, cut, kept);
    start[d] = std::max<int64_t>(0, before);
  }
  checked_numel("pad", shape);
  if (shape == inner.shape()) return inner.clone();
  const Tensor memory = full(shape, value, {x.dtype(), x.device()});
  if (inner.numel() == 0 && !inner.requires_grad()) return memory;
  return detail::with_part_in("pad", memory, inner, [start, size = inner.shape()](const Tensor& y) {
    Tensor part = y;
    for (int d = 0; d < size.rank(); ++d) {
      if (part.shape()[d] != size[d]) part = part.narrow(d, start[d], size[d]);
    }
    return part;
  });
}

}  // namespace

Tensor pad(const Tensor& x, const Shape& pad, const std::string& mode, double value) {
  if (pad.rank() % 2 != 0 || pad.rank() / 2 > x.dim()) {
    throw_error<ShapeError>("pad: expected two numbers for each padded dim; got ", pad,
                            " for a tensor of ", x.shape());
  }
  // So that no sum below overflows: no memory is as large.
  constexpr int64_t kWidest = int64_t{1} << 48;
  for (const int64_t width : pad) {
    if (width > kWidest || width < -kWidest) {
      throw_error<ShapeError>("pad: a width is out of range; got ", width);
    }
  }
  if (mode == "constant") return padded_with_value(x, pad, value);
  Mode how = Mode::circular;
  if (mode == "reflect") {
    how = Mode::reflect;
  } else if (mode == "replicate") {
    how = Mode::replicate;
  } else if (mode != "circular") {
    throw_error<ValueError>(
        "pad: expected mode 'constant', 'reflect', 'replicate' or 'circular'; got '", mode, "'");
  }
  Tensor out = x;
  for (int k = 0; k < pad.rank() / 2; ++k) {
    const int d = x.dim() - 1 - k;
    const int64_t n = x.shape()[d];
    const int64_t before = pad[2 * k];
    const int64_t behind = pad[2 * k + 1];
    if (before == 0 && behind == 0) continue;
    check_width(how, before, behind, n, x);
    if (how == Mode::circular && before >= 0 && behind >= 0) {
      out = cat({out.narrow(d, n - before, before), out, out.narrow(d, 0, behind)}, d);
      continue;
    }
    TensorData index(Shape{before + n + behind}, i64);
    for (int64_t i = -before; int64_t & at : index.as_mutable<int64_t>()) {
      at = source_of(how, i++, n);
    }
    out = out.index_select(d, Tensor(index, x.device()));
  }
  return out.is_same(x) ? x.clone() : out;
}

}  // namespace kiln::functional
