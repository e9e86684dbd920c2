#include "kiln/sparse/sparse_tensor.h"

#include <algorithm>

#include "kiln/sparse/sparse_impl.h"
#include "kiln/tensor/index/sorting.h"
#include "kiln/tensor/ops.h"

namespace kiln {

using namespace sparse_detail;

namespace {

[[noreturn]] void throw_layout(const char* op, const char* expected) {
  throw_error<TypeError>(op, ": got a sparse tensor of another layout; expected ", expected);
}

}  // namespace

int64_t SparseTensor::size(int64_t dim) const {
  return shape()[normalize_dim("size", dim, this->dim())];
}

int SparseTensor::sparse_dim() const {
  return layout() == SparseLayout::csr ? 2 : static_cast<int>(pattern_.indices.size(0));
}

const Tensor& SparseTensor::_indices() const {
  require_defined("indices", *this);
  if (layout() != SparseLayout::coo) throw_layout("indices", "COO; try col_indices()");
  return pattern_.indices;
}
const Tensor& SparseTensor::indices() const {
  const Tensor& out = _indices();
  if (!is_coalesced()) {
    throw_error<ValueError>("indices: the sparse tensor is not coalesced; call coalesce() first");
  }
  return out;
}
const Tensor& SparseTensor::values() const {
  require_defined("values", *this);
  if (layout() == SparseLayout::coo && !is_coalesced()) {
    throw_error<ValueError>("values: the sparse tensor is not coalesced; call coalesce() first");
  }
  return values_;
}
const Tensor& SparseTensor::crow_indices() const {
  require_defined("crow_indices", *this);
  if (layout() != SparseLayout::csr) throw_layout("crow_indices", "CSR; try to_sparse_csr()");
  return pattern_.crow;
}
const Tensor& SparseTensor::col_indices() const {
  require_defined("col_indices", *this);
  if (layout() != SparseLayout::csr) throw_layout("col_indices", "CSR; try to_sparse_csr()");
  return pattern_.indices;
}

SparseTensor& SparseTensor::requires_grad_(bool value) {
  require_defined("requires_grad_", *this);
  values_.requires_grad_(value);
  return *this;
}

SparseTensor SparseTensor::grad() const {
  require_defined("grad", *this);
  const Tensor found = values_.grad();
  return found.defined() ? with_values(found) : SparseTensor();
}

SparseTensor SparseTensor::clone() const {
  require_defined("clone", *this);
  return with_values(values_.clone());
}

SparseTensor SparseTensor::with_values(Tensor values) const {
  require_defined("with_values", *this);
  require_defined("with_values", values);
  if (values.dim() < 1 || values.size(0) != nnz()) {
    throw_error<ShapeError>("with_values: got values ", values.shape(), "; expected [", nnz(),
                            ", ...]");
  }
  SparsePattern pattern = pattern_;
  pattern.shape = first_sizes(shape(), sparse_dim());
  for (const int64_t n : sizes_from(values.shape(), 1)) pattern.shape.push_back(n);
  return {std::move(pattern), std::move(values)};
}

SparseTensor SparseTensor::to(DType dtype) const {
  require_defined("to", *this);
  return with_values(values_.to(dtype));
}

SparseTensor SparseTensor::to(Device device) const {
  require_defined("to", *this);
  SparsePattern pattern = pattern_;
  pattern.indices = pattern.indices.to(device);
  if (pattern.crow.defined()) pattern.crow = pattern.crow.to(device);
  return {std::move(pattern), values_.to(device)};
}

Tensor SparseTensor::to_dense() const {
  require_defined("to_dense", *this);
  if (layout() == SparseLayout::csr) return to_sparse_coo().to_dense();
  const Tensor keys = keys_of(pattern_.indices, shape());
  return sum_groups(values_, keys, first_sizes(shape(), sparse_dim()).numel()).reshape(shape());
}

SparseTensor SparseTensor::to_sparse_coo() const {
  require_defined("to_sparse", *this);
  if (layout() == SparseLayout::coo) return *this;
  const Tensor places = arange(nnz(), {.device = device()});
  const Tensor rows = searchsorted(pattern_.crow.slice(0, 1), places, true);
  return coo(shape(), stack({rows, pattern_.indices}, 0), values_, is_coalesced());
}

SparseTensor SparseTensor::to_sparse_csr() const {
  require_matrix("to_sparse_csr", *this);
  if (layout() == SparseLayout::csr) return *this;
  const SparseTensor whole = coalesce();
  const Tensor& indices = whole._indices();
  const Tensor starts =
      searchsorted(indices.select(0, 0), arange(size(0) + 1, {.device = device()}));
  SparsePattern pattern{SparseLayout::csr, shape(), indices.select(0, 1).contiguous(), starts,
                        true};
  return {std::move(pattern), whole._values()};
}

SparseTensor SparseTensor::coalesce() const {
  require_defined("coalesce", *this);
  if (is_coalesced()) return *this;
  if (layout() == SparseLayout::csr) return to_sparse_coo().coalesce().to_sparse_csr();
  if (nnz() < 2) return coo(shape(), pattern_.indices, values_, true);
  const Tensor keys = keys_of(pattern_.indices, shape());
  const Tensor order = keys.argsort();
  const Tensor sorted = keys.index_select(0, order);
  const Tensor differs = sorted.slice(0, 1).ne(sorted.slice(0, 0, -1));
  const Tensor begins = cat({differs.new_ones({1}), differs}, 0);
  const Tensor firsts = true_places(begins);
  const Tensor in_order = values_.index_select(0, order);
  if (firsts.size(0) == nnz()) {
    return coo(shape(), pattern_.indices.index_select(1, order), in_order, true);
  }
  const Tensor groups = begins.to(i64).cumsum(0).sub(1);
  return coo(shape(), pattern_.indices.index_select(1, order.index_select(0, firsts)),
             sum_groups(in_order, groups, firsts.size(0)), true);
}

SparseTensor SparseTensor::permute(const Dims& order) const {
  constexpr const char* op = "permute";
  require_defined(op, *this);
  const Dims dims = normalize_dims(op, order, dim());
  if (dims.rank() != dim()) {
    throw_error<ShapeError>(op, ": got ", dims.rank(), " dims for a sparse tensor ", shape(),
                            "; expected each dim once");
  }
  const int front = sparse_dim();
  std::vector<int64_t> rows;
  Shape turned;
  Dims behind{0};
  for (int d = 0; d < dims.rank(); ++d) {
    if ((d < front) != (dims[d] < front)) {
      throw_error<ValueError>(op, ": a sparse dim and a dense one cannot trade places; got dims ",
                              dims, " for a tensor with ", front, " sparse dims");
    }
    turned.push_back(shape()[static_cast<int>(dims[d])]);
    if (d < front) {
      rows.push_back(dims[d]);
    } else {
      behind.push_back(dims[d] - front + 1);
    }
  }
  const bool in_order = std::is_sorted(rows.begin(), rows.end());
  const SparseTensor from = to_sparse_coo();
  const Tensor at = in_order
                        ? from.pattern_.indices
                        : from.pattern_.indices.index_select(0, tensor(rows, i64).to(device()));
  const SparseTensor out =
      coo(turned, at, values_.permute(behind), from.is_coalesced() && (in_order || nnz() < 2));
  return in_layout_of(*this, out);
}

SparseTensor SparseTensor::transpose(int64_t dim0, int64_t dim1) const {
  constexpr const char* op = "transpose";
  require_defined(op, *this);
  Dims order = all_dims(dim());
  std::swap(order[normalize_dim(op, dim0, dim())], order[normalize_dim(op, dim1, dim())]);
  return permute(order);
}

SparseTensor SparseTensor::unsqueeze(int64_t where) const {
  constexpr const char* op = "unsqueeze";
  require_defined(op, *this);
  const int at = normalize_dim(op, where, dim() + 1);
  const SparseTensor from = to_sparse_coo();
  Shape out = shape();
  out.insert(at, 1);
  const int front = sparse_dim();
  if (at > front) {
    return coo(out, from._indices(), values_.unsqueeze(at - front + 1), from.is_coalesced());
  }
  const Tensor& indices = from._indices();
  const Tensor rows =
      cat({indices.slice(0, 0, at), indices.new_zeros({1, nnz()}), indices.slice(0, at)}, 0);
  return coo(out, rows, values_, from.is_coalesced());
}

SparseTensor SparseTensor::t() const {
  require_defined("t", *this);
  if (dim() == 2 && sparse_dim() == 2) return transpose(0, 1);
  if (dim() < 2) return *this;
  throw_error<ShapeError>("t: got a sparse tensor ", shape(), " with ", dense_dim(),
                          " dense dims; expected at most 2 dims, both sparse");
}

}  // namespace kiln
