#include "kiln/backend/random_fill.h"
#include "kiln/tensor/complex/complex_ops.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/elementwise/scalar_fit.h"
#include "kiln/tensor/ops.h"
#include "kiln/tensor/tensor_impl.h"

namespace kiln {

using namespace detail;

namespace {

// x op= y: computed straight into x's memory when both are floats of one dtype, else computed and
// assigned.
template <class FloatOp, class General>
Tensor& binary_in_place(const char* op, Tensor& x, const Tensor& y, FloatOp f, General general) {
  if (has_complex(x, y)) [[unlikely]] {
    check_writable(op, x, y.requires_grad());
    return complex_ops::assign(op, x, general(complex_ops::kept(x, y), y));
  }
  const Value& a = value_of(op, x);
  const Value& b = value_of(op, y);
  check_same_device(op, a, b);
  check_writable(op, x, static_cast<bool>(b.node));
  if (!broadcasts_to(shape_of(b), shape_of(a))) {
    throw_error<ShapeError>(op,
                            ": the operand does not broadcast to the tensor it is written to; "
                            "got ",
                            shape_of(a), " and ", shape_of(b));
  }
  if (kind_of_value(a) == Kind::floating) {
    const Value right = cast(b, dtype_of_value(a));
    finish_in_place(op, x, f(ValueArg::in_place(a), right));
  } else {
    finish_in_place(op, x, Value(state_of(general(x, y)).value));
  }
  return x;
}

template <class FloatOp, class General>
Tensor& scalar_in_place(const char* op, Tensor& x, Scalar y, FloatOp f, General general) {
  check_writable(op, x, false);
  if (has_complex(x)) [[unlikely]]
    return complex_ops::assign(op, x, general(complex_ops::kept(x, x), y));
  const Value& a = value_of(op, x);
  if (kind_of_value(a) == Kind::floating) {
    finish_in_place(op, x, f(ValueArg::in_place(a), y));
  } else {
    finish_in_place(op, x, Value(state_of(general(x, y)).value));
  }
  return x;
}

bool is_one(Scalar s) { return s.is_integral() && s.to_int() == 1; }

// alpha y, to be added to x.
Tensor scaled(const Tensor& x, const Tensor& y, Scalar alpha) {
  if (is_one(alpha)) return y;
  if (x.dtype() != bool_ || y.dtype() != bool_) return y.mul(alpha);
  return alpha.to_bool() ? y : zeros_like(y);
}

}  // namespace

Tensor& Tensor::add_(const Tensor& other, Scalar alpha) {
  const Tensor addend = scaled(*this, other, alpha);
  return binary_in_place(
      "add_", *this, addend, [](const ValueArg& a, const Value& b) { return AD::float_add(a, b); },
      [](const Tensor& a, const Tensor& b) { return kiln::add(a, b); });
}
Tensor& Tensor::add_(Scalar other) {
  return scalar_in_place(
      "add_", *this, other, [](const ValueArg& a, Scalar s) { return AD::float_add_scalar(a, s); },
      [](const Tensor& a, Scalar s) { return kiln::add(a, s); });
}
Tensor& Tensor::sub_(const Tensor& other, Scalar alpha) {
  const Tensor addend = scaled(*this, other, alpha);
  return binary_in_place(
      "sub_", *this, addend, [](const ValueArg& a, const Value& b) { return AD::float_sub(a, b); },
      [](const Tensor& a, const Tensor& b) { return kiln::sub(a, b); });
}
Tensor& Tensor::sub_(Scalar other) {
  return scalar_in_place(
      "sub_", *this, other,
      [](const ValueArg& a, Scalar s) { return AD::float_add_scalar(a, Scalar(-s.to_double())); },
      [](const Tensor& a, Scalar s) { return kiln::sub(a, s); });
}
Tensor& Tensor::mul_(const Tensor& other) {
  return binary_in_place(
      "mul_", *this, other, [](const ValueArg& a, const Value& b) { return AD::float_mul(a, b); },
      [](const Tensor& a, const Tensor& b) { return kiln::mul(a, b); });
}
Tensor& Tensor::mul_(Scalar other) {
  return scalar_in_place(
      "mul_", *this, other, [](const ValueArg& a, Scalar s) { return AD::float_mul_scalar(a, s); },
      [](const Tensor& a, Scalar s) { return kiln::mul(a, s); });
}
Tensor& Tensor::div_(const Tensor& other) {
  return binary_in_place(
      "div_", *this, other, [](const ValueArg& a, const Value& b) { return AD::float_div(a, b); },
      [](const Tensor& a, const Tensor& b) { return kiln::div(a, b); });
}
Tensor& Tensor::div_(Scalar other) {
  return scalar_in_place(
      "div_", *this, other, [](const ValueArg& a, Scalar s) { return AD::float_div_scalar(a, s); },
      [](const Tensor& a, Scalar s) { return kiln::div(a, s); });
}
Tensor& Tensor::pow_(Scalar exponent) {
  return scalar_in_place(
      "pow_", *this, exponent,
      [](const ValueArg& a, Scalar s) { return AD::float_pow_scalar(a, s); },
      [](const Tensor& a, Scalar s) { return kiln::pow(a, s); });
}

Tensor& Tensor::clamp_(std::optional<Scalar> min, std::optional<Scalar> max) {
  check_writable("clamp_", *this, false);
  const Value& x = value_of("clamp_", *this);
  if ((min || max) && kind_of_value(x) == Kind::floating) {
    const double inf = std::numeric_limits<double>::infinity();
    finish_in_place("clamp_", *this,
                    AD::float_clamp(ValueArg::in_place(x), min ? min->to_double() : -inf,
                                    max ? max->to_double() : inf));
  } else {
    finish_in_place("clamp_", *this, Value(state_of(kiln::clamp(*this, min, max)).value));
  }
  return *this;
}

Tensor& Tensor::masked_fill_(const Tensor& mask, Scalar value) {
  check_writable("masked_fill_", *this, false);
  finish_in_place("masked_fill_", *this, Value(state_of(masked_fill(mask, value)).value));
  return *this;
}

Tensor& Tensor::copy_(const Tensor& src) {
  const TensorImpl& to = impl_of("copy_", *this);
  const TensorImpl& given = impl_of("copy_", src);
  check_writable("copy_", *this, static_cast<bool>(given.value.node));
  if (!broadcasts_to(given.shape(), to.shape())) {
    throw_error<ShapeError>("copy_: the source does not broadcast; got ", given.shape(),
                            "; expected a shape that broadcasts to ", to.shape());
  }
  // What x[i] += y ends with in Python: x[i] = x[i], after the addition in place.
  if (is_same_view(to, given)) return *this;
  const DType dtype = dtype_of_value(to.value);
  Value value = to.is_complex() || given.is_complex() ? state_of(src.to(device(), to.dtype())).value
                : src.device() == device()            ? cast(given.value, dtype)
                                           : cast(state_of(src.to(device())).value, dtype);
  TensorImpl& target = *impl_;
  switch (kind_of(dtype)) {
    case Kind::floating:
      assign_recorded(target, value);
      break;
    case Kind::integer:
      Dispatch::int_assign(target.value.inner, value.inner);
      break;
    case Kind::boolean:
      Dispatch::bool_assign(target.value.inner, value.inner);
      break;
    default:
      throw_wrong_dtype("copy_", dtype, "a floating point, integer or bool tensor");
  }
  return *this;
}

Tensor& Tensor::fill_(Scalar value) {
  check_writable("fill_", *this, false, true);
  TensorImpl& target = impl_of("fill_", *this);
  check_fits("fill_", value, target.dtype());
  if (target.is_complex() && value.to_double() != 0.0) [[unlikely]] {
    return copy_(complex_ops::number(*this, value));
  }
  if (target.value.node && autodiff::is_recording<Dispatch>()) {
    assign_recorded(target,
                    full_value(Shape{}, value, dtype_of_value(target.value), target.device()));
    return *this;
  }
  switch (target.kind()) {
    case Kind::floating:
      Dispatch::float_fill(target.value.inner, value);
      break;
    case Kind::integer:
      Dispatch::int_fill(target.value.inner, value);
      break;
    case Kind::boolean:
      Dispatch::bool_fill(target.value.inner, value);
      break;
    default:
      throw_wrong_dtype("fill_", target.dtype(), "a floating point, integer or bool tensor");
  }
  return *this;
}

namespace {

// Draws in the tensor's dtype and writes the numbers over it.
Tensor& random_in_place(const char* op, Tensor& x, Distribution distribution) {
  check_writable(op, x, false);
  const Value& value = value_of(op, x);
  if (kind_of_value(value) != Kind::floating &&
      distribution.type != Distribution::Type::bernoulli) {
    throw_wrong_dtype(op, dtype_of_value(value), "a floating point tensor");
  }
  const Shape shape = shape_of(value);
  const DType dtype = dtype_of_value(value);
  const Device device = value.inner->device();
  const RandomStream stream = default_generator().reserve(host::random_words(shape.numel(), dtype));
  switch (kind_of(dtype)) {
    case Kind::floating:
      return x.copy_(wrap(AD::float_random(shape, distribution, stream, dtype, device)));
    case Kind::integer:
      return x.copy_(wrap(Dispatch::int_random(shape, distribution, stream, dtype, device)));
    default:
      return x.copy_(wrap(AD::float_random(shape, distribution, stream, f32, device)));
  }
}

}  // namespace

Tensor& Tensor::uniform_(double low, double high) {
  if (!(low <= high)) {
    throw_error<ValueError>("uniform_: expected low <= high; got ", low, " and ", high);
  }
  if (has_complex(*this)) [[unlikely]] {
    check_writable("uniform_", *this, false);
    return copy_(from_parts(parts_of(zeros_like(*this)).uniform_(low, high)));
  }
  return random_in_place("uniform_", *this, Distribution::uniform(low, high));
}

Tensor& Tensor::normal_(double mean, double std) {
  if (!(std >= 0)) throw_error<ValueError>("normal_: expected std >= 0; got ", std);
  if (has_complex(*this)) [[unlikely]] {
    check_writable("normal_", *this, false);
    return copy_(randn(shape(), {dtype(), device()}).mul(std).add(mean));
  }
  return random_in_place("normal_", *this, Distribution::normal(mean, std));
}

Tensor& Tensor::bernoulli_(double p) {
  if (!(p >= 0 && p <= 1)) throw_error<ValueError>("bernoulli_: expected 0 <= p <= 1; got ", p);
  return random_in_place("bernoulli_", *this, Distribution::bernoulli(p));
}

}  // namespace kiln
