// Arithmetic, comparison and products of complex tensors.
#include <algorithm>
#include <string_view>

#include "kiln/tensor/autograd/grad_mode.h"
#include "kiln/tensor/complex/complex_ops.h"
#include "kiln/tensor/ops.h"

namespace kiln::complex_ops {

using namespace detail;

namespace {

// Both operands in the precision of their result; a real one stays real.
struct Operands {
  Operands(const char* op, const Tensor& a, const Tensor& b) {
    check_same_device(op, parts_or_value(op, a), parts_or_value(op, b));
    if (!(a.shape() == b.shape()))
      shape = broadcast_shapes(op, a.shape(), b.shape());
    else
      shape = a.shape();
    dtype = complex_result_type(op, a, b);
    x = a.to(kiln::is_complex(a.dtype()) ? dtype : real_dtype(dtype));
    y = b.to(kiln::is_complex(b.dtype()) ? dtype : real_dtype(dtype));
  }
  bool both() const { return has_complex(x) && has_complex(y); }
  Tensor x;
  Tensor y;
  Shape shape;
  DType dtype;
};

Tensor expanded(const Tensor& x, const Shape& shape) {
  return x.shape() == shape ? x : x.expand(shape);
}

}  // namespace

Tensor number(const Tensor& x, Scalar value) {
  const DType dtype = kiln::is_complex(x.dtype()) ? real_dtype(x.dtype()) : default_dtype();
  return full(Shape{}, value, {value.is_floating_point() ? dtype : i64, x.device()});
}

Tensor add(const Tensor& x, const Tensor& y) {
  const Operands o("add", x, y);
  if (o.both()) return from_parts(parts_of(o.x).add(parts_of(o.y)));
  const Parts z = split_parts(has_complex(o.x) ? o.x : o.y);
  const Tensor re = z.re.add(has_complex(o.x) ? o.y : o.x);
  return join_parts(re, expanded(z.im, o.shape));
}

Tensor sub(const Tensor& x, const Tensor& y) {
  const Operands o("sub", x, y);
  if (o.both()) return from_parts(parts_of(o.x).sub(parts_of(o.y)));
  if (has_complex(o.x)) {
    const Parts z = split_parts(o.x);
    return join_parts(z.re.sub(o.y), expanded(z.im, o.shape));
  }
  const Parts z = split_parts(o.y);
  return join_parts(o.x.sub(z.re), expanded(z.im.neg(), o.shape));
}

Tensor mul(const Tensor& x, const Tensor& y) {
  const Operands o("mul", x, y);
  if (o.both()) {
    return wrap_complex(
        AD::float_complex_mul(parts_or_value("mul", o.x), parts_or_value("mul", o.y), false));
  }
  const Tensor& z = has_complex(o.x) ? o.x : o.y;
  const Tensor& r = has_complex(o.x) ? o.y : o.x;
  return from_parts(parts_of(z).mul(r.unsqueeze(-1)));
}

Tensor div(const Tensor& x, const Tensor& y) {
  const Operands o("div", x, y);
  if (!has_complex(o.y)) return from_parts(parts_of(o.x).div(o.y.unsqueeze(-1)));
  const Tensor a = has_complex(o.x) ? o.x : o.x.to(o.dtype);
  return wrap_complex(AD::float_complex_div(parts_or_value("div", a), parts_or_value("div", o.y)));
}

Tensor pow(const Tensor& x, const Tensor& y) {
  const Operands o("pow", x, y);
  const Tensor a = o.x.to(o.dtype);
  const Tensor b = o.y.to(o.dtype);
  return wrap_complex(AD::float_complex_pow(parts_or_value("pow", a), parts_or_value("pow", b)));
}

Tensor compare(const char* op, const Tensor& x, const Tensor& y) {
  const bool equal = std::string_view(op) == "eq";
  if (!equal && std::string_view(op) != "ne") throw_complex(op, (has_complex(x) ? x : y).dtype());
  const Operands o(op, x.detach(), y.detach());
  const Tensor left = parts_of(o.x.to(o.dtype));
  const Tensor right = parts_of(o.y.to(o.dtype));
  return equal ? left.eq(right).all(-1) : left.ne(right).any(-1);
}

Tensor isclose(const Tensor& x, const Tensor& y, double rtol, double atol, bool equal_nan) {
  const Tensor a = x.detach().to(c128);
  const Tensor b = y.detach().to(c128);
  const Tensor finite = a.isfinite().logical_and(b.isfinite());
  Tensor close =
      a.eq(b).logical_or(sub(a, b).abs().le(b.abs().mul(rtol).add(atol)).logical_and(finite));
  if (equal_nan) close = close.logical_or(a.isnan().logical_and(b.isnan()));
  return close;
}

Tensor kept(const Tensor& x, const Tensor& y) {
  const bool recorded = is_grad_enabled() && (x.requires_grad() || y.requires_grad());
  return recorded ? x.clone() : x;
}

Tensor& assign(const char* op, Tensor& x, const Tensor& result) {
  if (has_complex(x) != has_complex(result)) {
    throw_error<DTypeError>(op, ": the result cannot be stored in place; got ", result.dtype(),
                            " for a tensor of ", x.dtype());
  }
  if (!(result.shape() == x.shape())) {
    throw_error<ShapeError>(op, ": the result does not fit in place; got ", result.shape(),
                            "; expected ", x.shape());
  }
  finish_in_place(op, x, Value(state_of(result).value));
  return x;
}

Tensor where(const Tensor& condition, const Tensor& x, const Tensor& y) {
  const Operands o("where", x, y);
  // A mask of pairs: one that is broadcast along them would be read two elements at a time.
  return from_parts(kiln::where(stack({condition, condition}, -1), parts_of(o.x.to(o.dtype)),
                                parts_of(o.y.to(o.dtype))));
}

// Note [Complex products]. With the parts of x interleaved, [.., n, 2k], x y is one real product
// with the matrix [.., 2k, 2m] whose rows are those of y and of i y in turn, and what comes out are
// the parts of the result, interleaved again.

Tensor matmul(const Tensor& x, const Tensor& y) {
  if (x.dtype() != y.dtype()) {
    throw_error<DTypeError>("matmul: expected two tensors of one dtype; got ", x.dtype(), " and ",
                            y.dtype());
  }
  const Shape& xs = x.shape();
  const Shape& ys = y.shape();
  if (xs.rank() == 0 || ys.rank() == 0 || xs.back() != ys[std::max(0, ys.rank() - 2)]) {
    throw_error<ShapeError>(
        "matmul: the shapes do not multiply; got ", xs, " and ", ys,
        "; expected the last size of the first to equal the second to last of the second "
        "([.., n, k] x [.., k, m])");
  }
  if (xs.rank() == 1) return matmul(x.unsqueeze(0), y).squeeze(ys.rank() == 1 ? 0 : -2);
  if (ys.rank() == 1) return matmul(x, y.unsqueeze(1)).squeeze(-1);
  Shape rows = xs;
  rows.back() *= 2;
  const Tensor flat = parts_of(x).reshape(rows);
  const Tensor out = kiln::matmul(flat, wrap(AD::float_complex_rows(parts_or_value("matmul", y))));
  Shape shape = out.shape();
  shape.back() = ys.back();
  return from_parts(out.reshape(parts_shape(shape)));
}

}  // namespace kiln::complex_ops
