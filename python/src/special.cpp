// kiln.special: the functions of torch.special.
#include "binding.h"
#include "kiln/tensor/elementwise/polynomials.h"

namespace kiln::python {

namespace {

namespace sp = kiln::special;

template <class F>
auto both_ways(const char* op, F f) {
  return [f, op](const Operand& x, const Operand& y) {
    if (!x.is_tensor() && !y.is_tensor()) {
      throw nb::type_error(concat(op, ": expected at least one tensor; got two numbers").c_str());
    }
    Unlocked lock(x.is_tensor() ? x.tensor() : y.tensor());
    if (!x.is_tensor()) return Tensor(f(x.scalar(), y.tensor()));
    return y.is_tensor() ? Tensor(f(x.tensor(), y.tensor())) : Tensor(f(x.tensor(), y.scalar()));
  };
}

void bind_polynomials(nb::module_& m) {
#define KILN_POLYNOMIAL(name, doc)                                                            \
  m.def(#name, both_ways(#name, [](const auto& x, const auto& n) { return sp::name(x, n); }), \
        "input"_a, "n"_a, doc);
  KILN_POLYNOMIAL(chebyshev_polynomial_t, "Chebyshev's of the first kind, of degree n")
  KILN_POLYNOMIAL(chebyshev_polynomial_u, "Chebyshev's of the second kind, of degree n")
  KILN_POLYNOMIAL(chebyshev_polynomial_v, "Chebyshev's of the third kind, of degree n")
  KILN_POLYNOMIAL(chebyshev_polynomial_w, "Chebyshev's of the fourth kind, of degree n")
  KILN_POLYNOMIAL(shifted_chebyshev_polynomial_t, "chebyshev_polynomial_t at 2x - 1")
  KILN_POLYNOMIAL(shifted_chebyshev_polynomial_u, "chebyshev_polynomial_u at 2x - 1")
  KILN_POLYNOMIAL(shifted_chebyshev_polynomial_v, "chebyshev_polynomial_v at 2x - 1")
  KILN_POLYNOMIAL(shifted_chebyshev_polynomial_w, "chebyshev_polynomial_w at 2x - 1")
  KILN_POLYNOMIAL(hermite_polynomial_h, "the physicists' Hermite polynomial of degree n")
  KILN_POLYNOMIAL(hermite_polynomial_he, "the probabilists' Hermite polynomial of degree n")
  KILN_POLYNOMIAL(laguerre_polynomial_l, "Laguerre's polynomial of degree n")
  KILN_POLYNOMIAL(legendre_polynomial_p, "Legendre's polynomial of degree n")
#undef KILN_POLYNOMIAL
}

}  // namespace

void bind_special(nb::module_& parent) {
  nb::module_ m = parent.def_submodule("_special", "Special functions.");
  const auto def = [&m](const char* name, Tensor (*f)(TensorArg), const char* doc) {
    m.def(
        name,
        [f](const Tensor& x) {
          Unlocked lock(x);
          return f(x);
        },
        "input"_a, doc);
  };
#define KILN_HOME_special(type, doc, name, ...) def(#name, sp::name, doc);
#include "kiln/backend/functions.def"
  def("digamma", sp::digamma, "the derivative of gammaln");
  def("psi", sp::psi, "the derivative of gammaln");
  def("erf", sp::erf, "Gauss error function");
  def("erfc", sp::erfc, "1 - erf(x)");
  def("erfinv", sp::erfinv, "the inverse of erf");
  def("exp2", sp::exp2, "2^x");
  def("expit", sp::expit, "1 / (1 + e^-x)");
  def("expm1", sp::expm1, "e^x - 1");
  def("gammaln", sp::gammaln, "log |gamma(x)|");
  def("i0", sp::i0, "modified Bessel function of the first kind, order 0");
  def("i1", sp::i1, "modified Bessel function of the first kind, order 1");
  def("i1e", sp::i1e, "e^-|x| i1(x)");
  def("modified_bessel_i0", sp::modified_bessel_i0, "i0");
  def("modified_bessel_i1", sp::modified_bessel_i1, "i1");
  def("log1p", sp::log1p, "log(1 + x)");
  def("sinc", sp::sinc, "sin(pi x) / (pi x)");
  def("spherical_bessel_j0", sp::spherical_bessel_j0, "sin(x) / x");
  const auto def_tensors = [&m](const char* name, Tensor (*f)(TensorArg, TensorArg),
                                const char* doc) {
    m.def(
        name,
        [f](const Tensor& x, const Tensor& y) {
          Unlocked lock(x, y);
          return f(x, y);
        },
        "input"_a, "other"_a, doc);
  };
  def_tensors("gammainc", sp::gammainc, "lower regularized incomplete gamma function");
  def_tensors("gammaincc", sp::gammaincc, "upper regularized incomplete gamma function");
  bind_polynomials(m);
#define KILN_HOME_special_tensors(type, doc, name)                                            \
  m.def(#name, both_ways(#name, [](const auto& x, const auto& y) { return sp::name(x, y); }), \
        "input"_a, "other"_a, doc);
#include "kiln/backend/functions.def"
  m.def("xlogy", both_ways("xlogy", [](const auto& x, const auto& y) { return sp::xlogy(x, y); }),
        "input"_a, "other"_a, "x log(other), 0 where x is 0");
  m.def(
      "logit",
      [](const Tensor& x, std::optional<double> eps) {
        Unlocked lock(x);
        return sp::logit(x, eps);
      },
      "input"_a, "eps"_a = nb::none(), "log(x / (1 - x))");
  m.def(
      "polygamma",
      [](int64_t n, const Tensor& x) {
        Unlocked lock(x);
        return sp::polygamma(n, x);
      },
      "n"_a, "input"_a, "The n-th derivative of digamma.");
  m.def(
      "multigammaln",
      [](const Tensor& x, int64_t p) {
        Unlocked lock(x);
        return sp::multigammaln(x, p);
      },
      "input"_a, "p"_a, "log of the multivariate gamma function of order p");
  m.def(
      "round",
      [](const Tensor& x, int64_t decimals) {
        Unlocked lock(x);
        return sp::round(x, decimals);
      },
      "input"_a, nb::kw_only(), "decimals"_a = 0, "Half to even at the given decimal.");
  m.def(
      "softmax",
      [](const Tensor& x, int64_t dim, std::optional<DType> dtype) {
        Unlocked lock(x);
        return sp::softmax(dtype ? x.to(*dtype) : x, dim);
      },
      "input"_a, "dim"_a, "dtype"_a = nb::none());
  m.def(
      "log_softmax",
      [](const Tensor& x, int64_t dim, std::optional<DType> dtype) {
        Unlocked lock(x);
        return sp::log_softmax(dtype ? x.to(*dtype) : x, dim);
      },
      "input"_a, "dim"_a, "dtype"_a = nb::none());
  m.def(
      "logsumexp",
      [](const Tensor& x, const IntList& dim, bool keepdim) {
        Unlocked lock(x);
        return sp::logsumexp(x, dim.values, keepdim);
      },
      "input"_a, "dim"_a, "keepdim"_a = false);
}

}  // namespace kiln::python
