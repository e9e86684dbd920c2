#include "kiln/tensor/nn/padding.h"

#include <algorithm>

#include "kiln/backend/options.h"
#include "kiln/tensor/amp/op_lists.h"
#include "kiln/tensor/autograd/formula.h"
#include "kiln/tensor/complex/complex_impl.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/elementwise/scalar_fit.h"
#include "kiln/tensor/ops.h"

namespace kiln::functional {

namespace {

void check_width(EdgeMode mode, int64_t before, int64_t behind, int64_t n, const Tensor& x) {
  const int64_t most = std::max(before, behind);
  const bool fits = mode == EdgeMode::reflect    ? most < n && std::min(before, behind) > -n
                    : mode == EdgeMode::circular ? most <= n && before + behind > -n
                                                 : n > 0 && before + behind > -n;
  if (!fits || before + behind + n <= 0) {
    throw_error<ValueError>("pad: the width does not fit the dim; got (", before, ", ", behind,
                            ") for a dim of size ", n, " of ", x.shape(),
                            mode == EdgeMode::reflect    ? "; expected less than the size"
                            : mode == EdgeMode::circular ? "; expected at most the size"
                                                         : "; expected something left to repeat");
  }
}

// x inside a larger tensor of `value`.
Tensor inside_of(const Tensor& x, const Shape& before, const Shape& behind, double value) {
  constexpr const char* op = "pad";
  if (detail::has_complex(x)) {
    const Tensor real = inside_of(kiln::real(x), before, behind, value);
    return complex(real, inside_of(kiln::imag(x), before, behind, 0.0));
  }
  const Scalar number(value);
  detail::check_fits(op, number, x.dtype());
  const Value& v = detail::value_of(op, x);
  switch (detail::kind_of_value(v)) {
    case Kind::floating:
      return detail::wrap(AD::float_pad(v, before, behind, number));
    case Kind::integer:
      return detail::wrap(AD::int_pad(v.inner, before, behind, number));
    case Kind::boolean:
      return detail::wrap(AD::bool_pad(v.inner, before, behind, number));
    default:
      detail::throw_wrong_dtype(op, x.dtype(), "a tensor that is not quantized");
  }
}

Tensor padded_with_value(const Tensor& x, const Shape& pad, double value) {
  const int rank = x.dim();
  Tensor inner = x;
  Shape shape = x.shape();
  Shape before = Shape::filled(rank, 0), behind = before;
  for (int k = 0; k < pad.rank() / 2; ++k) {
    const int d = rank - 1 - k;
    const int64_t first = pad[2 * k], last = pad[2 * k + 1];
    const int64_t cut = std::max<int64_t>(0, -first);
    const int64_t kept = inner.shape()[d] - cut - std::max<int64_t>(0, -last);
    shape[d] += first + last;
    if (shape[d] < 0 || kept < 0) {
      throw_error<ShapeError>("pad: more is taken away than there is; got ", pad, " for ",
                              x.shape());
    }
    if (kept != inner.shape()[d]) inner = inner.narrow(d, cut, kept);
    before[d] = std::max<int64_t>(0, first);
    behind[d] = std::max<int64_t>(0, last);
  }
  checked_numel("pad", shape);
  if (shape == inner.shape()) return inner.clone();
  return inside_of(inner, before, behind, value);
}

// x with `before` and `behind` elements more in each dim, which are not negative.
Tensor repeated_at_ends(const Tensor& x, const Shape& before, const Shape& behind, EdgeMode mode) {
  constexpr const char* op = "pad";
  if (detail::has_complex(x)) {
    Shape first = before, last = behind;
    first.push_back(0);
    last.push_back(0);
    return detail::through_parts(
        x, [&](const Tensor& parts) { return repeated_at_ends(parts, first, last, mode); });
  }
  const Value& value = detail::value_of(op, x);
  switch (detail::kind_of_value(value)) {
    case Kind::floating:
      return detail::wrap(AD::float_pad_edges(value, before, behind, mode));
    case Kind::integer:
      return detail::wrap(AD::int_pad_edges(value.inner, before, behind, mode));
    case Kind::boolean:
      return detail::wrap(AD::bool_pad_edges(value.inner, before, behind, mode));
    default:
      detail::throw_wrong_dtype(op, x.dtype(), "a tensor that is not quantized");
  }
}

// Whether autocast has this padding on its list for f32.
bool is_cast(const Shape& pad, const std::string& mode) {
  return mode == "replicate" || (mode == "reflect" && pad.rank() <= 4);
}

}  // namespace

Tensor pad(const Tensor& x, const Shape& pad, const std::string& mode, double value) {
  if (is_cast(pad, mode)) {
    KILN_AUTOCAST(f32, kiln::functional::pad, x, pad, mode, value);
  }
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
  EdgeMode how = EdgeMode::circular;
  if (mode == "reflect") {
    how = EdgeMode::reflect;
  } else if (mode == "replicate") {
    how = EdgeMode::replicate;
  } else if (mode != "circular") {
    throw_error<ValueError>(
        "pad: expected mode 'constant', 'reflect', 'replicate' or 'circular'; got '", mode, "'");
  }
  Tensor out = x;
  Shape all_before = Shape::filled(x.dim(), 0), all_behind = all_before;
  for (int k = 0; k < pad.rank() / 2; ++k) {
    const int d = x.dim() - 1 - k;
    int64_t n = x.shape()[d];
    int64_t before = pad[2 * k];
    int64_t behind = pad[2 * k + 1];
    if (before == 0 && behind == 0) continue;
    if (how == EdgeMode::circular && (before < 0 || behind < 0)) {
      // What is taken away has gone before the rest is wrapped.
      const int64_t cut = std::max<int64_t>(0, -before);
      n -= cut + std::max<int64_t>(0, -behind);
      before = std::max<int64_t>(0, before);
      behind = std::max<int64_t>(0, behind);
      check_width(how, before, behind, n, x);
      out = out.narrow(d, cut, n);
      if (before == 0 && behind == 0) continue;
    } else {
      check_width(how, before, behind, n, x);
    }
    if (before < 0 || behind < 0) {
      std::vector<int64_t> sources;
      for (int64_t i = -before; i < n + behind; ++i) sources.push_back(edge_source(how, i, n));
      const auto count = static_cast<int64_t>(sources.size());
      out = out.index_select(d, from_vector(sources, {count}, {i64, x.device()}));
    } else {
      all_before[d] = before;
      all_behind[d] = behind;
    }
  }
  const Shape none = Shape::filled(x.dim(), 0);
  if (!(all_before == none && all_behind == none)) {
    out = repeated_at_ends(out, all_before, all_behind, how);
  }
  return out.is_same(x) ? x.clone() : out;
}

}  // namespace kiln::functional
