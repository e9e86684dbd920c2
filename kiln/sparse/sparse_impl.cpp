#include "kiln/sparse/sparse_impl.h"

#include <algorithm>

#include "kiln/tensor/index/scatter.h"
#include "kiln/tensor/ops.h"

namespace kiln::sparse_detail {

void require_defined(const char* op, const SparseTensor& x) {
  if (!x.defined()) throw_error<ValueError>(op, ": got an undefined sparse tensor");
}
void require_defined(const char* op, const Tensor& x) {
  if (!x.defined()) throw_error<ValueError>(op, ": got an undefined tensor");
}

void require_matrix(const char* op, const SparseTensor& x) {
  require_defined(op, x);
  if (x.sparse_dim() == 2 && x.dense_dim() == 0) return;
  throw_error<ShapeError>(op, ": got a sparse tensor ", x.shape(), " with ", x.dense_dim(),
                          " dense dims; expected a matrix of two sparse dims");
}

void require_alike(const char* op, const Tensor& x, const Tensor& y) {
  if (x.device() != y.device()) {
    throw_error<DeviceError>(op, ": operands are on different devices; got ", x.device(), " and ",
                             y.device());
  }
  if (x.dtype() != y.dtype()) {
    throw_error<DTypeError>(op, ": got operands of dtype ", x.dtype(), " and ", y.dtype(),
                            "; expected one dtype");
  }
}

Tensor keys_of(const Tensor& indices, const Shape& shape) {
  const auto dims = static_cast<int>(indices.size(0));
  if (dims == 0) return indices.new_zeros({indices.size(1)});
  Tensor keys = indices.select(0, 0);
  for (int d = 1; d < dims; ++d) keys = keys.mul(shape[d]).add(indices.select(0, d));
  return keys;
}

Tensor indices_of_keys(const Tensor& keys, const Shape& shape, int dims) {
  if (dims == 0) return keys.new_zeros({0, keys.size(0)});
  std::vector<Tensor> rows(static_cast<size_t>(dims));
  Tensor rest = keys;
  for (int d = dims - 1; d > 0; --d) {
    const Scalar size = std::max<int64_t>(1, shape[d]);
    rows[static_cast<size_t>(d)] = rest.remainder(size);
    rest = rest.floor_divide(size);
  }
  rows[0] = rest;
  return stack(rows, 0);
}

Shape first_sizes(const Shape& shape, int count) {
  return Shape(std::span<const int64_t>(shape.begin(), static_cast<size_t>(count)));
}
Shape sizes_from(const Shape& shape, int begin) {
  return Shape(std::span<const int64_t>(shape.begin() + begin, shape.end()));
}

void require_countable(const char* op, const Shape& shape, int dims) {
  int64_t places = 1;
  bool fits = true;
  for (int d = 0; d < dims; ++d) {
    fits = fits && !__builtin_mul_overflow(places, std::max<int64_t>(1, shape[d]), &places);
  }
  if (fits) return;
  throw_error<ShapeError>(op, ": got shape ", shape,
                          ", whose sparse dims have more places than int64 counts");
}

Tensor sum_groups(const Tensor& values, const Tensor& groups, int64_t count) {
  Shape out = values.shape();
  out[0] = count;
  if (values.dtype() == bool_) {
    return values.new_zeros(out).to(i64).index_add(0, groups, values.to(i64)).ne(0);
  }
  return values.new_zeros(out).index_add(0, groups, values);
}

Tensor true_places(const Tensor& mask) { return mask.nonzero().select(1, 0); }

SparseTensor coo(const Shape& shape, Tensor indices, Tensor values, bool coalesced) {
  return {SparsePattern{SparseLayout::coo, shape, std::move(indices), {}, coalesced},
          std::move(values)};
}

SparseTensor in_layout_of(const SparseTensor& like, const SparseTensor& x) {
  return like.layout() == SparseLayout::csr ? x.to_sparse_csr() : x;
}

}  // namespace kiln::sparse_detail
