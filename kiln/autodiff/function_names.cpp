#include "kiln/autodiff/formulas_functions.h"
#include "kiln/core/error.h"

namespace kiln::autodiff {

const char* name_of(UnaryFunction::Type type) {
  static constexpr const char* names[] = {"exp2",
                                          "erfc",
                                          "erfcx",
                                          "erfinv",
                                          "lgamma",
                                          "digamma",
                                          "polygamma",
                                          "ndtr",
                                          "ndtri",
                                          "log_ndtr",
                                          "entr",
                                          "sinc",
                                          "frac",
                                          "logit",
                                          "nan_to_num",
                                          "i0",
                                          "i0e",
                                          "i1",
                                          "i1e",
                                          "bessel_j0",
                                          "bessel_j1",
                                          "bessel_y0",
                                          "bessel_y1",
                                          "modified_bessel_k0",
                                          "modified_bessel_k1",
                                          "scaled_modified_bessel_k0",
                                          "scaled_modified_bessel_k1",
                                          "airy_ai",
                                          "softplus",
                                          "logsigmoid",
                                          "frexp",
                                          "frexp",
                                          "leaky_relu",
                                          "threshold",
                                          "hardtanh",
                                          "hardshrink",
                                          "softshrink",
                                          "hardsigmoid",
                                          "hardswish",
                                          "elu"};
  static_assert(std::size(names) == static_cast<size_t>(UnaryFunction::Type::count));
  return names[static_cast<int>(type)];
}

const char* name_of(BinaryFunction::Type type) {
  static constexpr const char* names[] = {"fmod",
                                          "floor_divide",
                                          "div",
                                          "hypot",
                                          "copysign",
                                          "nextafter",
                                          "fmax",
                                          "fmin",
                                          "heaviside",
                                          "xlogy",
                                          "xlog1py",
                                          "logaddexp",
                                          "logaddexp2",
                                          "zeta",
                                          "gammainc",
                                          "gammaincc",
                                          "prelu",
                                          "glu",
                                          "huber_loss",
                                          "binary_cross_entropy_with_logits",
                                          "mse_loss",
                                          "l1_loss",
                                          "leaky_relu_backward",
                                          "threshold_backward",
                                          "hardtanh_backward",
                                          "shrink_backward",
                                          "hardswish_backward",
                                          "elu_backward",
                                          "softplus_backward",
                                          "prelu_weight_backward"};
  static_assert(std::size(names) == static_cast<size_t>(BinaryFunction::Type::count));
  return names[static_cast<int>(type)];
}

const char* name_of(TernaryFunction::Type type) {
  static constexpr const char* names[] = {"lerp",
                                          "addcmul",
                                          "addcdiv",
                                          "clamp",
                                          "prelu_backward",
                                          "glu_backward",
                                          "huber_loss_backward",
                                          "binary_cross_entropy_with_logits_backward"};
  static_assert(std::size(names) == static_cast<size_t>(TernaryFunction::Type::count));
  return names[static_cast<int>(type)];
}

void throw_no_derivative(const char* op, const char* operand) {
  throw_error<NotImplementedError>(op, ": has no derivative with respect to its ", operand,
                                   " operand; detach() that one");
}

const char* name_of(ComplexFunction function) {
  static constexpr const char* names[] = {
      "conj", "reciprocal", "exp",  "expm1", "log",  "log1p", "sqrt",  "sin",   "cos",  "tan",
      "sinh", "cosh",       "tanh", "asin",  "acos", "atan",  "asinh", "acosh", "atanh"};
  static_assert(std::size(names) == static_cast<size_t>(ComplexFunction::count));
  return names[static_cast<int>(function)];
}

}  // namespace kiln::autodiff
