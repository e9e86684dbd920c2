#include "kiln/tensor/elementwise/pointwise.h"

#include <cmath>
#include <numbers>

#include "kiln/tensor/complex/complex_ops.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/elementwise/function_call.h"

namespace kiln {

using namespace detail;
using Unary = UnaryFunction::Type;

#define KILN_HOME_tensor(type, doc, name, ...) \
  Tensor name(TensorArg x) { return unary_function(#name, x, {Unary::type}); }
#define KILN_HOME_tensors(type, doc, name)                           \
  Tensor name(TensorArg x, TensorArg y) {                            \
    return binary_function(#name, x, y, BinaryFunction::Type::type); \
  }
#define KILN_HOME_tensors_ KILN_HOME_tensors
#include "kiln/backend/functions.def"

// ---- One tensor

Tensor exp2(TensorArg x) {
  if (has_complex(x.get())) return exp(mul(x.get(), std::numbers::ln2));
  return unary_function("exp2", x, {Unary::exp2});
}
Tensor sinc(TensorArg x) {
  if (has_complex(x.get())) {
    const Tensor zero = x->detach().eq(0);
    const Tensor angle = mul(x.get(), std::numbers::pi).masked_fill(zero, 1);
    return div(sin(angle), angle).masked_fill(zero, 1);
  }
  return unary_function("sinc", x, {Unary::sinc});
}

Tensor polygamma(int64_t n, TensorArg x) {
  if (n < 0) throw_error<ValueError>("polygamma: expected n >= 0; got ", n);
  if (n == 0) return digamma(x);
  return unary_function("polygamma", x, {Unary::polygamma, static_cast<double>(n)});
}

Tensor mvlgamma(TensorArg x, int64_t p) {
  if (p < 1) throw_error<ValueError>("mvlgamma: expected p >= 1; got ", p);
  const Tensor& value = x.get();
  const DType dtype = value.is_floating_point() ? value.dtype() : default_dtype();
  const Tensor shifts = arange(0, -p, -1, {dtype, value.device()}).mul(0.5);
  const double constant =
      0.25 * static_cast<double>(p) * static_cast<double>(p - 1) * std::log(std::numbers::pi);
  return add(lgamma(add(value.unsqueeze(-1), shifts)).sum(-1), constant);
}

Tensor logit(TensorArg x, std::optional<double> eps) {
  return unary_function("logit", x, {Unary::logit, eps.value_or(-1.0)});
}

Tensor frac(TensorArg x) {
  const DType dtype = dtype_of_value(value_of("frac", x));
  if (kind_of(dtype) != Kind::floating) throw_wrong_dtype("frac", dtype, "a floating point tensor");
  return unary_function("frac", x, {Unary::frac});
}

Tensor deg2rad(TensorArg x) { return mul(x, std::numbers::pi / 180.0); }
Tensor rad2deg(TensorArg x) { return mul(x, 180.0 / std::numbers::pi); }

Tensor round(TensorArg x, int64_t decimals) {
  if (decimals == 0) return round(x);
  const DType dtype = dtype_of_value(value_of("round", x));
  if (kind_of(dtype) != Kind::floating) {
    throw_wrong_dtype("round", dtype, "a floating point tensor when decimals is not 0");
  }
  const double scale = std::pow(10.0, static_cast<double>(std::llabs(decimals)));
  if (decimals > 0) return div(round(mul(x, scale)), scale);
  return mul(round(div(x, scale)), scale);
}

Tensor positive(const Tensor& x) {
  if (impl_of("positive", x).dtype() == bool_) {
    throw_wrong_dtype("positive", bool_, "a tensor of numbers");
  }
  return x;
}

Tensor nan_to_num(TensorArg x, double nan, std::optional<double> posinf,
                  std::optional<double> neginf) {
  if (has_complex(x.get())) {
    return through_parts(x.get(),
                         [&](const Tensor& p) { return nan_to_num(p, nan, posinf, neginf); });
  }
  const DType dtype = dtype_of_value(value_of("nan_to_num", x));
  if (kind_of(dtype) == Kind::integer || kind_of(dtype) == Kind::boolean) return x->clone();
  double largest = 0.0;
  switch (dtype) {
    case DType::f16:
      largest = 65504.0;
      break;
    case DType::bf16:
      largest = 0x1.fep127;
      break;
    case DType::f32:
      largest = std::numeric_limits<float>::max();
      break;
    default:
      largest = std::numeric_limits<double>::max();
  }
  return unary_function(
      "nan_to_num", x,
      {Unary::nan_to_num, nan, posinf.value_or(largest), neginf.value_or(-largest)});
}

// ---- Two tensors

namespace {

template <class Op>
Tensor with_number(const char* name, const TensorArg& x, Scalar y, Op op) {
  return op(x, number_for(name, x.get(), y));
}

// The dtype of an op of a number and x, as one of a 0-d tensor.
template <class Op>
Tensor with_number(const char* name, Scalar x, const TensorArg& y, Op op) {
  return op(number_for(name, y.get(), x), y);
}

Tensor in_double(const Tensor& x) { return x.to(is_complex(x) ? c128 : f64); }

Tensor trunc_divide(const TensorArg& x, const TensorArg& y) {
  const Promoted p("div", x, y, false);
  if (kind_of(p.dtype) == Kind::floating) {
    return wrap(AD::float_binary(p.left(), p.right(), BinaryFunction::Type::trunc_divide));
  }
  if (kind_of(p.dtype) != Kind::integer) {
    throw_wrong_dtype("div", p.dtype, "integers or floats for rounding_mode trunc");
  }
  return wrap(Dispatch::int_div(p.left_inner(), p.right_inner()));
}

}  // namespace

Tensor fmod(TensorArg x, TensorArg y) {
  return binary_function("fmod", x, y, BinaryFunction::Type::fmod, IntFunction::fmod);
}
Tensor fmod(TensorArg x, Scalar y) {
  return with_number("fmod", x, y, [](auto& a, auto&& b) { return fmod(a, b); });
}

Tensor div(TensorArg x, TensorArg y, std::string_view rounding_mode) {
  if (rounding_mode.empty()) return div(x, y);
  if (rounding_mode == "floor") return floor_divide(x, y);
  if (rounding_mode == "trunc") return trunc_divide(x, y);
  throw_error<ValueError>("div: unknown rounding_mode; got \"", std::string(rounding_mode),
                          "\"; expected \"trunc\" or \"floor\"");
}
Tensor div(TensorArg x, Scalar y, std::string_view rounding_mode) {
  if (rounding_mode.empty()) return div(x, y);
  return with_number("div", x, y, [&](auto& a, auto&& b) { return div(a, b, rounding_mode); });
}

Tensor div(Scalar x, TensorArg y, std::string_view rounding_mode) {
  if (rounding_mode.empty()) return div(x, y);
  return with_number("div", x, y, [&](auto&& a, auto& b) { return div(a, b, rounding_mode); });
}

Tensor remainder(Scalar x, TensorArg y) {
  return with_number("remainder", x, y, [](auto&& a, auto& b) { return remainder(a, b); });
}

Tensor floor_divide(Scalar x, TensorArg y) {
  return with_number("floor_divide", x, y, [](auto&& a, auto& b) { return floor_divide(a, b); });
}

Tensor rsub(TensorArg x, TensorArg y, Scalar alpha) { return y->sub(x.get(), alpha); }
Tensor rsub(TensorArg x, Scalar y, Scalar alpha) {
  if (alpha.is_integral() && alpha.to_int() == 1) return sub(y, x);
  return sub(y, mul(x, alpha));
}

Tensor copysign(TensorArg x, TensorArg y) {
  return binary_function("copysign", x, y, BinaryFunction::Type::copysign);
}
Tensor copysign(TensorArg x, Scalar y) {
  return copysign(x, float_number_for("copysign", x.get(), y));
}

Tensor nextafter(TensorArg x, TensorArg y) {
  const Promoted p("nextafter", x, y, false);
  if (kind_of(p.dtype) != Kind::floating) {
    throw_wrong_dtype("nextafter", p.dtype, "floating point tensors");
  }
  return wrap(AD::float_binary(p.left(), p.right(), BinaryFunction::Type::nextafter));
}

Tensor fmax(TensorArg x, TensorArg y) {
  const Promoted p("fmax", x, y, false);
  if (kind_of(p.dtype) != Kind::floating) return maximum(x, y);
  return wrap(AD::float_binary(p.left(), p.right(), BinaryFunction::Type::fmax));
}
Tensor fmin(TensorArg x, TensorArg y) {
  const Promoted p("fmin", x, y, false);
  if (kind_of(p.dtype) != Kind::floating) return minimum(x, y);
  return wrap(AD::float_binary(p.left(), p.right(), BinaryFunction::Type::fmin));
}

Tensor heaviside(TensorArg x, TensorArg y) {
  if (x->dtype() != y->dtype()) {
    throw_error<DTypeError>("heaviside: the dtypes differ; got ", x->dtype(), " and ", y->dtype(),
                            "; expected one dtype");
  }
  if (x->is_floating_point()) {
    return binary_function("heaviside", x, y, BinaryFunction::Type::heaviside);
  }
  const Tensor& value = x.get();
  return where(value.eq(0), y.get(), value.gt(0).to(value.dtype()));
}

Tensor xlogy(TensorArg x, TensorArg y) {
  return binary_function("xlogy", x, y, BinaryFunction::Type::xlogy);
}
Tensor xlogy(TensorArg x, Scalar y) { return xlogy(x, float_number_for("xlogy", x.get(), y)); }
Tensor xlogy(Scalar x, TensorArg y) { return xlogy(float_number_for("xlogy", y.get(), x), y); }
Tensor logaddexp(TensorArg x, TensorArg y) {
  if (has_complex(x.get(), y.get())) {
    const DType dtype = complex_result_type("logaddexp", x.get(), y.get());
    return complex_ops::logaddexp(x->to(dtype), y->to(dtype));
  }
  return binary_function("logaddexp", x, y, BinaryFunction::Type::logaddexp);
}
Tensor ldexp(TensorArg x, TensorArg y) {
  // The power has x's dtype, so that an integer y does not widen a half-precision x.
  if (!x->is_floating_point()) return mul(x, pow(Scalar(2.0), y));
  return mul(x, pow(full({}, 2.0, {x->dtype(), x->device()}), y));
}

std::pair<Tensor, Tensor> frexp(const Tensor& x) {
  const DType dtype = dtype_of_value(value_of("frexp", x));
  if (kind_of(dtype) != Kind::floating) {
    throw_wrong_dtype("frexp", dtype, "a floating point tensor");
  }
  Tensor exponent = unary_function("frexp", x.detach(), {UnaryFunction::Type::frexp_exponent});
  return {unary_function("frexp", x, {UnaryFunction::Type::frexp_mantissa}), exponent.to(i32)};
}

Tensor float_power(TensorArg x, TensorArg y) { return pow(in_double(x.get()), in_double(y.get())); }
Tensor float_power(TensorArg x, Scalar y) { return pow(in_double(x.get()), Scalar(y.to_double())); }
Tensor float_power(Scalar x, TensorArg y) { return pow(Scalar(x.to_double()), in_double(y.get())); }

Tensor dist(const Tensor& x, const Tensor& y, double p) {
  Tensor difference = abs(sub(x, y));
  if (!difference.is_floating_point()) difference = difference.to(default_dtype());
  if (p == 0.0) return difference.ne(0).sum().to(difference.dtype());
  if (p == 1.0) return difference.sum();
  if (p == 2.0) return sub(x, y).norm();
  if (difference.numel() == 0) return difference.sum();
  if (std::isinf(p)) return p > 0 ? difference.max() : difference.min();
  return pow(pow(difference, p).sum(), 1.0 / p);
}

// ---- Three tensors

namespace {

// The three in their common dtype, which has to be a floating point one unless `ints` may be.
Tensor ternary(const char* op, const TensorArg& x, const Tensor& y, const Tensor& z,
               const TernaryFunction& f) {
  const Value& a = value_of(op, x);
  const Value& b = value_of(op, y);
  const Value& c = value_of(op, z);
  check_same_device(op, a, b);
  check_same_device(op, a, c);
  broadcast_shapes(op, broadcast_shapes(op, shape_of(a), shape_of(b)), shape_of(c));
  const bool same =
      dtype_of_value(a) == dtype_of_value(b) && dtype_of_value(b) == dtype_of_value(c);
  if (same && kind_of_value(a) == Kind::floating) [[likely]] {
    return wrap(AD::float_ternary(arg_of(op, x), b, c, f));
  }
  const DType common = promote_types(result_type(op, a, b), result_type(op, a, c));
  if (kind_of(common) != Kind::floating) {
    throw_wrong_dtype(op, common, "floating point tensors");
  }
  return wrap(AD::float_ternary(cast(a, common), cast(b, common), cast(c, common), f));
}

void check_one_dtype(const char* op, const Tensor& x, const Tensor& y) {
  if (x.dtype() != y.dtype()) {
    throw_error<DTypeError>(op, ": the dtypes differ; got ", x.dtype(), " and ", y.dtype(),
                            "; expected one dtype");
  }
}

bool any_complex(const Tensor& x, const Tensor& a, const Tensor& b) {
  return has_complex(x) || has_complex(a, b);
}

bool all_whole(const Tensor& x, const Tensor& a, const Tensor& b) {
  return !x.is_floating_point() && !a.is_floating_point() && !b.is_floating_point();
}

}  // namespace

Tensor lerp(TensorArg start, const Tensor& end, const Tensor& weight) {
  check_one_dtype("lerp", start.get(), end);
  check_one_dtype("lerp", start.get(), weight);
  if (has_complex(start.get())) return add(start, mul(weight, sub(end, start)));
  return ternary("lerp", start, end, weight, {TernaryFunction::Type::lerp});
}
Tensor lerp(TensorArg start, const Tensor& end, Scalar weight) {
  check_one_dtype("lerp", start.get(), end);
  if (has_complex(start.get())) return add(start, mul(sub(end, start), weight));
  const Tensor number = full({}, weight.to_double(), {start->dtype(), start->device()});
  return ternary("lerp", start, end, number, {TernaryFunction::Type::lerp});
}

Tensor addcmul(TensorArg x, const Tensor& a, const Tensor& b, Scalar value) {
  if (any_complex(x.get(), a, b)) return add(x, mul(mul(a, b), value));
  if (all_whole(x.get(), a, b)) {
    if (value.to_double() != std::trunc(value.to_double())) {
      throw_error<DTypeError>("addcmul: the value of integer tensors must be a whole number; got ",
                              value.to_double());
    }
    return add(x, mul(mul(a, b), Scalar(value.to_int())));
  }
  return ternary("addcmul", x, a, b, {TernaryFunction::Type::addcmul, value.to_double()});
}

Tensor addcdiv(TensorArg x, const Tensor& a, const Tensor& b, Scalar value) {
  if (any_complex(x.get(), a, b)) return add(x, mul(div(a, b), value));
  if (all_whole(x.get(), a, b)) {
    throw_error<DTypeError>("addcdiv: dividing integers gives floats; got ", x->dtype(), ", ",
                            a.dtype(), " and ", b.dtype(),
                            "; expected a floating point tensor, or x + value * div(a, b)");
  }
  return ternary("addcdiv", x, a, b, {TernaryFunction::Type::addcdiv, value.to_double()});
}

Tensor clamp(TensorArg x, const Tensor& min, const Tensor& max) {
  if (!min.defined() && !max.defined()) {
    throw_error<ValueError>("clamp: got neither bound; expected min, max or both");
  }
  if (!max.defined()) return maximum(x, min);
  if (!min.defined()) return minimum(x, max);
  if (all_whole(x.get(), min, max)) return minimum(maximum(x, min), max);
  return ternary("clamp", x, min, max, {TernaryFunction::Type::clamp});
}
Tensor clamp_min(TensorArg x, Scalar min) { return clamp(x, min, std::nullopt); }
Tensor clamp_min(TensorArg x, const Tensor& min) { return maximum(x, min); }
Tensor clamp_max(TensorArg x, Scalar max) { return clamp(x, std::nullopt, max); }
Tensor clamp_max(TensorArg x, const Tensor& max) { return minimum(x, max); }

}  // namespace kiln
