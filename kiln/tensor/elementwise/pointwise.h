// Functions of each element by itself that are less common than those of ops.h: of one tensor, of
// two (which broadcast and promote as in add), of three.
//
// Integers and bools are computed in the default dtype unless it says otherwise. Ops on a tensor
// and a number take the number as the tensor's dtype where PyTorch does. All are differentiable
// where a derivative exists; rounding ones have derivative 0.
#pragma once

#include <optional>
#include <string_view>

#include "kiln/tensor/ops.h"

namespace kiln {

// ---- One tensor

// erfc, lgamma and the others of functions.def whose home is `tensor`.
#define KILN_HOME_tensor(type, doc, name, ...) Tensor name(TensorArg x);
#include "kiln/backend/functions.def"
Tensor exp2(TensorArg x);  // 2^x
// The n-th derivative of digamma. Throws ValueError for n < 0.
Tensor polygamma(int64_t n, TensorArg x);
// log of the multivariate gamma function of order p: the sum of lgamma(x - j / 2) over j < p, plus
// p (p - 1) / 4 log pi. Throws ValueError for p < 1.
Tensor mvlgamma(TensorArg x, int64_t p);
Tensor sinc(TensorArg x);  // sin(pi x) / (pi x), 1 at 0
// log(x / (1 - x)); with eps, x is first clamped to [eps, 1 - eps].
Tensor logit(TensorArg x, std::optional<double> eps = {});
Tensor frac(TensorArg x);     // x - trunc(x). DTypeError for integers.
Tensor deg2rad(TensorArg x);  // x pi / 180
Tensor rad2deg(TensorArg x);  // x 180 / pi
// Half to even at the given decimal (before the point when negative). Integers stay; DTypeError for
// them with decimals other than 0.
Tensor round(TensorArg x, int64_t decimals);
// x itself. DTypeError for bools.
Tensor positive(const Tensor& x);
// NaN becomes `nan`, infinities the largest finite numbers of the dtype unless given. Integers
// stay.
Tensor nan_to_num(TensorArg x, double nan = 0.0, std::optional<double> posinf = {},
                  std::optional<double> neginf = {});

inline Tensor absolute(TensorArg x) { return abs(x); }
inline Tensor negative(TensorArg x) { return neg(x); }
inline Tensor fix(TensorArg x) { return trunc(x); }
inline Tensor arcsin(TensorArg x) { return asin(x); }
inline Tensor arccos(TensorArg x) { return acos(x); }
inline Tensor arctan(TensorArg x) { return atan(x); }
inline Tensor arcsinh(TensorArg x) { return asinh(x); }
inline Tensor arccosh(TensorArg x) { return acosh(x); }
inline Tensor arctanh(TensorArg x) { return atanh(x); }

// ---- Two tensors, or one and a number

// The rest of the division, with x's sign (remainder has y's). Integers stay; ValueError when they
// are divided by 0.
Tensor fmod(TensorArg x, TensorArg y);
Tensor fmod(TensorArg x, Scalar y);
// rounding_mode "" (true division), "trunc" or "floor"; the latter two keep integers.
Tensor div(TensorArg x, TensorArg y, std::string_view rounding_mode);
Tensor div(TensorArg x, Scalar y, std::string_view rounding_mode);
Tensor div(Scalar x, TensorArg y, std::string_view rounding_mode);
Tensor remainder(Scalar x, TensorArg y);
Tensor floor_divide(Scalar x, TensorArg y);
inline Tensor true_divide(TensorArg x, TensorArg y) { return div(x, y); }
inline Tensor true_divide(TensorArg x, Scalar y) { return div(x, y); }
inline Tensor divide(TensorArg x, TensorArg y) { return div(x, y); }
inline Tensor multiply(TensorArg x, TensorArg y) { return mul(x, y); }
inline Tensor subtract(TensorArg x, TensorArg y) { return sub(x, y); }
inline Tensor arctan2(TensorArg y, TensorArg x) { return atan2(y, x); }
Tensor rsub(TensorArg x, TensorArg y, Scalar alpha = 1);  // y - alpha x
Tensor rsub(TensorArg x, Scalar y, Scalar alpha = 1);
// hypot, igamma and the others of functions.def whose home is `tensors` or `tensors_`.
#define KILN_HOME_tensors(type, doc, name) Tensor name(TensorArg x, TensorArg y);
#define KILN_HOME_tensors_ KILN_HOME_tensors
#include "kiln/backend/functions.def"
Tensor copysign(TensorArg x, TensorArg y);  // |x| with y's sign
Tensor copysign(TensorArg x, Scalar y);
// The neighbour of x towards y. DTypeError unless both are floating point.
Tensor nextafter(TensorArg x, TensorArg y);
// The larger and the smaller of both; where one is NaN the other (maximum gives NaN).
Tensor fmax(TensorArg x, TensorArg y);
Tensor fmin(TensorArg x, TensorArg y);
// 0 where x < 0, 1 where x > 0, y where x is 0. DTypeError unless both have one dtype.
Tensor heaviside(TensorArg x, TensorArg y);
// x log y, and 0 where x is 0 unless y is NaN.
Tensor xlogy(TensorArg x, TensorArg y);
Tensor xlogy(TensorArg x, Scalar y);
Tensor xlogy(Scalar x, TensorArg y);
Tensor logaddexp(TensorArg x, TensorArg y);  // log(e^x + e^y)
Tensor ldexp(TensorArg x, TensorArg y);      // x 2^y
// x = mantissa 2^exponent with |mantissa| in [0.5, 1): the mantissa and the exponent (i32).
std::pair<Tensor, Tensor> frexp(const Tensor& x);
Tensor float_power(TensorArg x, TensorArg y);  // in f64, whatever the dtypes
Tensor float_power(TensorArg x, Scalar y);
Tensor float_power(Scalar x, TensorArg y);
// The p-norm of x - y, 0-d.
Tensor dist(const Tensor& x, const Tensor& y, double p = 2.0);

// ---- Three tensors

// start + weight (end - start). The three have one floating point dtype.
Tensor lerp(TensorArg start, const Tensor& end, const Tensor& weight);
Tensor lerp(TensorArg start, const Tensor& end, Scalar weight);
Tensor addcmul(TensorArg x, const Tensor& a, const Tensor& b, Scalar value = 1);  // x + value a b
Tensor addcdiv(TensorArg x, const Tensor& a, const Tensor& b, Scalar value = 1);  // x + value a / b
// x limited to [min, max], which broadcast; an undefined one bounds nothing. NaN in any gives NaN;
// where they cross, max wins. Throws ValueError when both are undefined.
Tensor clamp(TensorArg x, const Tensor& min, const Tensor& max);
Tensor clamp_min(TensorArg x, Scalar min);
Tensor clamp_min(TensorArg x, const Tensor& min);
Tensor clamp_max(TensorArg x, Scalar max);
Tensor clamp_max(TensorArg x, const Tensor& max);
inline Tensor clip(TensorArg x, std::optional<Scalar> min, std::optional<Scalar> max = {}) {
  return clamp(x, min, max);
}

}  // namespace kiln
