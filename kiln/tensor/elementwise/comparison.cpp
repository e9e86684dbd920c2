#include "kiln/tensor/elementwise/comparison.h"

#include <cmath>
#include <limits>

#include "kiln/tensor/complex/complex_impl.h"
#include "kiln/tensor/complex/complex_ops.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/elementwise/function_call.h"
#include "kiln/tensor/elementwise/scalar_fit.h"
#include "kiln/tensor/index/sorting.h"
#include "kiln/tensor/ops.h"
#include "kiln/tensor/tensor_impl.h"

namespace kiln {

using namespace detail;

// ---- Methods of Tensor, and where

namespace {

// Bools compare with numbers as integers.
DType comparison_dtype(DType common) { return common == bool_ ? u8 : common; }

}  // namespace

// `of_bools` is an expression of two bool tensors a and b.
#define KILN_COMPARE(method, op, of_bools)                                                       \
  Tensor Tensor::method(const Tensor& other) const {                                             \
    if (has_complex(*this, other)) [[unlikely]]                                                  \
      return complex_ops::compare(#method, *this, other);                                        \
    const Value& x = value_of(#method, *this);                                                   \
    const Value& y = value_of(#method, other);                                                   \
    check_same_device(#method, x, y);                                                            \
    broadcast_shapes(#method, shape_of(x), shape_of(y));                                         \
    if (dtype_of_value(x) == bool_ && dtype_of_value(y) == bool_) {                              \
      const ErasedTensor &a = x.inner, &b = y.inner;                                             \
      return wrap(of_bools);                                                                     \
    }                                                                                            \
    const DType common = comparison_dtype(result_type(#method, x, y));                           \
    const ErasedTensor a = cast(x, common).inner;                                                \
    const ErasedTensor b = cast(y, common).inner;                                                \
    if (kind_of(common) == Kind::floating) return wrap(Dispatch::float_##op(a, b));              \
    return wrap(Dispatch::int_##op(a, b));                                                       \
  }                                                                                              \
  Tensor Tensor::method(Scalar other) const {                                                    \
    if (has_complex(*this)) [[unlikely]]                                                         \
      return complex_ops::compare(#method, *this, complex_ops::number(*this, other));            \
    const Value& x = value_of(#method, *this);                                                   \
    const DType common = comparison_dtype(result_type(#method, x, other));                       \
    const ErasedTensor a = cast(x, common).inner;                                                \
    if (kind_of(common) == Kind::floating) return wrap(Dispatch::float_##op##_scalar(a, other)); \
    return wrap(Dispatch::int_##op##_scalar(a, other));                                          \
  }

KILN_COMPARE(eq, equal, Dispatch::bool_equal(a, b))
KILN_COMPARE(ne, not_equal, Dispatch::bool_xor(a, b))
KILN_COMPARE(gt, greater, Dispatch::bool_and(a, Dispatch::bool_not(b)))
KILN_COMPARE(ge, greater_equal, Dispatch::bool_or(a, Dispatch::bool_not(b)))
KILN_COMPARE(lt, lower, Dispatch::bool_and(Dispatch::bool_not(a), b))
KILN_COMPARE(le, lower_equal, Dispatch::bool_or(Dispatch::bool_not(a), b))

#define KILN_LOGICAL(method, op)                                                \
  Tensor Tensor::logical_##method(const Tensor& other) const {                  \
    if (has_complex(*this, other)) [[unlikely]]                                 \
      return to(bool_).logical_##method(other.to(bool_));                       \
    const Value& x = value_of("logical_" #method, *this);                       \
    const Value& y = value_of("logical_" #method, other);                       \
    check_same_device("logical_" #method, x, y);                                \
    broadcast_shapes("logical_" #method, shape_of(x), shape_of(y));             \
    return wrap(Dispatch::op(cast(x, bool_).inner, cast(y, bool_).inner));      \
  }                                                                             \
  Tensor Tensor::bitwise_##method(const Tensor& other) const {                  \
    const Value& x = value_of("bitwise_" #method, *this);                       \
    const Value& y = value_of("bitwise_" #method, other);                       \
    check_same_device("bitwise_" #method, x, y);                                \
    broadcast_shapes("bitwise_" #method, shape_of(x), shape_of(y));             \
    const DType common = result_type("bitwise_" #method, x, y);                 \
    if (kind_of(common) == Kind::floating) {                                    \
      throw_wrong_dtype("bitwise_" #method, common, "integer or bool tensors"); \
    }                                                                           \
    const ErasedTensor a = cast(x, common).inner;                               \
    const ErasedTensor b = cast(y, common).inner;                               \
    if (common == bool_) return wrap(Dispatch::op(a, b));                       \
    return wrap(Dispatch::int_bitwise_##method(a, b));                          \
  }

KILN_LOGICAL(and, bool_and)
KILN_LOGICAL(or, bool_or)
KILN_LOGICAL(xor, bool_xor)

Tensor Tensor::logical_not() const {
  if (has_complex(*this)) [[unlikely]]
    return to(bool_).logical_not();
  return wrap(Dispatch::bool_not(cast(value_of("logical_not", *this), bool_).inner));
}

Tensor Tensor::bitwise_not() const {
  const Value& x = value_of("bitwise_not", *this);
  if (kind_of_value(x) == Kind::boolean) return wrap(Dispatch::bool_not(x.inner));
  if (kind_of_value(x) == Kind::integer) return wrap(Dispatch::int_bitwise_not(x.inner));
  throw_wrong_dtype("bitwise_not", dtype_of_value(x), "an integer or bool tensor");
}

Tensor Tensor::isnan() const {
  if (has_complex(*this)) [[unlikely]]
    return parts_of(*this).isnan().any(-1);
  const Value& x = value_of("isnan", *this);
  if (kind_of_value(x) == Kind::floating) return wrap(Dispatch::float_is_nan(x.inner));
  return wrap(Dispatch::bool_full(shape_of(x), false, x.inner->device()));
}

Tensor Tensor::isinf() const {
  if (has_complex(*this)) [[unlikely]]
    return parts_of(*this).isinf().any(-1);
  const Value& x = value_of("isinf", *this);
  if (kind_of_value(x) == Kind::floating) return wrap(Dispatch::float_is_inf(x.inner));
  return wrap(Dispatch::bool_full(shape_of(x), false, x.inner->device()));
}

Tensor Tensor::isfinite() const { return isnan().logical_or(isinf()).logical_not(); }

bool Tensor::equal(const Tensor& other) const {
  if (!(shape() == other.shape())) return false;
  // Tensors that differ mostly do so at once.
  constexpr int64_t kFirst = 4096;
  if (numel() > 8 * kFirst && is_contiguous() && other.is_contiguous()) {
    const Tensor x = detach().reshape({-1}).narrow(0, 0, kFirst);
    if (!x.eq(other.detach().reshape({-1}).narrow(0, 0, kFirst)).all().item<bool>()) return false;
  }
  return eq(other).all().item<bool>();
}

bool Tensor::allclose(const Tensor& other, double rtol, double atol, bool equal_nan) const {
  if (has_complex(*this, other)) [[unlikely]]
    return complex_ops::isclose(*this, other, rtol, atol, equal_nan).all().item<bool>();
  const Tensor x = detach().to(f64);
  const Tensor y = other.detach().to(f64);
  // Equality first, so that infinities are close to themselves.
  Tensor close = x.eq(y).logical_or(
      (x - y).abs().le(y.abs() * rtol + atol).logical_and(x.isfinite().logical_and(y.isfinite())));
  if (equal_nan) close = close.logical_or(x.isnan().logical_and(y.isnan()));
  return close.all().item<bool>();
}

Tensor where(const Tensor& condition, const Tensor& x, const Tensor& y) {
  const ErasedTensor& mask = bool_value("where", condition);
  if (has_complex(x, y)) [[unlikely]]
    return complex_ops::where(condition, x, y);
  const Value& a = value_of("where", x);
  const Value& b = value_of("where", y);
  check_same_device("where", a, b);
  check_same_device("where", a, value_of("where", condition));
  broadcast_shapes("where", broadcast_shapes("where", shape_of(a), shape_of(b)), mask->shape());
  const DType common = result_type("where", a, b);
  const Value yes = cast(a, common);
  const Value no = cast(b, common);
  switch (kind_of(common)) {
    case Kind::floating:
      return wrap(AD::float_mask_where(no, mask, yes));
    case Kind::integer:
      return wrap(Dispatch::int_mask_where(no.inner, mask, yes.inner));
    default:
      return wrap(Dispatch::bool_mask_where(no.inner, mask, yes.inner));
  }
}

Tensor where(const Tensor& condition, const Tensor& x, Scalar y) {
  if (has_complex(x)) [[unlikely]]
    return where(condition, x, complex_ops::number(x, y));
  const Value& a = value_of("where", x);
  return where(condition, x, wrap(scalar_value(y, result_type("where", a, y), a.inner->device())));
}

Tensor where(const Tensor& condition, Scalar x, const Tensor& y) {
  if (has_complex(y)) [[unlikely]]
    return where(condition, complex_ops::number(y, x), y);
  const Value& b = value_of("where", y);
  return where(condition, wrap(scalar_value(x, result_type("where", b, x), b.inner->device())), y);
}

Tensor Tensor::masked_fill(const Tensor& mask, Scalar value) const {
  if (has_complex(*this)) [[unlikely]] {
    bool_value("masked_fill", mask);
    if (value.to_double() != 0.0) return where(mask, value, *this);
    const Tensor both = stack({mask, mask}, -1);
    return through_parts(*this, [&](const Tensor& p) { return p.masked_fill(both, 0.0); });
  }
  const Value& x = value_of("masked_fill", *this);
  const ErasedTensor& m = bool_value("masked_fill", mask);
  check_same_device("masked_fill", x, value_of("masked_fill", mask));
  broadcast_shapes("masked_fill", shape_of(x), m->shape());
  const Kind kind = kind_of_value(x);
  if (value.is_floating_point() && kind == Kind::integer) value = std::trunc(value.to_double());
  check_fits("masked_fill", value, dtype_of_value(x));
  return wrap(by_kind(
      "masked_fill", kind, [&] { return AD::float_mask_fill(x, m, value); },
      [&] { return Dispatch::int_mask_fill(x.inner, m, value); },
      [&] { return Dispatch::bool_mask_fill(x.inner, m, value); }, dtype_of_value(x)));
}

// ---- Functions

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

Tensor all_false(const Tensor& x) { return zeros(x.shape(), {bool_, x.device()}); }

void check_real(const char* op, const Tensor& x) {
  const Kind kind = kind_of_value(value_of(op, x));
  if (kind != Kind::floating && kind != Kind::integer && kind != Kind::boolean) {
    throw_wrong_dtype(op, x.dtype(), "a floating point, integer or bool tensor");
  }
}

}  // namespace

Tensor isposinf(const Tensor& x) {
  check_real("isposinf", x);
  return x.is_floating_point() ? x.eq(kInf) : all_false(x);
}

Tensor isneginf(const Tensor& x) {
  check_real("isneginf", x);
  return x.is_floating_point() ? x.eq(-kInf) : all_false(x);
}

Tensor signbit(const Tensor& x) {
  check_real("signbit", x);
  if (!x.is_floating_point()) return x.dtype() == bool_ ? all_false(x) : x.lt(0);
  const Value& value = value_of("signbit", x);
  const ErasedTensor one = scalar_value(1.0, x.dtype(), x.device()).inner;
  return wrap(Dispatch::float_lower_scalar(
      Dispatch::float_binary(one, value.inner, BinaryFunction::Type::copysign), Scalar(0.0)));
}

Tensor isclose(const Tensor& x, const Tensor& y, double rtol, double atol, bool equal_nan) {
  const Value& a = parts_or_value("isclose", x);
  const Value& b = parts_or_value("isclose", y);
  if (x.dtype() != y.dtype()) {
    throw_error<DTypeError>("isclose: the dtypes differ; got ", x.dtype(), " and ", y.dtype(),
                            "; expected one dtype");
  }
  if (!(rtol >= 0.0 && atol >= 0.0)) {
    throw_error<ValueError>("isclose: expected tolerances >= 0; got rtol ", rtol, " and atol ",
                            atol);
  }
  check_same_device("isclose", a, b);
  broadcast_shapes("isclose", x.shape(), y.shape());
  if (has_complex(x)) return complex_ops::isclose(x, y, rtol, atol, equal_nan);
  const Tensor u = x.detach();
  const Tensor v = y.detach();
  // Equality first, so that infinities are close to themselves.
  Tensor close = u.eq(v);
  if (equal_nan && u.is_floating_point())
    close = close.logical_or(u.isnan().logical_and(v.isnan()));
  if (rtol == 0.0 && atol == 0.0) return close;
  if (!u.is_floating_point()) {
    // As in PyTorch: the difference as integers, the tolerance as floats.
    const Tensor left = u.dtype() == bool_ ? u.to(u8) : u;
    const Tensor right = v.dtype() == bool_ ? v.to(u8) : v;
    const Tensor allowed = abs(right.to(default_dtype()) * rtol) + atol;
    return close.logical_or(
        (left.maximum(right) - left.minimum(right)).to(default_dtype()).le(allowed));
  }
  const Tensor allowed = abs(v * rtol) + atol;
  const Tensor error = abs(u - v);
  // An infinite error is within no tolerance, not even an infinite one.
  return close.logical_or(error.le(allowed).logical_and(error.ne(kInf)));
}

bool allclose(const Tensor& x, const Tensor& y, double rtol, double atol, bool equal_nan) {
  return isclose(x, y, rtol, atol, equal_nan).all().item<bool>();
}

namespace {

// Few values: compared with each. Many: sorted, then found by bisection.
Tensor is_in(const Tensor& x, const Tensor& test, bool invert) {
  constexpr int64_t kFew = 16;
  const Tensor values = test.reshape({-1});
  const int64_t n = values.numel();
  Tensor found;
  if (n == 0) {
    found = all_false(x);
  } else if (n <= kFew) {
    for (int64_t i = 0; i < n; ++i) {
      const Tensor here = x.eq(values[i]);
      found = i == 0 ? here : found.logical_or(here);
    }
  } else {
    const DType common = result_type(x, test);
    const DType dtype = common == bool_ ? u8 : common;
    const Tensor sorted = values.to(dtype).sort().first;
    const Tensor wanted = x.to(dtype).reshape({-1});
    const Tensor at = searchsorted(sorted, wanted).clamp({}, n - 1);
    found = sorted.index_select(0, at).eq(wanted).reshape(x.shape());
  }
  return invert ? found.logical_not() : found;
}

}  // namespace

Tensor isin(const Tensor& x, const Tensor& test, bool, bool invert) {
  check_real("isin", x);
  check_real("isin", test);
  check_same_device("isin", value_of("isin", x), value_of("isin", test));
  return is_in(x.detach(), test.detach(), invert);
}
Tensor isin(const Tensor& x, Scalar test, bool, bool invert) {
  check_real("isin", x);
  return invert ? x.ne(test) : x.eq(test);
}
Tensor isin(Scalar x, const Tensor& test, bool, bool invert) {
  check_real("isin", test);
  return is_in(number_for("isin", test, x), test.detach(), invert);
}

bool is_nonzero(const Tensor& x) {
  if (x.numel() != 1) {
    throw_error<ValueError>("is_nonzero: expected a tensor of one element; got shape ", x.shape());
  }
  return x.item_scalar().to_bool();
}

DType result_type(const Tensor& x, const Tensor& y) {
  if (has_complex(x, y)) return complex_result_type("result_type", x, y);
  return detail::result_type("result_type", value_of("result_type", x), value_of("result_type", y));
}
DType result_type(const Tensor& x, Scalar y) {
  if (has_complex(x)) return x.dtype();
  return detail::result_type("result_type", value_of("result_type", x), y);
}
DType result_type(Scalar x, const Tensor& y) { return result_type(y, x); }
DType result_type(Scalar x, Scalar y) {
  const auto dtype = [](Scalar s) {
    return s.is_floating_point() ? default_dtype() : s.is_bool() ? bool_ : i64;
  };
  return promote_types(dtype(x), dtype(y));
}

bool can_cast(DType from, DType to) {
  const auto rank = [](DType t) {
    switch (kind_of(t)) {
      case Kind::boolean:
        return 0;
      case Kind::integer:
        return 1;
      case Kind::floating:
        return 2;
      default:
        return 3;
    }
  };
  return rank(from) <= rank(to);
}

}  // namespace kiln
