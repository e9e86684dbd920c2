// torch.special.
#include "kiln/tensor/elementwise/special.h"

#include "kiln/pt2/ops/forms.h"
#include "kiln/tensor/elementwise/polynomials.h"

namespace kiln::pt2 {

namespace {

namespace s = special;

#define KILN_PT2_PAIR(name, function, first, second)                                   \
  void name(Call& c) {                                                                 \
    c.out(with_operands(c, first, second,                                              \
                        [](const auto& a, const auto& b) { return function(a, b); })); \
  }
KILN_PT2_PAIR(xlog1py, s::xlog1py, "self", "other")
KILN_PT2_PAIR(xlogy, s::xlogy, "self", "other")
KILN_PT2_PAIR(zeta, s::zeta, "self", "other")

#define KILN_PT2_POLYNOMIAL(name) KILN_PT2_PAIR(name, s::name, "x", "n")
KILN_PT2_POLYNOMIAL(chebyshev_polynomial_t)
KILN_PT2_POLYNOMIAL(chebyshev_polynomial_u)
KILN_PT2_POLYNOMIAL(chebyshev_polynomial_v)
KILN_PT2_POLYNOMIAL(chebyshev_polynomial_w)
KILN_PT2_POLYNOMIAL(shifted_chebyshev_polynomial_t)
KILN_PT2_POLYNOMIAL(shifted_chebyshev_polynomial_u)
KILN_PT2_POLYNOMIAL(shifted_chebyshev_polynomial_v)
KILN_PT2_POLYNOMIAL(shifted_chebyshev_polynomial_w)
KILN_PT2_POLYNOMIAL(hermite_polynomial_h)
KILN_PT2_POLYNOMIAL(hermite_polynomial_he)
KILN_PT2_POLYNOMIAL(laguerre_polynomial_l)
KILN_PT2_POLYNOMIAL(legendre_polynomial_p)

void gammainc(Call& c) { c.out(s::gammainc(c.x(), c.t("other"))); }
void gammaincc(Call& c) { c.out(s::gammaincc(c.x(), c.t("other"))); }
void logit(Call& c) { c.out(s::logit(c.x(), c.maybe_f("eps"))); }
void multigammaln(Call& c) { c.out(s::multigammaln(c.x(), c.i("p"))); }
void polygamma(Call& c) { c.out(s::polygamma(c.i("n"), c.t("self"))); }
void round_of(Call& c) { c.out(s::round(c.x(), c.i("decimals", 0))); }

constexpr Operator kSpecialOperators[] = {
    {"special_airy_ai", "default", unary<s::airy_ai>},
    {"special_bessel_j0", "default", unary<s::bessel_j0>},
    {"special_bessel_j1", "default", unary<s::bessel_j1>},
    {"special_bessel_y0", "default", unary<s::bessel_y0>},
    {"special_bessel_y1", "default", unary<s::bessel_y1>},
    {"special_modified_bessel_i0", "default", unary<s::modified_bessel_i0>},
    {"special_modified_bessel_i1", "default", unary<s::modified_bessel_i1>},
    {"special_modified_bessel_k0", "default", unary<s::modified_bessel_k0>},
    {"special_modified_bessel_k1", "default", unary<s::modified_bessel_k1>},
    {"special_scaled_modified_bessel_k0", "default", unary<s::scaled_modified_bessel_k0>},
    {"special_scaled_modified_bessel_k1", "default", unary<s::scaled_modified_bessel_k1>},
    {"special_spherical_bessel_j0", "default", unary<s::spherical_bessel_j0>},
    {"special_digamma", "default", unary<s::digamma>},
    {"special_psi", "default", unary<s::psi>},
    {"special_entr", "default", unary<s::entr>},
    {"special_erf", "default", unary<s::erf>},
    {"special_erfc", "default", unary<s::erfc>},
    {"special_erfcx", "default", unary<s::erfcx>},
    {"special_erfinv", "default", unary<s::erfinv>},
    {"special_exp2", "default", unary<s::exp2>},
    {"special_expit", "default", unary<s::expit>},
    {"special_expm1", "default", unary<s::expm1>},
    {"special_gammaln", "default", unary<s::gammaln>},
    {"special_gammainc", "default", gammainc},
    {"special_gammaincc", "default", gammaincc},
    {"special_i0", "default", unary<s::i0>},
    {"special_i0e", "default", unary<s::i0e>},
    {"special_i1", "default", unary<s::i1>},
    {"special_i1e", "default", unary<s::i1e>},
    {"special_log1p", "default", unary<s::log1p>},
    {"special_log_ndtr", "default", unary<s::log_ndtr>},
    {"special_logit", "default", logit},
    {"special_multigammaln", "default", multigammaln},
    {"special_ndtr", "default", unary<s::ndtr>},
    {"special_ndtri", "default", unary<s::ndtri>},
    {"special_polygamma", "default", polygamma},
    {"special_round", "default", round_of},
    {"special_sinc", "default", unary<s::sinc>},
    {"special_xlog1py", "default self_scalar other_scalar", xlog1py},
    {"special_xlogy", "default self_scalar other_scalar", xlogy},
    {"special_zeta", "default self_scalar other_scalar", zeta},
    {"special_chebyshev_polynomial_t", "default x_scalar n_scalar", chebyshev_polynomial_t},
    {"special_chebyshev_polynomial_u", "default x_scalar n_scalar", chebyshev_polynomial_u},
    {"special_chebyshev_polynomial_v", "default x_scalar n_scalar", chebyshev_polynomial_v},
    {"special_chebyshev_polynomial_w", "default x_scalar n_scalar", chebyshev_polynomial_w},
    {"special_shifted_chebyshev_polynomial_t", "default x_scalar n_scalar",
     shifted_chebyshev_polynomial_t},
    {"special_shifted_chebyshev_polynomial_u", "default x_scalar n_scalar",
     shifted_chebyshev_polynomial_u},
    {"special_shifted_chebyshev_polynomial_v", "default x_scalar n_scalar",
     shifted_chebyshev_polynomial_v},
    {"special_shifted_chebyshev_polynomial_w", "default x_scalar n_scalar",
     shifted_chebyshev_polynomial_w},
    {"special_hermite_polynomial_h", "default x_scalar n_scalar", hermite_polynomial_h},
    {"special_hermite_polynomial_he", "default x_scalar n_scalar", hermite_polynomial_he},
    {"special_laguerre_polynomial_l", "default x_scalar n_scalar", laguerre_polynomial_l},
    {"special_legendre_polynomial_p", "default x_scalar n_scalar", legendre_polynomial_p},
};

}  // namespace

std::span<const Operator> special_operators() { return kSpecialOperators; }

}  // namespace kiln::pt2
