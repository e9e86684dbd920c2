// The ops on complex tensors, which those of kiln/tensor/ops.h and Tensor's methods call when an
// operand is complex. Internal to kiln/tensor.
#pragma once

#include "kiln/tensor/complex/complex_impl.h"
#include "kiln/tensor/index/index_ops.h"
#include "kiln/tensor/ops.h"

namespace kiln::complex_ops {

// Of two operands one at least is complex; the other may be real of any dtype.
Tensor add(const Tensor& x, const Tensor& y);
Tensor sub(const Tensor& x, const Tensor& y);
Tensor mul(const Tensor& x, const Tensor& y);
Tensor div(const Tensor& x, const Tensor& y);
Tensor pow(const Tensor& x, const Tensor& y);
// eq and ne; the others throw DTypeError.
Tensor compare(const char* op, const Tensor& x, const Tensor& y);
Tensor isclose(const Tensor& x, const Tensor& y, double rtol, double atol, bool equal_nan);
Tensor where(const Tensor& condition, const Tensor& x, const Tensor& y);
Tensor matmul(const Tensor& x, const Tensor& y);

// The number as the 0-d tensor that it is beside x.
Tensor number(const Tensor& x, Scalar value);

// The elementwise function of this name. Throws DTypeError where complex numbers have none.
Tensor unary(const char* name, const Tensor& x);

// x as an operand of an op whose result is then written over it: a copy when what is recorded may
// hold it.
Tensor kept(const Tensor& x, const Tensor& y);
// Makes `result` the content of x, for ops that write in place.
Tensor& assign(const char* op, Tensor& x, const Tensor& result);

// No dims: all of them.
Tensor sum(const Tensor& x, const Dims& dims, bool keepdim);
Tensor mean(const Tensor& x, const Dims& dims, bool keepdim);
Tensor var(const Tensor& x, const Dims& dims, double correction, bool keepdim);
Tensor prod(const Tensor& x, int64_t dim, bool keepdim);
Tensor cumprod(const Tensor& x, int64_t dim);
Tensor logsumexp(const Tensor& x, const Dims& dims, bool keepdim);
Tensor logcumsumexp(const Tensor& x, int64_t dim);
// log(e^x + e^y), of two complex tensors.
Tensor logaddexp(const Tensor& x, const Tensor& y);

// An index of places in z as one of places in its parts.
Tensor parts_index(const Tensor& index);
// As detail::scattered and written_at. Throws DTypeError unless the values are written or added.
Tensor scattered(const char* op, const Tensor& x, int64_t dim, const Tensor& index,
                 const Tensor& src, detail::Combine combine);
Tensor written_at(const char* op, const Tensor& x, int64_t dim, const Tensor& index,
                  const Tensor& src, detail::Combine combine);

}  // namespace kiln::complex_ops
