// Sums and products of elements.
#include "kiln/sparse/sparse_impl.h"
#include "kiln/sparse/sparse_ops.h"
#include "kiln/tensor/index/advanced_index.h"
#include "kiln/tensor/index/sorting.h"
#include "kiln/tensor/ops.h"

namespace kiln {

using namespace sparse_detail;

namespace {

void require_same_form(const char* op, const SparseTensor& x, const SparseTensor& y) {
  require_defined(op, x);
  require_defined(op, y);
  require_alike(op, x._values(), y._values());
  if (x.shape() != y.shape() || x.sparse_dim() != y.sparse_dim()) {
    throw_error<ShapeError>(op, ": got sparse tensors ", x.shape(), " with ", x.sparse_dim(),
                            " sparse dims and ", y.shape(), " with ", y.sparse_dim(),
                            "; expected one shape and as many sparse dims");
  }
}

Tensor times(const Tensor& x, Scalar alpha) {
  const bool one = !alpha.is_floating_point() && alpha.to_int() == 1;
  return one ? x : x.mul(alpha);
}

// What y has at the entries of x, which it broadcasts to: [nnz, ...].
Tensor at_entries(const char* op, const SparseTensor& x, const Tensor& y) {
  require_defined(op, x);
  require_defined(op, y);
  if (x.device() != y.device()) {
    throw_error<DeviceError>(op, ": operands are on different devices; got ", x.device(), " and ",
                             y.device());
  }
  if (y.dim() > x.dim() || broadcast_shapes(op, x.shape(), y.shape()) != x.shape()) {
    throw_error<ShapeError>(op, ": got a sparse tensor ", x.shape(), " and a dense one ", y.shape(),
                            "; expected one that broadcasts to the sparse one's shape");
  }
  Shape aligned = Shape::filled(x.dim() - y.dim(), 1);
  for (const int64_t n : y.shape()) aligned.push_back(n);
  const int dims = x.sparse_dim();
  const Tensor indices = x.to_sparse_coo()._indices();
  // Places along dims of size 1 are all 0.
  Tensor keys = indices.new_zeros({x.nnz()});
  for (int d = 0; d < dims; ++d) {
    keys = keys.mul(aligned[d]);
    if (aligned[d] != 1) keys = keys.add(indices.select(0, d));
  }
  Shape flat = sizes_from(aligned, dims);
  flat.insert(0, first_sizes(aligned, dims).numel());
  return y.reshape(flat).index_select(0, keys);
}

SparseTensor without_type_change(const char* op, const SparseTensor& x, Tensor values) {
  SparseTensor out = x.with_values(std::move(values));
  if (out.shape() == x.shape()) return out;
  throw_error<ShapeError>(op, ": the result has shape ", out.shape(), "; expected ", x.shape());
}

}  // namespace

SparseTensor add(const SparseTensor& x, const SparseTensor& y, Scalar alpha) {
  require_same_form("add", x, y);
  const SparseTensor a = x.to_sparse_coo();
  const SparseTensor b = y.to_sparse_coo();
  const SparseTensor both = coo(x.shape(), cat({a._indices(), b._indices()}, 1),
                                cat({a._values(), times(b._values(), alpha)}, 0), false);
  return in_layout_of(x, both.coalesce());
}

SparseTensor sub(const SparseTensor& x, const SparseTensor& y, Scalar alpha) {
  require_same_form("sub", x, y);
  return add(x, y,
             alpha.is_floating_point() ? Scalar(-alpha.to_double()) : Scalar(-alpha.to_int()));
}

Tensor add(const Tensor& x, const SparseTensor& y, Scalar alpha) {
  constexpr const char* op = "add";
  require_defined(op, x);
  require_defined(op, y);
  require_alike(op, x, y._values());
  if (x.shape() != y.shape()) {
    throw_error<ShapeError>(op, ": got a dense tensor ", x.shape(), " and a sparse one ", y.shape(),
                            "; expected one shape");
  }
  const int dims = y.sparse_dim();
  Shape flat = sizes_from(x.shape(), dims);
  flat.insert(0, first_sizes(x.shape(), dims).numel());
  const Tensor keys = keys_of(y.to_sparse_coo()._indices(), x.shape());
  return x.reshape(flat).index_add(0, keys, times(y._values(), alpha)).reshape(x.shape());
}

SparseTensor mul(const SparseTensor& x, Scalar y) {
  require_defined("mul", x);
  return x.with_values(x._values().mul(y));
}

SparseTensor mul(const SparseTensor& x, const SparseTensor& y) {
  constexpr const char* op = "mul";
  require_same_form(op, x, y);
  const SparseTensor a = x.to_sparse_coo().coalesce();
  const SparseTensor b = y.to_sparse_coo().coalesce();
  if (a.nnz() == 0 || b.nnz() == 0) {
    const Tensor none = a._indices().new_zeros({0});
    return in_layout_of(x, coo(x.shape(), a._indices().index_select(1, none),
                               a._values().index_select(0, none), true));
  }
  const Tensor keys = keys_of(a._indices(), x.shape());
  const Tensor others = keys_of(b._indices(), x.shape());
  const Tensor near = searchsorted(others, keys).clamp({}, Scalar(b.nnz() - 1));
  const Tensor here = true_places(others.index_select(0, near).eq(keys));
  const Tensor there = near.index_select(0, here);
  return in_layout_of(
      x, coo(x.shape(), a._indices().index_select(1, here),
             a._values().index_select(0, here).mul(b._values().index_select(0, there)), true));
}

SparseTensor mul(const SparseTensor& x, const Tensor& y) {
  return without_type_change("mul", x, x._values().mul(at_entries("mul", x, y)));
}

SparseTensor div(const SparseTensor& x, Scalar y) {
  require_defined("div", x);
  return x.with_values(x._values().div(y));
}
SparseTensor div(const SparseTensor& x, const Tensor& y) {
  return without_type_change("div", x, x._values().div(at_entries("div", x, y)));
}

}  // namespace kiln
