// Comparisons, of floats and of ints.
#include <cmath>

#include "kiln/backend/reference/elements.h"

namespace kiln {

using reference::map;
using reference::Ops;
using reference::Tensor;

// A comparison of two tensors, and of a tensor with a scalar. A float scalar is rounded to the
// tensor's dtype first, so that a tensor of 0.1 equals 0.1; an int scalar stays the number it is,
// also outside the dtype's range.
#define KILN_COMPARE(name, expression)                                                          \
  HostHandle Ops::float_##name(Tensor x, Tensor y) {                                            \
    return map<double>(x, y, DType::boolean, [](double a, double b) { return expression; });    \
  }                                                                                             \
  HostHandle Ops::float_##name##_scalar(Tensor x, Scalar value) {                               \
    const double b = reference::round_to(value.to_double(), x->dtype());                        \
    return map<double>(x, DType::boolean, [b](double a) { return expression; });                \
  }                                                                                             \
  HostHandle Ops::int_##name(Tensor x, Tensor y) {                                              \
    return map<int64_t>(x, y, DType::boolean, [](int64_t a, int64_t b) { return expression; }); \
  }                                                                                             \
  HostHandle Ops::int_##name##_scalar(Tensor x, Scalar value) {                                 \
    const int64_t b = value.to_int();                                                           \
    return map<int64_t>(x, DType::boolean, [b](int64_t a) { return expression; });              \
  }
KILN_COMPARE(equal, a == b)
KILN_COMPARE(not_equal, a != b)
KILN_COMPARE(greater, a > b)
KILN_COMPARE(greater_equal, a >= b)
KILN_COMPARE(lower, a < b)
KILN_COMPARE(lower_equal, a <= b)
#undef KILN_COMPARE

HostHandle Ops::float_is_nan(Tensor x) {
  return map<double>(x, DType::boolean, [](double a) { return std::isnan(a); });
}
HostHandle Ops::float_is_inf(Tensor x) {
  return map<double>(x, DType::boolean, [](double a) { return std::isinf(a); });
}

}  // namespace kiln
