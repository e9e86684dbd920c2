#include "kiln/tensor/elementwise/comparison.h"

#include <cmath>
#include <limits>

#include "kiln/tensor/complex/complex_impl.h"
#include "kiln/tensor/complex/complex_ops.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/elementwise/function_call.h"
#include "kiln/tensor/index/sorting.h"
#include "kiln/tensor/ops.h"

namespace kiln {

using namespace detail;

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
