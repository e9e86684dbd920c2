// In-place forms, beside the methods of Tensor, of the ops of pointwise.h, bitwise.h, comparison.h
// and sequences.h: x takes over the result, rounded to its dtype, and is returned. DTypeError when
// the result is of a larger kind (float into int), ShapeError when it has another shape,
// AutodiffError where the write cannot be recorded (see Tensor).
#pragma once

#include "kiln/tensor/elementwise/bitwise.h"
#include "kiln/tensor/elementwise/comparison.h"
#include "kiln/tensor/elementwise/pointwise.h"

namespace kiln {

// Those of functions.def whose home is `tensor` or `tensors_`.
#define KILN_HOME_tensor(type, doc, name, ...) Tensor& name##_(Tensor& x);
#define KILN_HOME_tensors_(type, doc, name) Tensor& name##_(Tensor& x, const Tensor& y);
#include "kiln/backend/functions.def"

Tensor& exp2_(Tensor& x);
Tensor& polygamma_(Tensor& x, int64_t n);
Tensor& mvlgamma_(Tensor& x, int64_t p);
Tensor& sinc_(Tensor& x);
Tensor& logit_(Tensor& x, std::optional<double> eps = {});
Tensor& frac_(Tensor& x);
Tensor& deg2rad_(Tensor& x);
Tensor& rad2deg_(Tensor& x);
Tensor& round_(Tensor& x, int64_t decimals);
Tensor& nan_to_num_(Tensor& x, double nan = 0.0, std::optional<double> posinf = {},
                    std::optional<double> neginf = {});

Tensor& fmod_(Tensor& x, const Tensor& y);
Tensor& fmod_(Tensor& x, Scalar y);
Tensor& remainder_(Tensor& x, const Tensor& y);
Tensor& remainder_(Tensor& x, Scalar y);
Tensor& floor_divide_(Tensor& x, const Tensor& y);
Tensor& floor_divide_(Tensor& x, Scalar y);
Tensor& div_(Tensor& x, const Tensor& y, std::string_view rounding_mode);
Tensor& div_(Tensor& x, Scalar y, std::string_view rounding_mode);
Tensor& pow_(Tensor& x, const Tensor& exponent);
Tensor& atan2_(Tensor& y, const Tensor& x);
Tensor& copysign_(Tensor& x, const Tensor& y);
Tensor& copysign_(Tensor& x, Scalar y);
Tensor& nextafter_(Tensor& x, const Tensor& y);
Tensor& heaviside_(Tensor& x, const Tensor& y);
Tensor& xlogy_(Tensor& x, const Tensor& y);
Tensor& xlogy_(Tensor& x, Scalar y);
Tensor& ldexp_(Tensor& x, const Tensor& y);
Tensor& float_power_(Tensor& x, const Tensor& y);
Tensor& float_power_(Tensor& x, Scalar y);
Tensor& lerp_(Tensor& start, const Tensor& end, const Tensor& weight);
Tensor& lerp_(Tensor& start, const Tensor& end, Scalar weight);
Tensor& addcmul_(Tensor& x, const Tensor& a, const Tensor& b, Scalar value = 1);
Tensor& addcdiv_(Tensor& x, const Tensor& a, const Tensor& b, Scalar value = 1);
Tensor& clamp_(Tensor& x, const Tensor& min, const Tensor& max);
Tensor& clamp_min_(Tensor& x, Scalar min);
Tensor& clamp_min_(Tensor& x, const Tensor& min);
Tensor& clamp_max_(Tensor& x, Scalar max);
Tensor& clamp_max_(Tensor& x, const Tensor& max);

#define KILN_IN_PLACE_COMPARISON(name)         \
  Tensor& name##_(Tensor& x, const Tensor& y); \
  Tensor& name##_(Tensor& x, Scalar y);
KILN_IN_PLACE_COMPARISON(eq)
KILN_IN_PLACE_COMPARISON(ne)
KILN_IN_PLACE_COMPARISON(gt)
KILN_IN_PLACE_COMPARISON(ge)
KILN_IN_PLACE_COMPARISON(lt)
KILN_IN_PLACE_COMPARISON(le)
KILN_IN_PLACE_COMPARISON(bitwise_and)
KILN_IN_PLACE_COMPARISON(bitwise_or)
KILN_IN_PLACE_COMPARISON(bitwise_xor)
KILN_IN_PLACE_COMPARISON(bitwise_left_shift)
KILN_IN_PLACE_COMPARISON(bitwise_right_shift)
#undef KILN_IN_PLACE_COMPARISON
Tensor& logical_and_(Tensor& x, const Tensor& y);
Tensor& logical_or_(Tensor& x, const Tensor& y);
Tensor& logical_xor_(Tensor& x, const Tensor& y);
Tensor& logical_not_(Tensor& x);
Tensor& bitwise_not_(Tensor& x);
Tensor& gcd_(Tensor& x, const Tensor& y);
Tensor& lcm_(Tensor& x, const Tensor& y);
Tensor& tril_(Tensor& x, int64_t diagonal = 0);
Tensor& triu_(Tensor& x, int64_t diagonal = 0);

}  // namespace kiln
