// How the tensor layer calls the functions of functions.h. Internal to kiln/tensor.
#pragma once

#include "kiln/backend/functions.h"
#include "kiln/tensor/tensor_impl.h"

namespace kiln::detail {

// f of x; integers and bools are computed in the default dtype.
Tensor unary_function(const char* op, const TensorArg& x, const UnaryFunction& f);

// Two operands on one device, of shapes that broadcast, in the dtype that both are computed in.
struct Promoted {
  // With `floats`, integers and bools become the default dtype.
  Promoted(const char* op, const TensorArg& x, const TensorArg& y, bool floats);
  ValueArg left() const { return x_cast ? ValueArg(*x_cast) : *x_arg; }
  ValueArg right() const { return y_cast ? ValueArg(*y_cast) : *y_arg; }
  const ErasedTensor& left_inner() const { return x_cast ? x_cast->inner : (*x_arg)->inner; }
  const ErasedTensor& right_inner() const { return y_cast ? y_cast->inner : (*y_arg)->inner; }

  DType dtype;
  std::optional<ValueArg> x_arg;
  std::optional<ValueArg> y_arg;
  std::optional<Value> x_cast;
  std::optional<Value> y_cast;
};

// f of two floats, integers as floats.
Tensor binary_function(const char* op, const TensorArg& x, const TensorArg& y,
                       const BinaryFunction& f);
// f of two floats, or g of two integers. DTypeError for bools.
Tensor binary_function(const char* op, const TensorArg& x, const TensorArg& y,
                       const BinaryFunction& f, IntFunction g);
// g of two integers. DTypeError for others.
Tensor int_function(const char* op, const TensorArg& x, const TensorArg& y, IntFunction g);

// A number as an operand for x: a 0-d tensor that changes x's dtype only when the number is of a
// larger kind.
Tensor number_for(const char* op, const Tensor& x, Scalar number);
// The same for an op that computes in floats: beside integers the number keeps its value, as -3
// beside u8.
Tensor float_number_for(const char* op, const Tensor& x, Scalar number);

// The same in place: x keeps its dtype. Integers are written back only where the result is whole.
Tensor& unary_function_(const char* op, Tensor& x, const UnaryFunction& f);
Tensor& binary_function_(const char* op, Tensor& x, const Tensor& y, const BinaryFunction& f);

// Writes `result` over x, as an op in place does: rounded to x's dtype; DTypeError when it is of a
// larger kind, ShapeError when it has another shape.
Tensor& write_over(const char* op, Tensor& x, const Tensor& result);

// What an op in place reads: x, or, when it is tracked, a copy, since what the derivative needs of
// x must outlive the write.
Tensor read_before_write(const char* op, const Tensor& x);

}  // namespace kiln::detail
