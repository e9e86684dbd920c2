// Sums over dims, softmax.
#include "kiln/sparse/sparse_impl.h"
#include "kiln/sparse/sparse_ops.h"
#include "kiln/tensor/index/scatter.h"
#include "kiln/tensor/index/unique.h"
#include "kiln/tensor/ops.h"

namespace kiln::sparse {

using namespace sparse_detail;

namespace {

// The rows of the indices that are not among `dims`, and their sizes.
struct Kept {
  Tensor indices;
  Shape shape;
};

Kept kept_dims(const SparseTensor& x, const Dims& dims) {
  std::vector<int64_t> rows;
  Kept out;
  for (int d = 0; d < x.sparse_dim(); ++d) {
    if (dims.contains(d)) continue;
    rows.push_back(d);
    out.shape.push_back(x.shape()[d]);
  }
  out.indices = x._indices().index_select(0, tensor(rows, i64).to(x.device()));
  return out;
}

SparseTensor stored_softmax(const char* op, const SparseTensor& given, int64_t along,
                            bool logarithm) {
  require_defined(op, given);
  if (!is_floating_point(given.dtype())) {
    throw_error<DTypeError>(op, ": got ", given.dtype(), "; expected a floating point dtype");
  }
  const int dim = normalize_dim(op, along, given.dim());
  const SparseTensor x = given.to_sparse_coo().coalesce();
  const Tensor& v = x._values();
  if (dim >= x.sparse_dim()) {
    const int at = dim - x.sparse_dim() + 1;
    return in_layout_of(given, x.with_values(logarithm ? v.log_softmax(at) : v.softmax(at)));
  }
  if (x.nnz() == 0) return given;
  const Kept kept = kept_dims(x, Dims{dim});
  const Unique groups = unique(keys_of(kept.indices, kept.shape), true);
  const int64_t count = groups.values.size(0);
  const Tensor& owner = groups.inverse;
  // The largest of each group, for sums that do not overflow. It changes no result.
  Shape line = Shape::filled(v.dim(), 1);
  line[0] = x.nnz();
  Shape most = v.shape();
  most[0] = count;
  const Tensor raw = v.detach();
  const Tensor largest =
      scatter_reduce(raw.new_full(most, -std::numeric_limits<double>::infinity()), 0,
                     owner.reshape(line).expand(v.shape()), raw, "amax");
  const Tensor moved = v.sub(largest.index_select(0, owner));
  const Tensor powers = moved.exp();
  const Tensor sums = sum_groups(powers, owner, count);
  return in_layout_of(given, x.with_values(logarithm ? moved.sub(sums.log().index_select(0, owner))
                                                     : powers.div(sums.index_select(0, owner))));
}

}  // namespace

Tensor sum(const SparseTensor& x) {
  require_defined("sum", x);
  return x._values().sum();
}

Sum sum(const SparseTensor& given, const Dims& dims) {
  constexpr const char* op = "sum";
  require_defined(op, given);
  const Dims over = normalize_dims(op, dims, given.dim());
  const SparseTensor x = given.to_sparse_coo();
  const int front = x.sparse_dim();
  Dims behind;
  int sparse = 0;
  for (const int64_t d : over) {
    if (d < front) {
      ++sparse;
    } else {
      behind.push_back(d - front + 1);
    }
  }
  Tensor values = x._values();
  if (values.dtype() == bool_) values = values.to(i64);
  if (behind.rank() > 0) values = values.sum(behind);
  if (sparse == front) return {.sparse = {}, .dense = values.sum(0)};
  if (sparse == 0) return {.sparse = in_layout_of(given, x.with_values(values)), .dense = {}};
  const Kept kept = kept_dims(x, over);
  Shape shape = kept.shape;
  for (const int64_t n : sizes_from(values.shape(), 1)) shape.push_back(n);
  return {.sparse = coo(shape, kept.indices, values, false).coalesce(), .dense = {}};
}

SparseTensor softmax(const SparseTensor& x, int64_t dim) {
  return stored_softmax("softmax", x, dim, false);
}
SparseTensor log_softmax(const SparseTensor& x, int64_t dim) {
  return stored_softmax("log_softmax", x, dim, true);
}

}  // namespace kiln::sparse
