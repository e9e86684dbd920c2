// Sparse tensors made of their parts and of dense ones. What they are made of is checked here.
#include "kiln/sparse/sparse_impl.h"
#include "kiln/tensor/index/advanced_index.h"
#include "kiln/tensor/index/scatter.h"
#include "kiln/tensor/ops.h"
#include "kiln/tensor/reduce/reductions.h"

namespace kiln {

using namespace sparse_detail;

namespace {

// Indices as i64, where the values are.
Tensor index_part(const char* op, const char* name, const Tensor& index, const Tensor& values,
                  int rank) {
  require_defined(op, index);
  require_defined(op, values);
  const Kind kind = kind_of(index.dtype());
  if (kind != Kind::integer) {
    throw_error<DTypeError>(op, ": got ", name, " of dtype ", index.dtype(), "; expected integers");
  }
  if (index.dim() != rank) {
    throw_error<ShapeError>(op, ": got ", name, " ", index.shape(), "; expected ", rank,
                            rank == 1 ? " dim" : " dims, [sparse dims, entries]");
  }
  if (index.device() != values.device()) {
    throw_error<DeviceError>(op, ": ", name, " and values are on different devices; got ",
                             index.device(), " and ", values.device());
  }
  return index.detach().to(i64);
}

// The smallest and the largest of each row of [n, count > 0].
std::pair<std::vector<int64_t>, std::vector<int64_t>> ranges_of(const Tensor& rows) {
  return {rows.amin(1).to_vector<int64_t>(), rows.amax(1).to_vector<int64_t>()};
}

void check_sizes(const char* op, const Shape& shape) {
  for (const int64_t n : shape) {
    if (n < 0) throw_error<ShapeError>(op, ": got shape ", shape, " with a negative size");
  }
}

void check_range(const char* op, int64_t dim, int64_t low, int64_t high, int64_t size) {
  if (low >= 0 && high < size) return;
  throw_error<IndexError>(op, ": got index ", low < 0 ? low : high, " for dim ", dim,
                          "; expected 0 <= index < ", size);
}

// Whether keys rise strictly.
bool rise(const Tensor& keys) {
  if (keys.size(0) < 2) return true;
  return keys.slice(0, 1).gt(keys.slice(0, 0, -1)).all().item<bool>();
}

}  // namespace

SparseTensor sparse_coo_tensor(const Tensor& indices, const Tensor& values,
                               std::optional<Shape> shape, bool is_coalesced) {
  constexpr const char* op = "sparse_coo_tensor";
  const Tensor at = index_part(op, "indices", indices, values, 2);
  const Tensor stored = values.dim() == 0 ? values.reshape({1}) : values;
  if (stored.size(0) != at.size(1)) {
    throw_error<ShapeError>(op, ": got indices ", at.shape(), " and values ", stored.shape(),
                            "; expected as many values as columns of the indices, ", at.size(1));
  }
  const auto dims = static_cast<int>(at.size(0));
  const bool empty = at.numel() == 0;
  std::pair<std::vector<int64_t>, std::vector<int64_t>> ranges;
  if (!empty) ranges = ranges_of(at);
  if (!shape) {
    shape.emplace();
    for (size_t d = 0; d < static_cast<size_t>(dims); ++d) {
      if (!empty && ranges.second[d] == std::numeric_limits<int64_t>::max()) {
        throw_error<IndexError>(op, ": got index ", ranges.second[d], ", too large for a size");
      }
      shape->push_back(empty ? 0 : ranges.second[d] + 1);
    }
    for (const int64_t n : sizes_from(stored.shape(), 1)) shape->push_back(n);
  }
  check_sizes(op, *shape);
  if (shape->rank() != dims + stored.dim() - 1) {
    throw_error<ShapeError>(op, ": got shape ", *shape, " for indices of ", dims,
                            " dims and values ", stored.shape(), "; expected ",
                            dims + stored.dim() - 1, " sizes");
  }
  if (sizes_from(*shape, dims) != sizes_from(stored.shape(), 1)) {
    throw_error<ShapeError>(op, ": got values ", stored.shape(), " for shape ", *shape,
                            "; expected the sizes behind the first to be those of the dense dims");
  }
  for (int d = 0; d < dims && !empty; ++d) {
    const auto i = static_cast<size_t>(d);
    check_range(op, d, ranges.first[i], ranges.second[i], (*shape)[d]);
  }
  require_countable(op, *shape, dims);
  if (is_coalesced && !rise(keys_of(at, *shape))) {
    throw_error<ValueError>(
        op, ": got is_coalesced, but indices are not distinct and in row-major order");
  }
  return coo(*shape, at, stored, is_coalesced);
}

SparseTensor sparse_coo_tensor(const Shape& shape, TensorOptions options) {
  check_sizes("sparse_coo_tensor", shape);
  require_countable("sparse_coo_tensor", shape, shape.rank());
  const Tensor indices =
      zeros(Shape{shape.rank(), 0}, TensorOptions{.dtype = i64, .device = options.device});
  return coo(shape, indices, zeros(Shape{0}, options), true);
}

SparseTensor sparse_csr_tensor(const Tensor& crow_indices, const Tensor& col_indices,
                               const Tensor& values, std::optional<Shape> shape) {
  constexpr const char* op = "sparse_csr_tensor";
  const Tensor crow = index_part(op, "crow_indices", crow_indices, values, 1);
  const Tensor col = index_part(op, "col_indices", col_indices, values, 1);
  if (values.dim() != 1 || values.size(0) != col.size(0)) {
    throw_error<ShapeError>(op, ": got col_indices ", col.shape(), " and values ", values.shape(),
                            "; expected [nnz] for both");
  }
  if (crow.size(0) == 0) {
    throw_error<ShapeError>(op, ": got crow_indices [0]; expected [rows + 1]");
  }
  const int64_t rows = crow.size(0) - 1;
  const int64_t count = col.size(0);
  const bool rises = crow.select(0, 0).item<int64_t>() == 0 &&
                     crow.select(0, -1).item<int64_t>() == count &&
                     (rows == 0 || crow.slice(0, 1).ge(crow.slice(0, 0, -1)).all().item<bool>());
  if (!rises) {
    throw_error<IndexError>(op, ": got crow_indices that do not rise from 0 to ", count,
                            ", the number of values");
  }
  int64_t low = 0, high = -1;
  if (count > 0) {
    low = col.min().item<int64_t>();
    high = col.max().item<int64_t>();
  }
  if (!shape) shape = Shape{rows, high + 1};
  check_sizes(op, *shape);
  if (shape->rank() != 2 || (*shape)[0] != rows) {
    throw_error<ShapeError>(op, ": got shape ", *shape, " for crow_indices of ", rows,
                            " rows; expected [", rows, ", columns]");
  }
  check_range(op, 1, low, high, (*shape)[1]);
  require_countable(op, *shape, 2);
  SparseTensor out({SparseLayout::csr, *shape, col, crow, false}, values);
  const bool sorted = rise(keys_of(out.to_sparse_coo()._indices(), *shape));
  return {SparsePattern{SparseLayout::csr, *shape, col, crow, sorted}, values};
}

SparseTensor to_sparse(const Tensor& x, std::optional<int64_t> sparse_dim) {
  constexpr const char* op = "to_sparse";
  require_defined(op, x);
  const int64_t dims = sparse_dim.value_or(x.dim());
  if (dims < 0 || dims > x.dim() || (dims == 0 && x.dim() > 0)) {
    throw_error<ValueError>(op, ": got sparse_dim ", dims, " for a tensor ", x.shape(),
                            "; expected 1 <= sparse_dim <= ", x.dim());
  }
  const int front = static_cast<int>(dims);
  const Shape rest = sizes_from(x.shape(), front);
  Shape flat = rest;
  flat.insert(0, first_sizes(x.shape(), front).numel());
  const Tensor slices = x.reshape(flat);
  Tensor stored = slices.detach().ne(0);
  if (rest.rank() > 0) stored = stored.flatten(1).any(1);
  const Tensor keys = true_places(stored);
  return coo(x.shape(), indices_of_keys(keys, x.shape(), front), slices.index_select(0, keys),
             true);
}

SparseTensor to_sparse_csr(const Tensor& x) {
  require_defined("to_sparse_csr", x);
  if (x.dim() != 2) {
    throw_error<ShapeError>("to_sparse_csr: got a tensor ", x.shape(), "; expected a matrix");
  }
  return to_sparse(x).to_sparse_csr();
}

SparseTensor sparse_mask(const Tensor& x, const SparseTensor& mask) {
  constexpr const char* op = "sparse_mask";
  require_defined(op, x);
  require_defined(op, mask);
  if (x.shape() != mask.shape()) {
    throw_error<ShapeError>(op, ": got a tensor ", x.shape(), " and a mask ", mask.shape(),
                            "; expected one shape");
  }
  if (x.device() != mask.device()) {
    throw_error<DeviceError>(op, ": operands are on different devices; got ", x.device(), " and ",
                             mask.device());
  }
  const SparseTensor at = mask.coalesce();
  const int dims = at.sparse_dim();
  Shape flat = sizes_from(x.shape(), dims);
  flat.insert(0, first_sizes(x.shape(), dims).numel());
  const Tensor keys = keys_of(at.to_sparse_coo()._indices(), x.shape());
  return at.with_values(x.reshape(flat).index_select(0, keys));
}

}  // namespace kiln
