// kiln::special: torch.special's names. Integers are computed in the default dtype.
#pragma once

#include "kiln/tensor/elementwise/pointwise.h"

namespace kiln::special {

// erfcx, ndtr and the others of functions.def whose home is `special`; zeta and the others whose
// home is `special_tensors`.
#define KILN_HOME_special(type, doc, name, ...) Tensor name(TensorArg x);
#define KILN_HOME_special_tensors(type, doc, name) \
  Tensor name(TensorArg x, TensorArg y);           \
  Tensor name(TensorArg x, Scalar y);              \
  Tensor name(Scalar x, TensorArg y);
#include "kiln/backend/functions.def"

// ---- Error function and normal distribution
inline Tensor erf(TensorArg x) { return kiln::erf(x); }
inline Tensor erfc(TensorArg x) { return kiln::erfc(x); }
inline Tensor erfinv(TensorArg x) { return kiln::erfinv(x); }

// ---- Gamma and zeta functions
inline Tensor gammaln(TensorArg x) { return kiln::lgamma(x); }
inline Tensor digamma(TensorArg x) { return kiln::digamma(x); }
inline Tensor psi(TensorArg x) { return kiln::digamma(x); }
inline Tensor polygamma(int64_t n, TensorArg x) { return kiln::polygamma(n, x); }
inline Tensor multigammaln(TensorArg x, int64_t p) { return kiln::mvlgamma(x, p); }
inline Tensor gammainc(TensorArg x, TensorArg y) { return kiln::igamma(x, y); }
inline Tensor gammaincc(TensorArg x, TensorArg y) { return kiln::igammac(x, y); }

// ---- Bessel and Airy functions
inline Tensor i0(TensorArg x) { return kiln::i0(x); }  // modified, of the first kind
Tensor i1(TensorArg x);
Tensor i1e(TensorArg x);  // e^-|x| i1(x)
inline Tensor modified_bessel_i0(TensorArg x) { return special::i0(x); }
inline Tensor modified_bessel_i1(TensorArg x) { return special::i1(x); }
Tensor spherical_bessel_j0(TensorArg x);  // sin(x) / x

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
inline Tensor xlogy(TensorArg x, TensorArg y) { return kiln::xlogy(x, y); }
inline Tensor xlogy(TensorArg x, Scalar y) { return kiln::xlogy(x, y); }
inline Tensor xlogy(Scalar x, TensorArg y) { return kiln::xlogy(x, y); }

}  // namespace kiln::special
