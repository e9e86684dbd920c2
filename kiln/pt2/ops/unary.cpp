// Functions of each element by itself.
#include "kiln/pt2/ops/forms.h"

namespace kiln::pt2 {

namespace {

void relu_in_place(Call& c) {
  Tensor x = c.x();
  c.out(x.relu_());
}
void round_to(Call& c) { c.out(kiln::round(c.x(), c.i("decimals", 0))); }
void logit_of(Call& c) { c.out(kiln::logit(c.x(), c.maybe_f("eps"))); }
void nan_to_num_of(Call& c) {
  c.out(kiln::nan_to_num(c.x(), c.f("nan", 0.0), c.maybe_f("posinf"), c.maybe_f("neginf")));
}
void polygamma_of(Call& c) { c.out(kiln::polygamma(c.i("n"), c.t("self"))); }
void mvlgamma_of(Call& c) { c.out(kiln::mvlgamma(c.x(), c.i("p"))); }
void frexp_of(Call& c) { c.out(kiln::frexp(c.x())); }
void conj_of(Call& c) { c.out(kiln::conj(c.x())); }
void same(Call& c) { c.out(c.x()); }

constexpr Operator kUnaryOperators[] = {
    {"abs", "default", unary<kiln::abs>},
    {"absolute", "default", unary<kiln::abs>},
    {"neg", "default", unary<kiln::neg>},
    {"negative", "default", unary<kiln::neg>},
    {"positive", "default", unary_of<kiln::positive>},
    {"sign", "default", unary<kiln::sign>},
    {"sgn", "default", unary_of<kiln::sgn>},
    {"signbit", "default", unary_of<kiln::signbit>},
    {"square", "default", unary<kiln::square>},
    {"floor", "default", unary<kiln::floor>},
    {"ceil", "default", unary<kiln::ceil>},
    {"round", "default", unary<kiln::round>},
    {"round", "decimals", round_to},
    {"trunc", "default", unary<kiln::trunc>},
    {"fix", "default", unary<kiln::trunc>},
    {"frac", "default", unary<kiln::frac>},
    {"relu", "default", unary<kiln::relu>},
    {"relu_", "default", relu_in_place},
    {"sqrt", "default", unary<kiln::sqrt>},
    {"rsqrt", "default", unary<kiln::rsqrt>},
    {"reciprocal", "default", unary<kiln::reciprocal>},
    {"exp", "default", unary<kiln::exp>},
    {"exp2", "default", unary<kiln::exp2>},
    {"expm1", "default", unary<kiln::expm1>},
    {"log", "default", unary<kiln::log>},
    {"log2", "default", unary<kiln::log2>},
    {"log10", "default", unary<kiln::log10>},
    {"log1p", "default", unary<kiln::log1p>},
    {"sin", "default", unary<kiln::sin>},
    {"cos", "default", unary<kiln::cos>},
    {"tan", "default", unary<kiln::tan>},
    {"asin", "default", unary<kiln::asin>},
    {"acos", "default", unary<kiln::acos>},
    {"atan", "default", unary<kiln::atan>},
    {"sinh", "default", unary<kiln::sinh>},
    {"cosh", "default", unary<kiln::cosh>},
    {"tanh", "default", unary<kiln::tanh>},
    {"asinh", "default", unary<kiln::asinh>},
    {"acosh", "default", unary<kiln::acosh>},
    {"atanh", "default", unary<kiln::atanh>},
    {"arcsin", "default", unary<kiln::asin>},
    {"arccos", "default", unary<kiln::acos>},
    {"arctan", "default", unary<kiln::atan>},
    {"arcsinh", "default", unary<kiln::asinh>},
    {"arccosh", "default", unary<kiln::acosh>},
    {"arctanh", "default", unary<kiln::atanh>},
    {"sinc", "default", unary<kiln::sinc>},
    {"deg2rad", "default", unary<kiln::deg2rad>},
    {"rad2deg", "default", unary<kiln::rad2deg>},
    {"erf", "default", unary<kiln::erf>},
    {"erfc", "default", unary<kiln::erfc>},
    {"erfinv", "default", unary<kiln::erfinv>},
    {"sigmoid", "default", unary<kiln::sigmoid>},
    {"logit", "default", logit_of},
    {"lgamma", "default", unary<kiln::lgamma>},
    {"digamma", "default", unary<kiln::digamma>},
    {"polygamma", "default", polygamma_of},
    {"mvlgamma", "default", mvlgamma_of},
    {"i0", "default", unary<kiln::i0>},
    {"nan_to_num", "default", nan_to_num_of},
    {"frexp", "Tensor", frexp_of},
    {"isnan", "default", unary_of<kiln::isnan>},
    {"isinf", "default", unary_of<kiln::isinf>},
    {"isfinite", "default", unary_of<kiln::isfinite>},
    {"isposinf", "default", unary_of<kiln::isposinf>},
    {"isneginf", "default", unary_of<kiln::isneginf>},
    {"isreal", "default", unary_of<kiln::isreal>},
    {"logical_not", "default", unary_of<kiln::logical_not>},
    {"bitwise_not", "default", unary_of<kiln::bitwise_not>},
    {"real", "default", unary_of<kiln::real>},
    {"imag", "default", unary_of<kiln::imag>},
    {"angle", "default", unary_of<kiln::angle>},
    {"conj", "default", conj_of},
    {"_conj", "default", conj_of},
    {"conj_physical", "default", conj_of},
    {"_conj_physical", "default", conj_of},
    {"resolve_conj", "default", same},
    {"resolve_neg", "default", same},
    {"view_as_real", "default", unary_of<kiln::view_as_real>},
    {"view_as_complex", "default", unary_of<kiln::view_as_complex>},
};

}  // namespace

std::span<const Operator> unary_operators() { return kUnaryOperators; }

}  // namespace kiln::pt2
