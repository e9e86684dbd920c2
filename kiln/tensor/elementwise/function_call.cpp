#include "kiln/tensor/elementwise/function_call.h"

#include "kiln/tensor/complex/complex_ops.h"

namespace kiln::detail {

Tensor unary_function(const char* op, const TensorArg& x, const UnaryFunction& f) {
  const ValueArg value = arg_of(op, x);
  const Kind kind = kind_of_value(value);
  if (kind == Kind::floating) return wrap(AD::float_unary(value, f));
  if (kind != Kind::integer && kind != Kind::boolean) {
    throw_wrong_dtype(op, dtype_of_value(value), "a floating point, integer or bool tensor");
  }
  return wrap(AD::float_unary(cast(value, default_dtype()), f));
}

Promoted::Promoted(const char* op, const TensorArg& x, const TensorArg& y, bool floats) {
  const bool same = &x.get() == &y.get();  // an operand that is the other too cannot be given away
  x_arg.emplace(same ? ValueArg(value_of(op, x)) : arg_of(op, x));
  y_arg.emplace(same ? ValueArg(value_of(op, y)) : arg_of(op, y));
  check_same_device(op, *x_arg, *y_arg);
  if (!(shape_of(*x_arg) == shape_of(*y_arg))) {
    broadcast_shapes(op, shape_of(*x_arg), shape_of(*y_arg));
  }
  dtype = result_type(op, *x_arg, *y_arg);
  if (floats && kind_of(dtype) != Kind::floating) {
    if (kind_of(dtype) != Kind::integer && kind_of(dtype) != Kind::boolean) {
      throw_wrong_dtype(op, dtype, "floating point, integer or bool tensors");
    }
    dtype = default_dtype();
  }
  if (dtype_of_value(*x_arg) != dtype) x_cast = cast(*x_arg, dtype);
  if (dtype_of_value(*y_arg) != dtype) y_cast = cast(*y_arg, dtype);
}

Tensor binary_function(const char* op, const TensorArg& x, const TensorArg& y,
                       const BinaryFunction& f) {
  const Promoted p(op, x, y, true);
  return wrap(AD::float_binary(p.left(), p.right(), f));
}

Tensor binary_function(const char* op, const TensorArg& x, const TensorArg& y,
                       const BinaryFunction& f, IntFunction g) {
  const Promoted p(op, x, y, false);
  switch (kind_of(p.dtype)) {
    case Kind::floating:
      return wrap(AD::float_binary(p.left(), p.right(), f));
    case Kind::integer:
      return wrap(Dispatch::int_binary(p.left_inner(), p.right_inner(), g));
    default:
      throw_wrong_dtype(op, p.dtype, "integer or floating point tensors");
  }
}

Tensor int_function(const char* op, const TensorArg& x, const TensorArg& y, IntFunction g) {
  const Promoted p(op, x, y, false);
  if (kind_of(p.dtype) != Kind::integer) throw_wrong_dtype(op, p.dtype, "integer tensors");
  return wrap(Dispatch::int_binary(p.left_inner(), p.right_inner(), g));
}

Tensor number_for(const char* op, const Tensor& x, Scalar number) {
  const Value& value = value_of(op, x);
  return wrap(scalar_value(number, result_type(op, value, number), value.inner->device()));
}

Tensor float_number_for(const char* op, const Tensor& x, Scalar number) {
  const Value& value = value_of(op, x);
  DType dtype = result_type(op, value, number);
  if (kind_of(dtype) != Kind::floating) dtype = default_dtype();
  return wrap(scalar_value(number, dtype, value.inner->device()));
}

Tensor& unary_function_(const char* op, Tensor& x, const UnaryFunction& f) {
  const Value& value = value_of(op, x);
  if (kind_of_value(value) != Kind::floating) {
    return write_over(op, x, unary_function(op, read_before_write(op, x), f));
  }
  check_writable(op, x, false);
  finish_in_place(op, x, AD::float_unary(ValueArg::in_place(value), f));
  return x;
}

Tensor& binary_function_(const char* op, Tensor& x, const Tensor& y, const BinaryFunction& f) {
  const Value& a = value_of(op, x);
  const Value& b = value_of(op, y);
  const bool fits = kind_of_value(a) == Kind::floating && dtype_of_value(a) == dtype_of_value(b) &&
                    broadcasts_to(shape_of(b), shape_of(a));
  if (!fits) return write_over(op, x, binary_function(op, read_before_write(op, x), y, f));
  check_same_device(op, a, b);
  check_writable(op, x, static_cast<bool>(b.node));
  finish_in_place(op, x, AD::float_binary(ValueArg::in_place(a), b, f));
  return x;
}

Tensor read_before_write(const char* op, const Tensor& x) {
  check_writable(op, x, false);
  return x.requires_grad() && autodiff::is_recording<Dispatch>() ? x.clone() : x;
}

Tensor& write_over(const char* op, Tensor& x, const Tensor& result) {
  check_writable(op, x, result.requires_grad());
  if (has_complex(x)) return complex_ops::assign(op, x, result.to(x.dtype()));
  finish_in_place(op, x, Value(value_of(op, result)));
  return x;
}

}  // namespace kiln::detail
