// kiln::special: torch.special's names. Integers are computed in the default dtype.
#pragma once

#include "kiln/tensor/elementwise/pointwise.h"

namespace kiln::special {

// ---- Error function and normal distribution
inline Tensor erf(TensorArg x) { return kiln::erf(x); }
inline Tensor erfc(TensorArg x) { return kiln::erfc(x); }
inline Tensor erfinv(TensorArg x) { return kiln::erfinv(x); }
Tensor erfcx(TensorArg x);     // e^(x^2) erfc(x)
Tensor ndtr(TensorArg x);      // the normal distribution function
Tensor ndtri(TensorArg x);     // its inverse; NaN outside [0, 1]
Tensor log_ndtr(TensorArg x);  // its logarithm, exact far into the tail

// ---- Gamma and zeta functions
inline Tensor gammaln(TensorArg x) { return kiln::lgamma(x); }
inline Tensor digamma(TensorArg x) { return kiln::digamma(x); }
inline Tensor psi(TensorArg x) { return kiln::digamma(x); }
inline Tensor polygamma(int64_t n, TensorArg x) { return kiln::polygamma(n, x); }
inline Tensor multigammaln(TensorArg x, int64_t p) { return kiln::mvlgamma(x, p); }
inline Tensor gammainc(TensorArg x, TensorArg y) { return kiln::igamma(x, y); }
inline Tensor gammaincc(TensorArg x, TensorArg y) { return kiln::igammac(x, y); }
// Hurwitz's: the sum of (k + q)^-x over k >= 0; differentiable with respect to q.
Tensor zeta(TensorArg x, TensorArg q);
Tensor zeta(TensorArg x, Scalar q);
Tensor zeta(Scalar x, TensorArg q);

// ---- Bessel and Airy functions
Tensor bessel_j0(TensorArg x);  // of the first kind, order 0
Tensor bessel_j1(TensorArg x);
Tensor bessel_y0(TensorArg x);  // of the second kind
Tensor bessel_y1(TensorArg x);
inline Tensor i0(TensorArg x) { return kiln::i0(x); }  // modified, of the first kind
Tensor i0e(TensorArg x);                               // e^-|x| i0(x)
Tensor i1(TensorArg x);
Tensor i1e(TensorArg x);
inline Tensor modified_bessel_i0(TensorArg x) { return special::i0(x); }
inline Tensor modified_bessel_i1(TensorArg x) { return special::i1(x); }
Tensor modified_bessel_k0(TensorArg x);  // modified, of the second kind
Tensor modified_bessel_k1(TensorArg x);
Tensor scaled_modified_bessel_k0(TensorArg x);  // e^x times that
Tensor scaled_modified_bessel_k1(TensorArg x);
Tensor spherical_bessel_j0(TensorArg x);  // sin(x) / x
Tensor airy_ai(TensorArg x);              // no derivative

// ---- Exponentials, logarithms and others
inline Tensor exp2(TensorArg x) { return kiln::exp2(x); }
inline Tensor expm1(TensorArg x) { return kiln::expm1(x); }
inline Tensor expit(TensorArg x) { return kiln::sigmoid(x); }
inline Tensor log1p(TensorArg x) { return kiln::log1p(x); }
inline Tensor logit(TensorArg x, std::optional<double> eps = {}) { return kiln::logit(x, eps); }
inline Tensor log_softmax(TensorArg x, int64_t dim) { return kiln::log_softmax(x, dim); }
inline Tensor softmax(TensorArg x, int64_t dim) { return kiln::softmax(x, dim); }
inline Tensor logsumexp(const Tensor& x, const Dims& dims, bool keepdim = false) {
  return x.logsumexp(dims, keepdim);
}
inline Tensor round(TensorArg x, int64_t decimals = 0) { return kiln::round(x, decimals); }
inline Tensor sinc(TensorArg x) { return kiln::sinc(x); }
Tensor entr(TensorArg x);  // -x log x; 0 at 0, -inf below
inline Tensor xlogy(TensorArg x, TensorArg y) { return kiln::xlogy(x, y); }
inline Tensor xlogy(TensorArg x, Scalar y) { return kiln::xlogy(x, y); }
inline Tensor xlogy(Scalar x, TensorArg y) { return kiln::xlogy(x, y); }
// x log(1 + y), and 0 where x is 0 unless y is NaN.
Tensor xlog1py(TensorArg x, TensorArg y);
Tensor xlog1py(TensorArg x, Scalar y);
Tensor xlog1py(Scalar x, TensorArg y);

}  // namespace kiln::special
