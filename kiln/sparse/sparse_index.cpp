// Slices of sparse tensors, and sparse tensors side by side.
#include "kiln/sparse/sparse_impl.h"
#include "kiln/sparse/sparse_ops.h"
#include "kiln/tensor/index/sorting.h"
#include "kiln/tensor/ops.h"
#include "kiln/tensor/shape/joining.h"
#include "kiln/tensor/shape/rearranging.h"

namespace kiln {

using namespace sparse_detail;

namespace {

// The indices with another row for one dim.
Tensor with_row(const Tensor& indices, int dim, const Tensor& row) {
  std::vector<Tensor> rows;
  for (int d = 0; d < static_cast<int>(indices.size(0)); ++d) {
    rows.push_back(d == dim ? row : indices.select(0, d));
  }
  return stack(rows, 0);
}

}  // namespace

SparseTensor cat(std::span<const SparseTensor> tensors, int64_t along) {
  constexpr const char* op = "cat";
  if (tensors.empty()) throw_error<ValueError>(op, ": got no tensors; expected at least one");
  require_defined(op, tensors[0]);
  const SparseTensor& first = tensors[0];
  const int dim = normalize_dim(op, along, first.dim());
  const int front = first.sparse_dim();
  Shape shape = first.shape();
  shape[dim] = 0;
  std::vector<Tensor> indices, values;
  int64_t total = 0;
  for (const SparseTensor& x : tensors) {
    require_defined(op, x);
    require_alike(op, first._values(), x._values());
    Shape other = x.shape();
    if (other.rank() == shape.rank()) other[dim] = 0;
    if (other != shape || x.sparse_dim() != front) {
      throw_error<ShapeError>(op, ": got ", first.shape(), " with ", front, " sparse dims and ",
                              x.shape(), " with ", x.sparse_dim(),
                              "; expected shapes that differ in dim ", dim, " alone");
    }
    total += x.size(dim);
  }
  int64_t before = 0;
  for (const SparseTensor& x : tensors) {
    const SparseTensor part = x.to_sparse_coo();
    if (dim < front) {
      indices.push_back(with_row(part._indices(), dim, part._indices().select(0, dim).add(before)));
      values.push_back(part._values());
    } else {
      // Zeros in the place of the others.
      const int at = dim - front + 1;
      Shape left = part._values().shape();
      Shape right = left;
      left[at] = before;
      right[at] = total - before - x.size(dim);
      indices.push_back(part._indices());
      values.push_back(kiln::cat(
          {part._values().new_zeros(left), part._values(), part._values().new_zeros(right)}, at));
    }
    before += x.size(dim);
  }
  shape[dim] = total;
  require_countable(op, shape, front);
  return in_layout_of(first, coo(shape, kiln::cat(indices, 1), kiln::cat(values, 0), false));
}

namespace sparse {

SparseTensor index_select(const SparseTensor& x, int64_t along, const Tensor& index) {
  constexpr const char* op = "index_select";
  require_defined(op, x);
  require_defined(op, index);
  if (index.dim() != 1 || kind_of(index.dtype()) != Kind::integer) {
    throw_error<ShapeError>(op, ": got an index ", index.shape(), " of dtype ", index.dtype(),
                            "; expected integers of one dim");
  }
  const int dim = normalize_dim(op, along, x.dim());
  const SparseTensor from = x.to_sparse_coo();
  const int front = from.sparse_dim();
  Shape shape = x.shape();
  shape[dim] = index.size(0);
  if (dim >= front) {
    return coo(shape, from._indices(), from._values().index_select(dim - front + 1, index),
               from.is_coalesced());
  }
  const Tensor wanted = index.detach().to(i64).to(x.device());
  if (wanted.size(0) > 0) {
    const auto low = wanted.min().item<int64_t>();
    const auto high = wanted.max().item<int64_t>();
    if (low < 0 || high >= x.size(dim)) {
      throw_error<IndexError>(op, ": got index ", low < 0 ? low : high, " for dim ", dim,
                              "; expected 0 <= index < ", x.size(dim));
    }
  }
  // Each entry stands where the index names it: in a run of the sorted index.
  const auto [sorted, order] = wanted.sort(0);
  const Tensor at = from._indices().select(0, dim).contiguous();
  const Tensor begins = searchsorted(sorted, at);
  const Tensor counts = searchsorted(sorted, at, true).sub(begins);
  const Tensor entry = repeat_interleave(counts);
  const Tensor firsts = counts.cumsum(0).sub(counts);
  const Tensor within =
      arange(entry.size(0), {.device = x.device()}).sub(firsts.index_select(0, entry));
  const Tensor to = order.index_select(0, begins.index_select(0, entry).add(within));
  const Tensor indices = with_row(from._indices().index_select(1, entry), dim, to);
  return in_layout_of(x, coo(shape, indices, from._values().index_select(0, entry), false));
}

Sum select(const SparseTensor& given, int64_t along, int64_t index) {
  constexpr const char* op = "select";
  require_defined(op, given);
  const int dim = normalize_dim(op, along, given.dim());
  const int64_t size = given.size(dim);
  if (index < -size || index >= size) {
    throw_error<IndexError>(op, ": got index ", index, " for dim ", dim, " of size ", size);
  }
  const int64_t at = index < 0 ? index + size : index;
  const SparseTensor x = given.to_sparse_coo();
  const int front = x.sparse_dim();
  Shape shape = x.shape();
  shape.erase(dim);
  if (dim >= front) {
    return {.sparse =
                coo(shape, x._indices(), x._values().select(dim - front + 1, at), x.is_coalesced()),
            .dense = {}};
  }
  const Tensor here = x._indices().select(0, dim).eq(at).nonzero().select(1, 0);
  const Tensor values = x._values().index_select(0, here);
  if (front == 1) {
    return {.sparse = {},
            .dense = sum_groups(values, here.new_zeros({here.size(0)}), 1).select(0, 0)};
  }
  std::vector<Tensor> rows;
  for (int d = 0; d < front; ++d) {
    if (d != dim) rows.push_back(x._indices().select(0, d).index_select(0, here));
  }
  return {.sparse = coo(shape, stack(rows, 0), values, x.is_coalesced()), .dense = {}};
}

}  // namespace sparse
}  // namespace kiln
