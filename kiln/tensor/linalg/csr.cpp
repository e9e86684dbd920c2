#include "kiln/tensor/linalg/csr.h"

#include "kiln/tensor/creation.h"
#include "kiln/tensor/index/sorting.h"
#include "kiln/tensor/ops.h"
#include "kiln/tensor/tensor_impl.h"

namespace kiln {

using namespace detail;

namespace {

// The parts on the device of the first operand, with indices as i64.
struct CsrParts {
  Tensor crow;
  Tensor col;
};

CsrParts csr_parts(const char* op, const Tensor& crow, const Tensor& col, const Tensor& operand) {
  const Value& beside = impl_of(op, operand).value;
  CsrParts out{wrap(index_value(op, crow, beside)), wrap(index_value(op, col, beside))};
  if (out.crow.dim() != 1 || out.col.dim() != 1 || out.crow.size(0) == 0) {
    throw_error<ShapeError>(op, ": got crow ", crow.shape(), " and col ", col.shape(),
                            "; expected [rows + 1] and [nnz]");
  }
  return out;
}

void check_csr_pair(const char* op, const Tensor& x, const Tensor& y) {
  check_same_device(op, impl_of(op, x).value, impl_of(op, y).value);
  if (x.dtype() != y.dtype()) {
    throw_error<DTypeError>(op, ": got operands of dtype ", x.dtype(), " and ", y.dtype(),
                            "; expected one dtype");
  }
}

void check_csr_matrix(const char* op, const char* what, const Tensor& x) {
  if (x.dim() == 2) return;
  throw_error<ShapeError>(op, ": got ", what, " ", x.shape(), "; expected a matrix");
}

Tensor csr_rows_of(const CsrParts& parts) {
  const Tensor places = arange(parts.col.size(0), {.device = parts.col.device()});
  return searchsorted(parts.crow.slice(0, 1), places, true);
}

Tensor csr_product(const char* op, const Tensor& crow, const Tensor& col, const Tensor& values,
                   const Tensor& dense, int64_t columns, bool transposed) {
  const CsrParts parts = csr_parts(op, crow, col, values);
  check_csr_pair(op, values, dense);
  check_csr_matrix(op, "a dense operand", dense);
  const int64_t rows = parts.crow.size(0) - 1;
  if (values.dim() != 1 || values.size(0) != parts.col.size(0)) {
    throw_error<ShapeError>(op, ": got values ", values.shape(), "; expected one for each of ",
                            parts.col.size(0), " columns");
  }
  if (columns < 0 || dense.size(0) != (transposed ? rows : columns)) {
    throw_error<ShapeError>(op, ": got a dense operand ", dense.shape(), " beside a sparse one [",
                            rows, ", ", columns, "]; expected as many rows as the sparse one has ",
                            transposed ? "rows" : "columns");
  }
  if (is_floating_point(values.dtype())) {
    return wrap(AD::float_csr_matmul(value_of(op, parts.crow).inner, value_of(op, parts.col).inner,
                                     value_of(op, values), value_of(op, dense), columns,
                                     transposed));
  }
  // Integers and complex numbers.
  const Tensor owners = csr_rows_of(parts);
  const Tensor each =
      dense.index_select(0, transposed ? owners : parts.col).mul(values.unsqueeze(1));
  return dense.new_zeros({transposed ? columns : rows, dense.size(1)})
      .index_add(0, transposed ? parts.col : owners, each);
}

}  // namespace

Tensor csr_matmul(const Tensor& crow, const Tensor& col, const Tensor& values,
                  const Tensor& dense) {
  constexpr const char* op = "csr_matmul";
  static_cast<void>(impl_of(op, dense));
  check_csr_matrix(op, "a dense operand", dense);
  return csr_product(op, crow, col, values, dense, dense.size(0), false);
}

Tensor csr_transposed_matmul(const Tensor& crow, const Tensor& col, const Tensor& values,
                             const Tensor& dense, int64_t columns) {
  return csr_product("csr_transposed_matmul", crow, col, values, dense, columns, true);
}

Tensor csr_sampled_matmul(const Tensor& crow, const Tensor& col, const Tensor& x, const Tensor& y) {
  constexpr const char* op = "csr_sampled_matmul";
  const CsrParts parts = csr_parts(op, crow, col, x);
  check_csr_pair(op, x, y);
  check_csr_matrix(op, "x", x);
  check_csr_matrix(op, "y", y);
  if (x.size(1) != y.size(1) || x.size(0) != parts.crow.size(0) - 1) {
    throw_error<ShapeError>(op, ": got x ", x.shape(), " and y ", y.shape(), " for ",
                            parts.crow.size(0) - 1,
                            " rows; expected x [rows, n] and y [columns, n]");
  }
  if (is_floating_point(x.dtype())) {
    return wrap(AD::float_csr_sampled_matmul(value_of(op, parts.crow).inner,
                                             value_of(op, parts.col).inner, value_of(op, x),
                                             value_of(op, y)));
  }
  return x.index_select(0, csr_rows_of(parts))
      .mul(y.index_select(0, parts.col))
      .sum(1)
      .to(x.dtype());
}

}  // namespace kiln
