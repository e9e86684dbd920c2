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
                                          "frexp"};
  static_assert(std::size(names) == static_cast<size_t>(UnaryFunction::Type::count));
  return names[static_cast<int>(type)];
}

const char* name_of(BinaryFunction f) {
  static constexpr const char* names[] = {"fmod",       "floor_divide", "div",      "hypot",
                                          "copysign",   "nextafter",    "fmax",     "fmin",
                                          "heaviside",  "xlogy",        "xlog1py",  "logaddexp",
                                          "logaddexp2", "zeta",         "gammainc", "gammaincc"};
  static_assert(std::size(names) == static_cast<size_t>(BinaryFunction::count));
  return names[static_cast<int>(f)];
}

const char* name_of(TernaryFunction::Type type) {
  static constexpr const char* names[] = {"lerp", "addcmul", "addcdiv", "clamp"};
  static_assert(std::size(names) == static_cast<size_t>(TernaryFunction::Type::count));
  return names[static_cast<int>(type)];
}

void throw_no_derivative(const char* op, const char* operand) {
  throw_error<NotImplementedError>(op, ": has no derivative with respect to its ", operand,
                                   " operand; detach() that one");
}

}  // namespace kiln::autodiff
