// Products of matrices.
#include "kiln/sparse/sparse_impl.h"
#include "kiln/sparse/sparse_ops.h"
#include "kiln/tensor/index/sorting.h"
#include "kiln/tensor/linalg/csr.h"
#include "kiln/tensor/ops.h"
#include "kiln/tensor/shape/rearranging.h"

namespace kiln::sparse {

using namespace sparse_detail;

namespace {

void require_inner(const char* op, const Shape& x, const Shape& y) {
  if (x.rank() == 2 && y.rank() == 2 && x[1] == y[0]) return;
  throw_error<ShapeError>(op, ": got ", x, " and ", y, "; expected matrices [m, k] and [k, n]");
}

}  // namespace

Tensor mm(const SparseTensor& x, const Tensor& y) {
  constexpr const char* op = "mm";
  require_matrix(op, x);
  require_defined(op, y);
  require_alike(op, x._values(), y);
  require_inner(op, x.shape(), y.shape());
  const SparseTensor rows = x.to_sparse_csr();
  return csr_matmul(rows.crow_indices(), rows.col_indices(), rows._values(), y);
}

Tensor mm(const Tensor& x, const SparseTensor& y) {
  constexpr const char* op = "mm";
  require_matrix(op, y);
  require_defined(op, x);
  require_alike(op, x, y._values());
  require_inner(op, x.shape(), y.shape());
  const SparseTensor rows = y.to_sparse_csr();
  return csr_transposed_matmul(rows.crow_indices(), rows.col_indices(), rows._values(), x.t(),
                               y.size(1))
      .t();
}

// Each entry of x meets the entries of one row of y.
SparseTensor mm(const SparseTensor& x, const SparseTensor& y) {
  constexpr const char* op = "mm";
  require_matrix(op, x);
  require_matrix(op, y);
  require_alike(op, x._values(), y._values());
  require_inner(op, x.shape(), y.shape());
  const Shape shape{x.size(0), y.size(1)};
  require_countable(op, shape, 2);
  const SparseTensor a = x.to_sparse_coo().coalesce();
  const SparseTensor b = y.to_sparse_csr();
  const Tensor met = a._indices().select(0, 1);
  const Tensor begins = b.crow_indices().index_select(0, met);
  const Tensor counts = b.crow_indices().index_select(0, met.add(1)).sub(begins);
  const Tensor from = repeat_interleave(counts);  // the entry of x that each product is of
  const Tensor firsts = counts.cumsum(0).sub(counts);
  const Tensor within =
      arange(from.size(0), {.device = x.device()}).sub(firsts.index_select(0, from));
  const Tensor other = begins.index_select(0, from).add(within);
  const Tensor rows = a._indices().select(0, 0).index_select(0, from);
  const Tensor columns = b.col_indices().index_select(0, other);
  const Tensor values = a._values().index_select(0, from).mul(b._values().index_select(0, other));
  return in_layout_of(x, coo(shape, stack({rows, columns}, 0), values, false).coalesce());
}

Tensor mv(const SparseTensor& x, const Tensor& y) {
  constexpr const char* op = "mv";
  require_matrix(op, x);
  require_defined(op, y);
  if (y.dim() != 1) {
    throw_error<ShapeError>(op, ": got ", x.shape(), " and ", y.shape(),
                            "; expected a matrix [m, k] and a vector [k]");
  }
  return mm(x, y.unsqueeze(1)).squeeze(1);
}

Tensor addmm(const Tensor& input, const SparseTensor& x, const Tensor& y, Scalar beta,
             Scalar alpha) {
  require_defined("addmm", input);
  const Tensor product = mm(x, y).mul(alpha);
  if (broadcast_shapes("addmm", product.shape(), input.shape()) != product.shape()) {
    throw_error<ShapeError>("addmm: got input ", input.shape(),
                            "; expected one that broadcasts to ", product.shape());
  }
  return beta.to_double() == 0.0 ? product : product.add(input.mul(beta));
}

SparseTensor sampled_addmm(const SparseTensor& input, const Tensor& x, const Tensor& y, Scalar beta,
                           Scalar alpha) {
  constexpr const char* op = "sampled_addmm";
  require_matrix(op, input);
  require_defined(op, x);
  require_defined(op, y);
  require_alike(op, input._values(), x);
  require_alike(op, x, y);
  require_inner(op, x.shape(), y.shape());
  if (input.shape() != Shape{x.size(0), y.size(1)}) {
    throw_error<ShapeError>(op, ": got input ", input.shape(), " for a product [", x.size(0), ", ",
                            y.size(1), "]");
  }
  const SparseTensor rows = input.to_sparse_csr();
  const Tensor sampled =
      csr_sampled_matmul(rows.crow_indices(), rows.col_indices(), x, y.t()).mul(alpha);
  const SparseTensor out =
      rows.with_values(beta.to_double() == 0.0 ? sampled : sampled.add(rows._values().mul(beta)));
  return input.layout() == SparseLayout::coo ? out.to_sparse_coo() : out;
}

}  // namespace kiln::sparse
