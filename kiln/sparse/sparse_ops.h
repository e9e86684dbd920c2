// Functions of sparse tensors. All are differentiable, to any order, in values and in dense
// operands. Operands of one function have one dtype and one device: DTypeError, DeviceError.
// Functions that combine entries coalesce COO tensors first. A function of CSR gives CSR.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "kiln/sparse/sparse_tensor.h"

namespace kiln {

// x + alpha * y, entry by entry. Shapes and sparse dims must be equal: ShapeError.
SparseTensor add(const SparseTensor& x, const SparseTensor& y, Scalar alpha = 1);
// Dense plus sparse is dense: x + alpha * y, of one shape.
Tensor add(const Tensor& x, const SparseTensor& y, Scalar alpha = 1);
SparseTensor sub(const SparseTensor& x, const SparseTensor& y, Scalar alpha = 1);
// Products of elements: what both store; what x stores times a dense tensor, which broadcasts to
// x's shape.
SparseTensor mul(const SparseTensor& x, Scalar y);
SparseTensor mul(const SparseTensor& x, const SparseTensor& y);
SparseTensor mul(const SparseTensor& x, const Tensor& y);
// Quotients of what x stores. Elsewhere 0 stays 0, also over 0.
SparseTensor div(const SparseTensor& x, Scalar y);
SparseTensor div(const SparseTensor& x, const Tensor& y);

inline SparseTensor operator+(const SparseTensor& x, const SparseTensor& y) { return add(x, y); }
inline Tensor operator+(const Tensor& x, const SparseTensor& y) { return add(x, y); }
inline Tensor operator+(const SparseTensor& x, const Tensor& y) { return add(y, x); }
inline SparseTensor operator-(const SparseTensor& x, const SparseTensor& y) { return sub(x, y); }
inline Tensor operator-(const Tensor& x, const SparseTensor& y) { return add(x, y, -1); }
inline SparseTensor operator*(const SparseTensor& x, Scalar y) { return mul(x, y); }
inline SparseTensor operator*(Scalar x, const SparseTensor& y) { return mul(y, x); }
inline SparseTensor operator*(const SparseTensor& x, const SparseTensor& y) { return mul(x, y); }
inline SparseTensor operator*(const SparseTensor& x, const Tensor& y) { return mul(x, y); }
inline SparseTensor operator*(const Tensor& x, const SparseTensor& y) { return mul(y, x); }
inline SparseTensor operator/(const SparseTensor& x, Scalar y) { return div(x, y); }
inline SparseTensor operator-(const SparseTensor& x) { return mul(x, -1); }

// Entries along an existing dim. Throws ShapeError unless the other sizes and the sparse dims are
// equal.
SparseTensor cat(std::span<const SparseTensor> tensors, int64_t dim = 0);

namespace sparse {

// The values after a function that keeps 0: map(x, [](const Tensor& v) { return v.sqrt(); }). The
// function sees each index once.
template <class F>
SparseTensor map(const SparseTensor& x, F&& f) {
  const SparseTensor whole = x.coalesce();
  return whole.with_values(f(whole._values()));
}

// Products of matrices: sparse [m, k] times dense [k, n] is dense; dense times sparse is dense;
// sparse times sparse is sparse, with an entry wherever an entry of x meets one of y. Matrices
// only: ShapeError.
Tensor mm(const SparseTensor& x, const Tensor& y);
Tensor mm(const Tensor& x, const SparseTensor& y);
SparseTensor mm(const SparseTensor& x, const SparseTensor& y);
Tensor mv(const SparseTensor& x, const Tensor& y);  // [m, k] times [k]
// beta * input + alpha * (x @ y); the input broadcasts. With beta 0 it is not read.
Tensor addmm(const Tensor& input, const SparseTensor& x, const Tensor& y, Scalar beta = 1,
             Scalar alpha = 1);
// beta * input + alpha * (x @ y) at the places of `input` alone: x [m, n], y [n, k], input [m, k].
SparseTensor sampled_addmm(const SparseTensor& input, const Tensor& x, const Tensor& y,
                           Scalar beta = 1, Scalar alpha = 1);

// The sum of everything: 0-d.
Tensor sum(const SparseTensor& x);
// Over dims. The result is dense where no sparse dim is left: `dense` is defined then, otherwise
// `sparse`.
struct Sum {
  SparseTensor sparse;
  Tensor dense;
};
Sum sum(const SparseTensor& x, const Dims& dims);

// Over the stored elements along a dim; others count as -inf, whose softmax is 0. Floats only.
SparseTensor softmax(const SparseTensor& x, int64_t dim);
SparseTensor log_softmax(const SparseTensor& x, int64_t dim);

// Slices of a dim that a 1-d index of integers names, as often as it does. IndexError.
SparseTensor index_select(const SparseTensor& x, int64_t dim, const Tensor& index);
// One slice, without the dim; dense where no sparse dim is left.
Sum select(const SparseTensor& x, int64_t dim, int64_t index);

}  // namespace sparse
}  // namespace kiln
