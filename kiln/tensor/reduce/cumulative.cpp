#include "kiln/tensor/reduce/cumulative.h"

#include <algorithm>

#include "kiln/tensor/complex/complex_ops.h"
#include "kiln/tensor/operands.h"
#include "kiln/tensor/ops.h"

namespace kiln {

using namespace detail;

namespace {

bool is_float(const Value& x) { return kind_of_value(x) == Kind::floating; }

std::pair<Tensor, Tensor> running_extremum(const char* op, const Tensor& x, int64_t dim,
                                           bool largest) {
  const Value& value = value_of(op, x);
  const int d = normalize_dim(op, dim, shape_of(value).rank());
  if (shape_of(value).rank() == 0) {
    return {x.clone(), wrap(Dispatch::int_full(Shape{}, 0, i64, value.inner->device()))};
  }
  Tensor index = wrap(is_float(value) ? Dispatch::float_cumarg(value.inner, d, largest)
                                      : Dispatch::int_cumarg(whole_numbers(op, value), d, largest));
  return {x.gather(d, index), index};
}

Tensor difference(const Tensor& x, int64_t dim) {
  const int64_t n = x.size(dim);
  const int64_t kept = std::max<int64_t>(n - 1, 0);
  const Tensor later = x.narrow(dim, n - kept, kept);
  const Tensor earlier = x.narrow(dim, 0, kept);
  return x.dtype() == bool_ ? later.logical_xor(earlier) : later.sub(earlier);
}

void check_numbers(const char* op, const Tensor& y) {
  if (y.dtype() == bool_) throw_wrong_dtype(op, bool_, "numbers, try to(f32)");
}

// Sums of neighbours along dim.
Tensor sums_of_neighbours(const char* op, const Tensor& y, int64_t dim) {
  check_numbers(op, y);
  if (y.dim() == 0) throw_error<ShapeError>(op, ": expected at least 1 dim; got a 0-d tensor");
  const int64_t n = y.size(dim);
  const int64_t kept = std::max<int64_t>(n - 1, 0);
  return y.narrow(dim, n - kept, kept).add(y.narrow(dim, 0, kept));
}

// Distances of neighbouring positions, in a shape that broadcasts with sums_of_neighbours.
Tensor distances(const char* op, const Tensor& y, const Tensor& x, int64_t dim) {
  const int d = normalize_dim(op, dim, y.dim());
  if (x.dim() == 0 || y.dim() == 0) {
    throw_error<ShapeError>(op, ": expected at least 1 dim; got y ", y.shape(), " and x ",
                            x.shape());
  }
  if (x.dim() > 1) return difference(x, x.dim() == y.dim() ? d : dim);
  if (x.shape()[0] != y.shape()[d]) {
    throw_error<ShapeError>(op, ": expected a position for each element of the dim; got x ",
                            x.shape(), " for y ", y.shape());
  }
  Shape row = Shape::filled(y.dim(), 1);
  row[d] = x.shape()[0];
  return difference(x.reshape(row), d);
}

}  // namespace

Tensor cumprod(const Tensor& x, int64_t dim) {
  if (has_complex(x)) return complex_ops::cumprod(x, dim);
  const Value& value = value_of("cumprod", x);
  const int d = normalize_dim("cumprod", dim, shape_of(value).rank());
  if (shape_of(value).rank() == 0) return is_float(value) ? x.clone() : x.to(i64);
  if (is_float(value)) return wrap(AD::float_cumprod(value, d));
  return wrap(Dispatch::int_cumprod(cast(value, i64).inner, d));
}

std::pair<Tensor, Tensor> cummax(const Tensor& x, int64_t dim) {
  return running_extremum("cummax", x, dim, true);
}
std::pair<Tensor, Tensor> cummin(const Tensor& x, int64_t dim) {
  return running_extremum("cummin", x, dim, false);
}

Tensor logcumsumexp(const Tensor& x, int64_t dim) {
  if (has_complex(x)) return complex_ops::logcumsumexp(x, dim);
  const Value& value = floats_of("logcumsumexp", x);
  const int d = normalize_dim("logcumsumexp", dim, shape_of(value).rank());
  if (shape_of(value).rank() == 0) return x.clone();
  return wrap(AD::float_logcumsumexp(value, d));
}

Tensor diff(const Tensor& x, int64_t n, int64_t dim, const Tensor& prepend, const Tensor& append) {
  if (x.dim() == 0) throw_error<ShapeError>("diff: expected at least 1 dim; got a 0-d tensor");
  const int d = normalize_dim("diff", dim, x.dim());
  if (n < 0) throw_error<ValueError>("diff: expected n >= 0; got ", n);
  if (n == 0) return x.clone();  // as NumPy: nothing is joined either
  std::vector<Tensor> parts;
  if (prepend.defined()) parts.push_back(prepend);
  parts.push_back(x);
  if (append.defined()) parts.push_back(append);
  for (const Tensor& part : parts) {
    if (part.dim() == x.dim()) continue;
    throw_error<ShapeError>("diff: what is joined must have as many dims; got ", part.shape(),
                            " for ", x.shape());
  }
  Tensor out = parts.size() == 1 ? x : cat(std::span<const Tensor>(parts), d);
  for (n = std::min(n, out.shape()[d]); n > 0; --n) out = difference(out, d);
  return out;
}

Tensor trapezoid(const Tensor& y, double dx, int64_t dim) {
  if (y.dim() == 0) {
    throw_error<ShapeError>("trapezoid: expected at least 1 dim; got a 0-d tensor");
  }
  check_numbers("trapezoid", y);
  const int d = normalize_dim("trapezoid", dim, y.dim());
  const int64_t n = y.shape()[d];
  if (n == 0) return y.sum(d).mul(dx);
  const Tensor ends = y.select(d, 0).add(y.select(d, n - 1)).mul(0.5);
  return y.sum(d).sub(ends).mul(dx);
}
Tensor trapezoid(const Tensor& y, const Tensor& x, int64_t dim) {
  const Tensor steps = distances("trapezoid", y, x, dim);
  return steps.mul(sums_of_neighbours("trapezoid", y, dim)).sum(dim).div(2.0);
}
Tensor cumulative_trapezoid(const Tensor& y, double dx, int64_t dim) {
  return sums_of_neighbours("cumulative_trapezoid", y, dim).mul(dx / 2.0).cumsum(dim);
}
Tensor cumulative_trapezoid(const Tensor& y, const Tensor& x, int64_t dim) {
  const Tensor steps = distances("cumulative_trapezoid", y, x, dim);
  return steps.mul(sums_of_neighbours("cumulative_trapezoid", y, dim)).cumsum(dim).div(2.0);
}

Tensor linear_scan(const Tensor& a, const Tensor& b, int64_t dim, bool reversed) {
  const Value& factors = floats_of("linear_scan", a);
  const Value& added = floats_of("linear_scan", b);
  check_same_device("linear_scan", factors, added);
  if (!(a.shape() == b.shape()) || a.dtype() != b.dtype()) {
    throw_error<ShapeError>("linear_scan: both operands must be alike; got ", a.shape(), " ",
                            a.dtype(), " and ", b.shape(), " ", b.dtype());
  }
  const int d = normalize_dim("linear_scan", dim, a.dim());
  if (a.dim() == 0) return b.clone();
  return wrap(AD::float_linear_scan(factors, added, d, reversed));
}

}  // namespace kiln
