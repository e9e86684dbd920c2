#include "kiln/tensor/linalg/products.h"

#include "kiln/tensor/amp/op_lists.h"
#include "kiln/tensor/complex/complex.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/linalg/host.h"
#include "kiln/tensor/linalg/linalg.h"
#include "kiln/tensor/memory_check.h"
#include "kiln/tensor/ops.h"
#include "kiln/tensor/shape/views.h"
#include "kiln/tensor/tensor_impl.h"

namespace kiln {

namespace {

const Shape& shape_checked(const char* op, const Tensor& x) {
  return detail::impl_of(op, x).shape();
}

void check_ranks(const char* op, const Tensor& x, int x_rank, const Tensor& y, int y_rank) {
  const Shape& xs = shape_checked(op, x);
  const Shape& ys = shape_checked(op, y);
  if (xs.rank() != x_rank || ys.rank() != y_rank) {
    throw_error<ShapeError>(op, ": the operands have the wrong number of dims; got ", xs, " and ",
                            ys, "; expected ", x_rank, " and ", y_rank, " dims");
  }
}

// Errors of the product name `op`.
Tensor product(const char* op, const Tensor& x, const Tensor& y) {
  return detail::naming<ShapeError>(
      op, [&] { return detail::naming<DTypeError>(op, [&] { return matmul(x, y); }); });
}

bool is_zero(Scalar s) { return s.is_floating_point() ? s.to_double() == 0 : s.to_int() == 0; }
bool is_one(Scalar s) { return s.is_floating_point() ? s.to_double() == 1 : s.to_int() == 1; }

// beta * input + alpha * product.
Tensor added(const char* op, const Tensor& input, Tensor product, Scalar beta, Scalar alpha) {
  const Shape& shape = shape_checked(op, input);
  if (input.dtype() != product.dtype()) {
    throw_error<DTypeError>(op, ": the operands differ in dtype; got ", input.dtype(), " and ",
                            product.dtype(), "; expected one dtype");
  }
  if ((beta.is_floating_point() || alpha.is_floating_point()) && is_integral(product.dtype())) {
    throw_error<DTypeError>(op, ": beta and alpha of an integer product must be integers; got ",
                            product.dtype());
  }
  if (!broadcasts_to(shape, product.shape())) {
    throw_error<ShapeError>(op, ": the input does not broadcast to the product; got ", shape,
                            " and ", product.shape());
  }
  if (product.dtype() == bool_) {
    if (!alpha.to_bool()) product = zeros_like(product);
    return beta.to_bool() ? add(std::move(product), input) : product;
  }
  if (!is_one(alpha)) product = mul(std::move(product), alpha);
  if (is_zero(beta)) return product;
  return is_one(beta) ? add(std::move(product), input) : add(std::move(product), mul(input, beta));
}

}  // namespace

Tensor mm(const Tensor& x, const Tensor& y) { return x.mm(y); }
Tensor bmm(const Tensor& x, const Tensor& y) { return x.bmm(y); }
Tensor dot(const Tensor& x, const Tensor& y) { return x.dot(y); }
Tensor vdot(const Tensor& x, const Tensor& y) {
  check_ranks("vdot", x, 1, y, 1);
  const amp::detail::NoCasting as_given;
  return product("vdot", conj(x), y);
}

Tensor mv(const Tensor& x, const Tensor& y) {
  check_ranks("mv", x, 2, y, 1);
  const amp::detail::NoCasting as_given;
  return product("mv", x, y);
}

Tensor inner(const Tensor& x, const Tensor& y) {
  const Shape xs = shape_checked("inner", x);
  const Shape ys = shape_checked("inner", y);
  if (xs.rank() == 0 || ys.rank() == 0) return mul(x, y);
  if (xs.back() != ys.back()) {
    throw_error<ShapeError>("inner: the last sizes differ; got ", xs, " and ", ys);
  }
  return tensordot(x, y, Dims{-1}, Dims{-1});
}

Tensor outer(const Tensor& x, const Tensor& y) {
  check_ranks("outer", x, 1, y, 1);
  return mul(x.unsqueeze(1), y.unsqueeze(0));
}

Tensor addmm(const Tensor& input, const Tensor& x, const Tensor& y, Scalar beta, Scalar alpha) {
  KILN_AUTOCAST(lower, addmm, input, x, y, beta, alpha);
  check_ranks("addmm", x, 2, y, 2);
  return added("addmm", input, product("addmm", x, y), beta, alpha);
}

Tensor addmv(const Tensor& input, const Tensor& x, const Tensor& y, Scalar beta, Scalar alpha) {
  check_ranks("addmv", x, 2, y, 1);
  const amp::detail::NoCasting as_given;
  return added("addmv", input, product("addmv", x, y), beta, alpha);
}

Tensor addr(const Tensor& input, const Tensor& x, const Tensor& y, Scalar beta, Scalar alpha) {
  check_ranks("addr", x, 1, y, 1);
  return added("addr", input, outer(x, y), beta, alpha);
}

Tensor baddbmm(const Tensor& input, const Tensor& x, const Tensor& y, Scalar beta, Scalar alpha) {
  KILN_AUTOCAST(lower, baddbmm, input, x, y, beta, alpha);
  check_ranks("baddbmm", x, 3, y, 3);
  return added("baddbmm", input, x.bmm(y), beta, alpha);
}

Tensor addbmm(const Tensor& input, const Tensor& x, const Tensor& y, Scalar beta, Scalar alpha) {
  KILN_AUTOCAST(lower, addbmm, input, x, y, beta, alpha);
  check_ranks("addbmm", x, 3, y, 3);
  if (x.size(0) != y.size(0) || x.size(2) != y.size(1)) {
    throw_error<ShapeError>("addbmm: the shapes do not multiply; got ", x.shape(), " and ",
                            y.shape(), "; expected [b, n, k] and [b, k, m]");
  }
  // The sum over the batch is one product with the batch among the summed sizes.
  const int64_t k = x.size(0) * x.size(2);
  const Tensor left = x.transpose(0, 1).reshape({x.size(1), k});
  return added("addbmm", input, product("addbmm", left, y.reshape({k, y.size(2)})), beta, alpha);
}

Tensor chain_matmul(std::span<const Tensor> tensors) {
  if (tensors.size() == 1) return tensors[0].clone();
  return linalg::multi_dot(tensors);
}

// ---- Tensors of any rank

Tensor tensordot(const Tensor& x, const Tensor& y, const Dims& x_dims, const Dims& y_dims) {
  constexpr const char* kOp = "tensordot";
  const Shape xs = shape_checked(kOp, x);
  const Shape ys = shape_checked(kOp, y);
  if (x_dims.rank() != y_dims.rank()) {
    throw_error<ValueError>(kOp, ": the lists of dims differ in length; got ", x_dims, " and ",
                            y_dims);
  }
  const Dims xd = normalize_dims(kOp, x_dims, xs.rank());
  const Dims yd = normalize_dims(kOp, y_dims, ys.rank());
  Tensor left = x;
  Tensor right = y;
  int64_t k = 1;
  for (int i = 0; i < xd.rank(); ++i) {
    const int64_t a = xs[static_cast<int>(xd[i])];
    const int64_t b = ys[static_cast<int>(yd[i])];
    if (a != b && a != 1 && b != 1) {
      throw_error<ShapeError>(kOp, ": sizes to be summed over differ; got ", xs, " dim ", xd[i],
                              " and ", ys, " dim ", yd[i]);
    }
    // A size of 1 broadcasts: the other side may as well be summed first.
    if (a == 1 && b != 1) right = right.sum(Dims{yd[i]}, true).to(y.dtype());
    if (b == 1 && a != 1) left = left.sum(Dims{xd[i]}, true).to(x.dtype());
    k *= a == 1 ? 1 : b == 1 ? 1 : a;
  }
  Dims x_order;
  Dims y_order = yd;
  Shape out;
  int64_t n = 1;
  int64_t m = 1;
  for (int i = 0; i < xs.rank(); ++i) {
    if (xd.contains(i)) continue;
    x_order.push_back(i);
    out.push_back(xs[i]);
    n *= xs[i];
  }
  for (const int64_t d : xd) x_order.push_back(d);
  for (int i = 0; i < ys.rank(); ++i) {
    if (yd.contains(i)) continue;
    y_order.push_back(i);
    out.push_back(ys[i]);
    m *= ys[i];
  }
  left = left.permute(x_order).reshape({n, k});
  right = right.permute(y_order).reshape({k, m});
  return product(kOp, left, right).reshape(out);
}

Tensor tensordot(const Tensor& x, const Tensor& y, int64_t dims) {
  const int xr = shape_checked("tensordot", x).rank();
  const int yr = shape_checked("tensordot", y).rank();
  if (dims < 0 || dims > xr || dims > yr) {
    throw_error<ValueError>("tensordot: the number of dims does not fit; got ", dims,
                            " for tensors of ", xr, " and ", yr, " dims");
  }
  Dims xd;
  Dims yd;
  for (int64_t i = 0; i < dims; ++i) {
    xd.push_back(xr - dims + i);
    yd.push_back(i);
  }
  return tensordot(x, y, xd, yd);
}

Tensor kron(const Tensor& x, const Tensor& y) {
  const Shape xs = shape_checked("kron", x);
  const Shape ys = shape_checked("kron", y);
  const int rank = std::max(xs.rank(), ys.rank());
  Shape x_wide;
  Shape y_wide;
  Shape out;
  for (int i = 0; i < rank; ++i) {
    const int xi = i - (rank - xs.rank());
    const int yi = i - (rank - ys.rank());
    const int64_t a = xi < 0 ? 1 : xs[xi];
    const int64_t b = yi < 0 ? 1 : ys[yi];
    x_wide.push_back(a);
    x_wide.push_back(1);
    y_wide.push_back(1);
    y_wide.push_back(b);
    out.push_back(a * b);
  }
  return mul(x.reshape(x_wide), y.reshape(y_wide)).reshape(out);
}

namespace linalg {

Tensor cross(const Tensor& x, const Tensor& y, int64_t dim) {
  constexpr const char* kOp = "linalg.cross";
  const Shape xs = shape_checked(kOp, x);
  const Shape ys = shape_checked(kOp, y);
  if (xs.rank() != ys.rank()) {
    throw_error<ShapeError>(kOp, ": the operands differ in their number of dims; got ", xs, " and ",
                            ys);
  }
  const int d = normalize_dim(kOp, dim, xs.rank());
  if (xs.rank() == 0 || xs[d] != 3 || ys[d] != 3) {
    throw_error<ShapeError>(kOp, ": the dim must have size 3; got ", xs, " and ", ys, ", dim ",
                            dim);
  }
  const auto part = [d](const Tensor& t, int64_t i) { return t.narrow(d, i, 1); };
  const auto one = [&](int64_t i, int64_t j) {
    return sub(mul(part(x, i), part(y, j)), mul(part(x, j), part(y, i)));
  };
  return cat({one(1, 2), one(2, 0), one(0, 1)}, d);
}

Tensor vecdot(const Tensor& x, const Tensor& y, int64_t dim) {
  KILN_AUTOCAST(lower, vecdot, x, y, dim);
  constexpr const char* kOp = "linalg.vecdot";
  const Shape shape = broadcast_shapes(kOp, shape_checked(kOp, x), shape_checked(kOp, y));
  detail::check_like(kOp, x, y);
  normalize_dim(kOp, dim, shape.rank());
  const Tensor p = mul(conj(x), y);
  return p.sum(Dims{dim}).to(p.dtype());
}

Tensor vander(const Tensor& x, std::optional<int64_t> n) {
  constexpr const char* kOp = "linalg.vander";
  const Shape shape = shape_checked(kOp, x);
  if (shape.rank() == 0) return vander(x.reshape({1}), n);
  const int64_t count = n.value_or(shape.back());
  if (count <= 1 && n) {
    throw_error<ValueError>(kOp, ": N must be greater than 1; got ", count);
  }
  if (count == 0) {
    Shape out = shape;
    out.push_back(0);
    return empty(out, {.dtype = x.dtype(), .device = x.device()});
  }
  Shape result = shape;
  result.push_back(count);
  kiln::detail::check_memory(kOp, result, f64);
  kiln::detail::check_memory(kOp, Shape{count, 32}, i64);  // a tensor for each power
  const bool whole = !is_floating_point(x.dtype()) && !is_complex(x.dtype());
  const Tensor base = whole ? x.to(i64) : x;
  std::vector<Tensor> powers{ones_like(base)};
  for (int64_t i = 1; i < count; ++i) powers.push_back(i == 1 ? base : mul(powers.back(), base));
  return stack(powers, -1);
}

Tensor diagonal(const Tensor& a, int64_t offset, int64_t dim1, int64_t dim2) {
  return kiln::detail::naming<ShapeError>("linalg.diagonal",
                                          [&] { return kiln::diagonal(a, offset, dim1, dim2); });
}

}  // namespace linalg

Tensor cross(const Tensor& x, const Tensor& y, std::optional<int64_t> dim) {
  if (dim) return linalg::cross(x, y, *dim);
  const Shape xs = shape_checked("cross", x);
  for (int i = 0; i < xs.rank(); ++i) {
    if (xs[i] == 3) return linalg::cross(x, y, i);
  }
  throw_error<ShapeError>("cross: no dim of size 3; got ", xs);
}

Tensor trace(const Tensor& x) {
  KILN_AUTOCAST(f32, trace, x);
  const Shape shape = shape_checked("trace", x);
  if (shape.rank() != 2) {
    throw_error<ShapeError>("trace: expected a matrix; got shape ", shape);
  }
  return linalg::diagonal(x).sum();
}

}  // namespace kiln
