#include <cmath>

#include "kiln/tensor/complex/complex_impl.h"
#include "kiln/tensor/complex/complex_ops.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/ops.h"
#include "kiln/tensor/tensor_impl.h"

namespace kiln {

using namespace detail;

namespace {

void check_shapes(const char* op, const Value& x, const Value& y) {
  if (!(shape_of(x) == shape_of(y))) broadcast_shapes(op, shape_of(x), shape_of(y));
}

// What a binary op needs to know of its operands before it runs: both on one device, shapes that
// broadcast.
struct Operands {
  Operands(const char* op, const TensorArg& x, const TensorArg& y)
      : left(lent_or_given(op, x, y)), right(lent_or_given(op, y, x)) {
    check_same_device(op, left, right);
    check_shapes(op, left, right);
  }
  bool same_float() const {
    return dtype_of_value(left) == dtype_of_value(right) && kind_of_value(left) == Kind::floating;
  }
  // A tensor that is the other operand too cannot be given away.
  static ValueArg lent_or_given(const char* op, const TensorArg& x, const TensorArg& other) {
    return &x.get() == &other.get() ? ValueArg(value_of(op, x)) : arg_of(op, x);
  }
  ValueArg left;
  ValueArg right;
};

// Computes in the promoted dtype. Integers and bools go to `i` as ints, or, with `floats`, to `f`
// as floats.
template <class FloatOp, class IntOp>
Tensor binary(const char* op, const TensorArg& x, const TensorArg& y, FloatOp f, IntOp i) {
  const Operands operands(op, x, y);
  if (operands.same_float()) [[likely]]
    return wrap(f(operands.left, operands.right));
  DType common = result_type(op, operands.left, operands.right);
  if constexpr (std::is_same_v<IntOp, std::nullptr_t>) {
    if (kind_of(common) != Kind::floating) common = default_dtype();
    return wrap(f(cast(operands.left, common), cast(operands.right, common)));
  } else {
    if (kind_of(common) == Kind::floating) {
      return wrap(f(cast(operands.left, common), cast(operands.right, common)));
    }
    const Value a = cast(operands.left, common);
    const Value b = cast(operands.right, common);
    return wrap(i(a.inner, b.inner, common));
  }
}

[[noreturn]] void throw_bool_op(const char* op, const char* instead) {
  throw_error<DTypeError>(op, ": is not defined for bool tensors; got bool and bool; expected ",
                          instead);
}

// An op of a tensor and a number. `f(value, scalar)` runs in a floating point dtype, `i(inner,
// scalar)` in an integer one.
template <class FloatOp, class IntOp>
Tensor with_scalar(const char* op, const TensorArg& x, Scalar y, FloatOp f, IntOp i) {
  const ValueArg value = arg_of(op, x);
  const DType dtype = dtype_of_value(value);
  if (kind_of(dtype) == Kind::floating) [[likely]]
    return wrap(f(value, y));
  DType common = result_type(op, value, y);
  if constexpr (std::is_same_v<IntOp, std::nullptr_t>) {
    if (kind_of(common) != Kind::floating) common = default_dtype();
    return wrap(f(cast(value, common), y));
  } else {
    if (kind_of(common) == Kind::floating) return wrap(f(cast(value, common), y));
    const Value a = cast(value, common);
    return wrap(i(a.inner, y, common));
  }
}

ErasedTensor int_or_bool(ErasedTensor (*op)(const ErasedTensor&, const ErasedTensor&),
                         ErasedTensor (*bool_op)(const ErasedTensor&, const ErasedTensor&),
                         const ErasedTensor& a, const ErasedTensor& b) {
  return a->dtype() == bool_ ? bool_op(a, b) : op(a, b);
}

// alpha y for the forms x + alpha y, in the dtype of x + y: alpha has no part in that.
TensorArg scaled(const char* op, const Tensor& x, const Tensor& y, Scalar alpha, Tensor& holder) {
  if (alpha.is_integral() && alpha.to_int() == 1) return y;
  if (has_complex(x, y)) {
    holder = mul(y.to(complex_result_type(op, x, y)), alpha);
    return holder;
  }
  const DType common = result_type(op, value_of(op, x), value_of(op, y));
  if (kind_of(common) != Kind::floating && alpha.is_floating_point()) {
    throw_error<DTypeError>(op, ": alpha must be a whole number for ", common, " tensors; got ",
                            alpha.to_double());
  }
  if (common == bool_) {
    holder = alpha.to_bool() ? y : zeros_like(y);
  } else {
    holder = mul(y.to(common), alpha);
  }
  return holder;
}

}  // namespace

Tensor add(TensorArg x, TensorArg y) {
  if (has_complex(x, y)) [[unlikely]]
    return complex_ops::add(x, y);
  return binary(
      "add", x, y, [](const ValueArg& a, const ValueArg& b) { return AD::float_add(a, b); },
      [](const ErasedTensor& a, const ErasedTensor& b, DType) {
        return int_or_bool([](auto& p, auto& q) { return Dispatch::int_add(p, q); },
                           [](auto& p, auto& q) { return Dispatch::bool_or(p, q); }, a, b);
      });
}

Tensor sub(TensorArg x, TensorArg y) {
  if (has_complex(x, y)) [[unlikely]]
    return complex_ops::sub(x, y);
  return binary(
      "sub", x, y, [](const ValueArg& a, const ValueArg& b) { return AD::float_sub(a, b); },
      [](const ErasedTensor& a, const ErasedTensor& b, DType common) {
        if (common == bool_) throw_bool_op("sub", "logical_xor, or integers");
        return Dispatch::int_sub(a, b);
      });
}

Tensor mul(TensorArg x, TensorArg y) {
  if (has_complex(x, y)) [[unlikely]]
    return complex_ops::mul(x, y);
  return binary(
      "mul", x, y, [](const ValueArg& a, const ValueArg& b) { return AD::float_mul(a, b); },
      [](const ErasedTensor& a, const ErasedTensor& b, DType) {
        return int_or_bool([](auto& p, auto& q) { return Dispatch::int_mul(p, q); },
                           [](auto& p, auto& q) { return Dispatch::bool_and(p, q); }, a, b);
      });
}

Tensor div(TensorArg x, TensorArg y) {
  if (has_complex(x, y)) [[unlikely]]
    return complex_ops::div(x, y);
  return binary(
      "div", x, y, [](const ValueArg& a, const ValueArg& b) { return AD::float_div(a, b); },
      nullptr);
}

Tensor remainder(TensorArg x, TensorArg y) {
  return binary(
      "remainder", x, y,
      [](const ValueArg& a, const ValueArg& b) { return AD::float_remainder(a, b); },
      [](const ErasedTensor& a, const ErasedTensor& b, DType common) {
        if (common == bool_) throw_bool_op("remainder", "integers or floats");
        return Dispatch::int_remainder(a, b);
      });
}

Tensor floor_divide(TensorArg x, TensorArg y) {
  return binary(
      "floor_divide", x, y,
      [](const ValueArg& a, const ValueArg& b) {
        return AD::float_binary(a, b, BinaryFunction::Type::floor_divide);
      },
      [](const ErasedTensor& a, const ErasedTensor& b, DType common) {
        if (common == bool_) throw_bool_op("floor_divide", "integers or floats");
        return Dispatch::int_binary(a, b, IntFunction::floor_divide);
      });
}

Tensor pow(TensorArg x, TensorArg y) {
  if (has_complex(x, y)) [[unlikely]]
    return complex_ops::pow(x, y);
  const Value& base = value_of("pow", x);
  const DType common = result_type("pow", base, value_of("pow", y));
  if (kind_of(common) != Kind::floating) {
    const DType ints = common == bool_ ? i64 : common;
    const Value exponents = cast(value_of("pow", y), ints);
    check_same_device("pow", base, exponents);
    broadcast_shapes("pow", shape_of(base), shape_of(exponents));
    return wrap(Dispatch::int_binary(cast(base, ints).inner, exponents.inner, IntFunction::pow));
  }
  return binary(
      "pow", x, y, [](const ValueArg& a, const ValueArg& b) { return AD::float_pow(a, b); },
      nullptr);
}

Tensor atan2(TensorArg y, TensorArg x) {
  return binary(
      "atan2", y, x, [](const ValueArg& a, const ValueArg& b) { return AD::float_atan2(a, b); },
      nullptr);
}

Tensor maximum(TensorArg x, TensorArg y) {
  return binary(
      "maximum", x, y, [](const ValueArg& a, const ValueArg& b) { return AD::float_maximum(a, b); },
      [](const ErasedTensor& a, const ErasedTensor& b, DType) {
        return int_or_bool([](auto& p, auto& q) { return Dispatch::int_maximum(p, q); },
                           [](auto& p, auto& q) { return Dispatch::bool_or(p, q); }, a, b);
      });
}

Tensor minimum(TensorArg x, TensorArg y) {
  return binary(
      "minimum", x, y, [](const ValueArg& a, const ValueArg& b) { return AD::float_minimum(a, b); },
      [](const ErasedTensor& a, const ErasedTensor& b, DType) {
        return int_or_bool([](auto& p, auto& q) { return Dispatch::int_minimum(p, q); },
                           [](auto& p, auto& q) { return Dispatch::bool_and(p, q); }, a, b);
      });
}

// ---- With a number

Tensor add(TensorArg x, Scalar y) {
  if (has_complex(x)) [[unlikely]]
    return complex_ops::add(x, complex_ops::number(x, y));
  return with_scalar(
      "add", x, y, [](const ValueArg& a, Scalar s) { return AD::float_add_scalar(a, s); },
      [](const ErasedTensor& a, Scalar s, DType common) {
        if (common == bool_) return Dispatch::bool_or(a, scalar_value(s, bool_, a->device()).inner);
        return Dispatch::int_add_scalar(a, s);
      });
}

Tensor sub(TensorArg x, Scalar y) {
  if (has_complex(x)) [[unlikely]]
    return complex_ops::sub(x, complex_ops::number(x, y));
  return with_scalar(
      "sub", x, y,
      [](const ValueArg& a, Scalar s) { return AD::float_add_scalar(a, Scalar(-s.to_double())); },
      [](const ErasedTensor& a, Scalar s, DType common) {
        if (common == bool_) throw_bool_op("sub", "logical_xor, or integers");
        return Dispatch::int_sub(a, scalar_value(s, common, a->device()).inner);
      });
}

Tensor sub(Scalar x, TensorArg y) {
  if (has_complex(y)) [[unlikely]]
    return complex_ops::sub(complex_ops::number(y, x), y);
  return with_scalar(
      "sub", y, x, [](const ValueArg& a, Scalar s) { return AD::float_rsub_scalar(a, s); },
      [](const ErasedTensor& a, Scalar s, DType common) {
        if (common == bool_) throw_bool_op("sub", "logical_xor, or integers");
        return Dispatch::int_rsub_scalar(a, s);
      });
}

Tensor mul(TensorArg x, Scalar y) {
  if (has_complex(x)) [[unlikely]]
    return complex_ops::mul(x, complex_ops::number(x, y));
  return with_scalar(
      "mul", x, y, [](const ValueArg& a, Scalar s) { return AD::float_mul_scalar(a, s); },
      [](const ErasedTensor& a, Scalar s, DType common) {
        if (common == bool_) {
          return Dispatch::bool_and(a, scalar_value(s, bool_, a->device()).inner);
        }
        return Dispatch::int_mul_scalar(a, s);
      });
}

Tensor div(TensorArg x, Scalar y) {
  if (has_complex(x)) [[unlikely]]
    return complex_ops::div(x, complex_ops::number(x, y));
  return with_scalar(
      "div", x, y, [](const ValueArg& a, Scalar s) { return AD::float_div_scalar(a, s); }, nullptr);
}

Tensor div(Scalar x, TensorArg y) {
  if (has_complex(y)) [[unlikely]]
    return complex_ops::div(complex_ops::number(y, x), y);
  return with_scalar(
      "div", y, x, [](const ValueArg& a, Scalar s) { return AD::float_rdiv_scalar(a, s); },
      nullptr);
}

Tensor remainder(TensorArg x, Scalar y) {
  return with_scalar(
      "remainder", x, y,
      [](const ValueArg& a, Scalar s) { return AD::float_remainder_scalar(a, s); },
      [](const ErasedTensor& a, Scalar s, DType common) {
        if (common == bool_) throw_bool_op("remainder", "integers or floats");
        return Dispatch::int_remainder(a, scalar_value(s, common, a->device()).inner);
      });
}

Tensor floor_divide(TensorArg x, Scalar y) {
  const Value& value = value_of("floor_divide", x);
  const DType common = result_type("floor_divide", value, y);
  return floor_divide(x, wrap(scalar_value(y, common, value.inner->device())));
}

Tensor pow(TensorArg x, Scalar y) {
  if (has_complex(x)) [[unlikely]]
    return complex_ops::pow(x, complex_ops::number(x, y));
  const Value& value = value_of("pow", x);
  if (kind_of_value(value) != Kind::floating && !y.is_floating_point()) {
    if (y.to_int() < 0) {
      throw_error<ValueError>("pow: integers to negative integer powers are not integers; got ",
                              y.to_int(), "; expected an exponent >= 0, or a floating point one");
    }
    const DType common = result_type("pow", value, y);
    if (common == bool_) return y.to_bool() ? x->clone() : ones(x->shape(), {bool_, x->device()});
    return pow(x, wrap(scalar_value(y, common, value.inner->device())));
  }
  return with_scalar(
      "pow", x, y, [](const ValueArg& a, Scalar s) { return AD::float_pow_scalar(a, s); }, nullptr);
}

Tensor pow(Scalar x, TensorArg y) {
  if (has_complex(y)) [[unlikely]]
    return complex_ops::pow(complex_ops::number(y, x), y);
  const Value& value = value_of("pow", y);
  return pow(wrap(scalar_value(x, result_type("pow", value, x), value.inner->device())), y);
}

Tensor clamp(TensorArg x, std::optional<Scalar> min, std::optional<Scalar> max) {
  if (!min && !max) {
    throw_error<ValueError>("clamp: got neither bound; expected min, max or both");
  }
  const double inf = std::numeric_limits<double>::infinity();
  const ValueArg value = arg_of("clamp", x);
  DType common = result_type("clamp", value, min ? *min : *max);
  if (max && kind_of(common) != Kind::floating) {
    common = promote_types(common, result_type("clamp", value, *max));
  }
  if (kind_of(common) == Kind::floating) {
    if ((min && std::isnan(min->to_double())) || (max && std::isnan(max->to_double()))) {
      return full(shape_of(value), std::numeric_limits<double>::quiet_NaN(),
                  {common, value->inner->device()});
    }
    return wrap(AD::float_clamp(cast(value, common), min ? min->to_double() : -inf,
                                max ? max->to_double() : inf));
  }
  if (common == bool_) throw_bool_op("clamp", "integers or floats");
  const Value a = cast(value, common);
  return wrap(Dispatch::int_clamp(a.inner,
                                  min ? min->to_int() : std::numeric_limits<int64_t>::min(),
                                  max ? max->to_int() : std::numeric_limits<int64_t>::max()));
}

// ---- Members

Tensor Tensor::add(const Tensor& other, Scalar alpha) const {
  Tensor holder;
  return kiln::add(*this, scaled("add", *this, other, alpha, holder));
}
Tensor Tensor::add(Scalar other) const { return kiln::add(*this, other); }
Tensor Tensor::sub(const Tensor& other, Scalar alpha) const {
  Tensor holder;
  return kiln::sub(*this, scaled("sub", *this, other, alpha, holder));
}
Tensor Tensor::sub(Scalar other) const { return kiln::sub(*this, other); }
Tensor Tensor::mul(const Tensor& other) const { return kiln::mul(*this, other); }
Tensor Tensor::mul(Scalar other) const { return kiln::mul(*this, other); }
Tensor Tensor::div(const Tensor& other) const { return kiln::div(*this, other); }
Tensor Tensor::div(Scalar other) const { return kiln::div(*this, other); }
Tensor Tensor::floor_divide(const Tensor& other) const { return kiln::floor_divide(*this, other); }
Tensor Tensor::floor_divide(Scalar other) const { return kiln::floor_divide(*this, other); }
Tensor Tensor::remainder(const Tensor& other) const { return kiln::remainder(*this, other); }
Tensor Tensor::remainder(Scalar other) const { return kiln::remainder(*this, other); }
Tensor Tensor::pow(const Tensor& exponent) const { return kiln::pow(*this, exponent); }
Tensor Tensor::pow(Scalar exponent) const { return kiln::pow(*this, exponent); }
Tensor Tensor::maximum(const Tensor& other) const { return kiln::maximum(*this, other); }
Tensor Tensor::minimum(const Tensor& other) const { return kiln::minimum(*this, other); }
Tensor Tensor::clamp(std::optional<Scalar> min, std::optional<Scalar> max) const {
  return kiln::clamp(*this, min, max);
}

}  // namespace kiln
