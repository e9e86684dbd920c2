#include "kiln/tensor/elementwise/in_place.h"

#include "kiln/tensor/complex/complex_impl.h"
#include "kiln/tensor/complex/complex_ops.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/elementwise/function_call.h"
#include "kiln/tensor/elementwise/scalar_fit.h"
#include "kiln/tensor/ops.h"
#include "kiln/tensor/sequences.h"
#include "kiln/tensor/tensor_impl.h"

namespace kiln {

using namespace detail;
using Unary = UnaryFunction::Type;

// ---- Methods of Tensor

namespace {

// x op= y: computed straight into x's memory when both are floats, or integers of one dtype, else
// computed and assigned. `i` is null where integers have no such op.
template <class FloatOp, class IntOp, class General>
Tensor& binary_in_place(const char* op, Tensor& x, const Tensor& y, FloatOp f,
                        [[maybe_unused]] IntOp i, General general) {
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
    return x;
  }
  if constexpr (!std::is_same_v<IntOp, std::nullptr_t>) {
    if (kind_of_value(a) == Kind::integer && dtype_of_value(b) == dtype_of_value(a)) {
      finish_in_place(op, x, Value(i(Arg<ErasedTensor>::in_place(a.inner), b.inner)));
      return x;
    }
  }
  finish_in_place(op, x, Value(state_of(general(x, y)).value));
  return x;
}

template <class FloatOp, class IntOp, class General>
Tensor& scalar_in_place(const char* op, Tensor& x, Scalar y, FloatOp f, [[maybe_unused]] IntOp i,
                        General general) {
  check_writable(op, x, false);
  if (has_complex(x)) [[unlikely]]
    return complex_ops::assign(op, x, general(complex_ops::kept(x, x), y));
  const Value& a = value_of(op, x);
  if (kind_of_value(a) == Kind::floating) {
    finish_in_place(op, x, f(ValueArg::in_place(a), y));
    return x;
  }
  if constexpr (!std::is_same_v<IntOp, std::nullptr_t>) {
    if (kind_of_value(a) == Kind::integer && y.is_integral()) {
      finish_in_place(op, x, Value(i(Arg<ErasedTensor>::in_place(a.inner), y)));
      return x;
    }
  }
  finish_in_place(op, x, Value(state_of(general(x, y)).value));
  return x;
}

using IntArg = Arg<ErasedTensor>;

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
      [](const IntArg& a, const ErasedTensor& b) { return Dispatch::int_add(a, b); },
      [](const Tensor& a, const Tensor& b) { return kiln::add(a, b); });
}
Tensor& Tensor::add_(Scalar other) {
  return scalar_in_place(
      "add_", *this, other, [](const ValueArg& a, Scalar s) { return AD::float_add_scalar(a, s); },
      [](const IntArg& a, Scalar s) { return Dispatch::int_add_scalar(a, s); },
      [](const Tensor& a, Scalar s) { return kiln::add(a, s); });
}
Tensor& Tensor::sub_(const Tensor& other, Scalar alpha) {
  const Tensor addend = scaled(*this, other, alpha);
  return binary_in_place(
      "sub_", *this, addend, [](const ValueArg& a, const Value& b) { return AD::float_sub(a, b); },
      [](const IntArg& a, const ErasedTensor& b) { return Dispatch::int_sub(a, b); },
      [](const Tensor& a, const Tensor& b) { return kiln::sub(a, b); });
}
Tensor& Tensor::sub_(Scalar other) {
  return scalar_in_place(
      "sub_", *this, other,
      [](const ValueArg& a, Scalar s) { return AD::float_add_scalar(a, Scalar(-s.to_double())); },
      [](const IntArg& a, Scalar s) {  // which wraps, as the addition does
        const auto negative = static_cast<int64_t>(0 - static_cast<uint64_t>(s.to_int()));
        return Dispatch::int_add_scalar(a, Scalar(negative));
      },
      [](const Tensor& a, Scalar s) { return kiln::sub(a, s); });
}
Tensor& Tensor::mul_(const Tensor& other) {
  return binary_in_place(
      "mul_", *this, other, [](const ValueArg& a, const Value& b) { return AD::float_mul(a, b); },
      [](const IntArg& a, const ErasedTensor& b) { return Dispatch::int_mul(a, b); },
      [](const Tensor& a, const Tensor& b) { return kiln::mul(a, b); });
}
Tensor& Tensor::mul_(Scalar other) {
  return scalar_in_place(
      "mul_", *this, other, [](const ValueArg& a, Scalar s) { return AD::float_mul_scalar(a, s); },
      [](const IntArg& a, Scalar s) { return Dispatch::int_mul_scalar(a, s); },
      [](const Tensor& a, Scalar s) { return kiln::mul(a, s); });
}
Tensor& Tensor::div_(const Tensor& other) {
  return binary_in_place(
      "div_", *this, other, [](const ValueArg& a, const Value& b) { return AD::float_div(a, b); },
      nullptr, [](const Tensor& a, const Tensor& b) { return kiln::div(a, b); });
}
Tensor& Tensor::div_(Scalar other) {
  return scalar_in_place(
      "div_", *this, other, [](const ValueArg& a, Scalar s) { return AD::float_div_scalar(a, s); },
      nullptr, [](const Tensor& a, Scalar s) { return kiln::div(a, s); });
}
Tensor& Tensor::pow_(Scalar exponent) {
  return scalar_in_place(
      "pow_", *this, exponent,
      [](const ValueArg& a, Scalar s) { return AD::float_pow_scalar(a, s); }, nullptr,
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

// ---- Functions

#define KILN_HOME_tensor(type, doc, name, ...) \
  Tensor& name##_(Tensor& x) { return unary_function_(#name "_", x, {Unary::type}); }
#define KILN_HOME_tensors_(type, doc, name)                               \
  Tensor& name##_(Tensor& x, const Tensor& y) {                           \
    return binary_function_(#name "_", x, y, BinaryFunction::Type::type); \
  }
#include "kiln/backend/functions.def"

#define KILN_IN_PLACE(name, function)                                                       \
  Tensor& name(Tensor& x) {                                                                 \
    if (has_complex(x)) return write_over(#name, x, function(read_before_write(#name, x))); \
    return unary_function_(#name, x, {Unary::function});                                    \
  }
KILN_IN_PLACE(exp2_, exp2)
KILN_IN_PLACE(sinc_, sinc)
#undef KILN_IN_PLACE

Tensor& logit_(Tensor& x, std::optional<double> eps) {
  return unary_function_("logit_", x, {Unary::logit, eps.value_or(-1.0)});
}
Tensor& polygamma_(Tensor& x, int64_t n) {
  return write_over("polygamma_", x, polygamma(n, read_before_write("polygamma_", x)));
}
Tensor& mvlgamma_(Tensor& x, int64_t p) {
  return write_over("mvlgamma_", x, mvlgamma(read_before_write("mvlgamma_", x), p));
}
Tensor& frac_(Tensor& x) { return write_over("frac_", x, frac(read_before_write("frac_", x))); }
Tensor& deg2rad_(Tensor& x) {
  return write_over("deg2rad_", x, deg2rad(read_before_write("deg2rad_", x)));
}
Tensor& rad2deg_(Tensor& x) {
  return write_over("rad2deg_", x, rad2deg(read_before_write("rad2deg_", x)));
}
Tensor& round_(Tensor& x, int64_t decimals) {
  return write_over("round_", x, round(read_before_write("round_", x), decimals));
}
Tensor& nan_to_num_(Tensor& x, double nan, std::optional<double> posinf,
                    std::optional<double> neginf) {
  return write_over("nan_to_num_", x,
                    nan_to_num(read_before_write("nan_to_num_", x), nan, posinf, neginf));
}

#define KILN_IN_PLACE(name, function)                                     \
  Tensor& name(Tensor& x, const Tensor& y) {                              \
    return binary_function_(#name, x, y, BinaryFunction::Type::function); \
  }
KILN_IN_PLACE(copysign_, copysign)
KILN_IN_PLACE(xlogy_, xlogy)
#undef KILN_IN_PLACE

#define KILN_IN_PLACE(name, Other)                                             \
  Tensor& name##_(Tensor& x, Other y) {                                        \
    return write_over(#name "_", x, name(read_before_write(#name "_", x), y)); \
  }
KILN_IN_PLACE(fmod, const Tensor&)
KILN_IN_PLACE(fmod, Scalar)
KILN_IN_PLACE(remainder, const Tensor&)
KILN_IN_PLACE(remainder, Scalar)
KILN_IN_PLACE(floor_divide, const Tensor&)
KILN_IN_PLACE(floor_divide, Scalar)
KILN_IN_PLACE(pow, const Tensor&)
KILN_IN_PLACE(atan2, const Tensor&)
KILN_IN_PLACE(copysign, Scalar)
KILN_IN_PLACE(nextafter, const Tensor&)
KILN_IN_PLACE(heaviside, const Tensor&)
KILN_IN_PLACE(xlogy, Scalar)
KILN_IN_PLACE(ldexp, const Tensor&)
KILN_IN_PLACE(float_power, const Tensor&)
KILN_IN_PLACE(float_power, Scalar)
KILN_IN_PLACE(clamp_min, Scalar)
KILN_IN_PLACE(clamp_min, const Tensor&)
KILN_IN_PLACE(clamp_max, Scalar)
KILN_IN_PLACE(clamp_max, const Tensor&)
KILN_IN_PLACE(logical_and, const Tensor&)
KILN_IN_PLACE(logical_or, const Tensor&)
KILN_IN_PLACE(logical_xor, const Tensor&)
KILN_IN_PLACE(gcd, const Tensor&)
KILN_IN_PLACE(lcm, const Tensor&)
KILN_IN_PLACE(tril, int64_t)
KILN_IN_PLACE(triu, int64_t)
#define KILN_IN_PLACE_BOTH(name)     \
  KILN_IN_PLACE(name, const Tensor&) \
  KILN_IN_PLACE(name, Scalar)
KILN_IN_PLACE_BOTH(eq)
KILN_IN_PLACE_BOTH(ne)
KILN_IN_PLACE_BOTH(gt)
KILN_IN_PLACE_BOTH(ge)
KILN_IN_PLACE_BOTH(lt)
KILN_IN_PLACE_BOTH(le)
KILN_IN_PLACE_BOTH(bitwise_and)
KILN_IN_PLACE_BOTH(bitwise_or)
KILN_IN_PLACE_BOTH(bitwise_xor)
KILN_IN_PLACE_BOTH(bitwise_left_shift)
KILN_IN_PLACE_BOTH(bitwise_right_shift)
#undef KILN_IN_PLACE_BOTH
#undef KILN_IN_PLACE

Tensor& div_(Tensor& x, const Tensor& y, std::string_view rounding_mode) {
  return write_over("div_", x, div(read_before_write("div_", x), y, rounding_mode));
}
Tensor& div_(Tensor& x, Scalar y, std::string_view rounding_mode) {
  return write_over("div_", x, div(read_before_write("div_", x), y, rounding_mode));
}
Tensor& logical_not_(Tensor& x) { return write_over("logical_not_", x, x.logical_not()); }
Tensor& bitwise_not_(Tensor& x) { return write_over("bitwise_not_", x, x.bitwise_not()); }

namespace {

// Straight into x's memory where the three are floats of one dtype and x has the shape of all.
template <class General>
Tensor& ternary_in_place(const char* op, Tensor& x, const Tensor& a, const Tensor& b,
                         const TernaryFunction& f, General general) {
  if (has_complex(x) || has_complex(a, b)) {
    return write_over(op, x, general(read_before_write(op, x)));
  }
  const Value& u = value_of(op, x);
  const Value& v = value_of(op, a);
  const Value& w = value_of(op, b);
  const DType dtype = dtype_of_value(u);
  const bool fits = kind_of(dtype) == Kind::floating && dtype_of_value(v) == dtype &&
                    dtype_of_value(w) == dtype && broadcasts_to(shape_of(v), shape_of(u)) &&
                    broadcasts_to(shape_of(w), shape_of(u));
  if (!fits) return write_over(op, x, general(read_before_write(op, x)));
  check_same_device(op, u, v);
  check_same_device(op, u, w);
  check_writable(op, x, v.node || w.node);
  finish_in_place(op, x, AD::float_ternary(ValueArg::in_place(u), v, w, f));
  return x;
}

}  // namespace

Tensor& lerp_(Tensor& start, const Tensor& end, const Tensor& weight) {
  return ternary_in_place("lerp_", start, end, weight, {TernaryFunction::Type::lerp},
                          [&](const Tensor& u) { return lerp(u, end, weight); });
}
Tensor& lerp_(Tensor& start, const Tensor& end, Scalar weight) {
  const Tensor number = full({}, weight.to_double(), {start.dtype(), start.device()});
  return lerp_(start, end, number);
}
Tensor& addcmul_(Tensor& x, const Tensor& a, const Tensor& b, Scalar value) {
  return ternary_in_place("addcmul_", x, a, b, {TernaryFunction::Type::addcmul, value.to_double()},
                          [&](const Tensor& u) { return addcmul(u, a, b, value); });
}
Tensor& addcdiv_(Tensor& x, const Tensor& a, const Tensor& b, Scalar value) {
  return ternary_in_place("addcdiv_", x, a, b, {TernaryFunction::Type::addcdiv, value.to_double()},
                          [&](const Tensor& u) { return addcdiv(u, a, b, value); });
}
Tensor& clamp_(Tensor& x, const Tensor& min, const Tensor& max) {
  if (!min.defined() || !max.defined())
    return write_over("clamp_", x, clamp(read_before_write("clamp_", x), min, max));
  return ternary_in_place("clamp_", x, min, max, {TernaryFunction::Type::clamp},
                          [&](const Tensor& u) { return clamp(u, min, max); });
}

}  // namespace kiln
