#include "kiln/sparse/sparse_tensor.h"

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

SparseTensor SparseTensor::transpose(int64_t dim0, int64_t dim1) const {
  constexpr const char* op = "transpose";
  require_defined(op, *this);
  if (layout() == SparseLayout::csr) {
    return to_sparse_coo().transpose(dim0, dim1).to_sparse_csr();
  }
  const int a = normalize_dim(op, dim0, dim());
  const int b = normalize_dim(op, dim1, dim());
  if (a == b) return *this;
  if ((a < sparse_dim()) != (b < sparse_dim())) {
    throw_error<ValueError>(op, ": a sparse dim and a dense one cannot trade places; got dims ", a,
                            " and ", b, " of a tensor with ", sparse_dim(), " sparse dims");
  }
  Shape turned = shape();
  std::swap(turned[a], turned[b]);
  if (a >= sparse_dim()) {
    const int before = sparse_dim() - 1;
    return coo(turned, pattern_.indices, values_.transpose(a - before, b - before), is_coalesced());
  }
  std::vector<int64_t> order;
  for (int64_t d = 0; d < sparse_dim(); ++d) order.push_back(d == a ? b : d == b ? a : d);
  const Tensor rows = tensor(order).to(device());
  return coo(turned, pattern_.indices.index_select(0, rows), values_, nnz() < 2);
}

SparseTensor SparseTensor::t() const {
  require_defined("t", *this);
  if (dim() == 2 && sparse_dim() == 2) return transpose(0, 1);
  if (dim() < 2) return *this;
  throw_error<ShapeError>("t: got a sparse tensor ", shape(), " with ", dense_dim(),
                          " dense dims; expected at most 2 dims, both sparse");
}

}  // namespace kiln
