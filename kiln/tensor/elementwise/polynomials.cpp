#include "kiln/tensor/elementwise/polynomials.h"

#include "kiln/tensor/creation.h"
#include "kiln/tensor/elementwise/pointwise.h"
#include "kiln/tensor/ops.h"
#include "kiln/tensor/tensor_impl.h"

namespace kiln::special {

using namespace kiln::detail;

namespace {

constexpr double kMostDegrees = 100000;

DType float_of(DType x) { return kiln::is_floating_point(x) ? x : default_dtype(); }

// P_0 = 1 and P_1 = first; next(k, P_k, P_(k-1)) gives P_(k+1).
template <class Next>
Tensor polynomial(const char* op, const Tensor& x, const Tensor& degree, const Tensor& first,
                  Next next) {
  const Tensor n = degree.detach().trunc();
  const double most = n.numel() == 0 ? -1 : n.max().item();
  if (most > kMostDegrees) {
    throw_error<ValueError>(op, ": expected degrees up to ", kMostDegrees, "; got ", most);
  }
  Tensor before = ones_like(x);
  Tensor here = first;
  Tensor out = where(n.eq(0), before, zeros_like(x));
  for (double k = 1; k <= most; ++k) {
    out = where(n.eq(k), here, out);
    if (k < most) {
      Tensor after = next(k, here, before);
      before = std::move(here);
      here = std::move(after);
    }
  }
  return out;
}

Tensor chebyshev(const char* op, const Tensor& x, const Tensor& n, const Tensor& first) {
  const Tensor twice = x.mul(2);
  return polynomial(op, x, n, first,
                    [&](double, const Tensor& p, const Tensor& q) { return twice.mul(p).sub(q); });
}
Tensor hermite(const char* op, const Tensor& x, const Tensor& n, double scale) {
  const Tensor first = x.mul(scale);
  return polynomial(op, x, n, first, [&](double k, const Tensor& p, const Tensor& q) {
    return first.mul(p).sub(q.mul(scale * k));
  });
}
Tensor laguerre(const char* op, const Tensor& x, const Tensor& n) {
  return polynomial(op, x, n, rsub(x, 1), [&](double k, const Tensor& p, const Tensor& q) {
    return rsub(x, 2 * k + 1).mul(p).sub(q.mul(k)).div(k + 1);
  });
}
Tensor legendre(const char* op, const Tensor& x, const Tensor& n) {
  return polynomial(op, x, n, x, [&](double k, const Tensor& p, const Tensor& q) {
    return x.mul(p).mul(2 * k + 1).sub(q.mul(k)).div(k + 1);
  });
}

Tensor first_t(const Tensor& x) { return x; }
Tensor first_u(const Tensor& x) { return x.mul(2); }
Tensor first_v(const Tensor& x) { return x.mul(2).sub(1); }
Tensor first_w(const Tensor& x) { return x.mul(2).add(1); }

// f(op, x, n) with both in the dtype that they promote to.
template <class F>
Tensor in_one_dtype(const char* op, const Tensor& x, const Tensor& n, F f) {
  const DType dtype = float_of(result_type(op, value_of(op, x), value_of(op, n)));
  return f(op, x.to(dtype), n.to(dtype));
}
template <class F>
Tensor in_one_dtype(const char* op, const Tensor& x, Scalar n, F f) {
  return in_one_dtype(op, x, wrap(full_value({}, n, float_of(x.dtype()), x.device())), f);
}
template <class F>
Tensor in_one_dtype(const char* op, Scalar x, const Tensor& n, F f) {
  return in_one_dtype(op, wrap(full_value({}, x, float_of(n.dtype()), n.device())), n, f);
}

}  // namespace

#define KILN_FORM(name, X, N, expression)                                                     \
  Tensor name(X x_, N n_) {                                                                   \
    return in_one_dtype(#name, x_, n_, [](const char* op, const Tensor& x, const Tensor& n) { \
      return expression;                                                                      \
    });                                                                                       \
  }
#define KILN_POLYNOMIAL(name, expression)                   \
  KILN_FORM(name, const Tensor&, const Tensor&, expression) \
  KILN_FORM(name, const Tensor&, Scalar, expression)        \
  KILN_FORM(name, Scalar, const Tensor&, expression)
#define KILN_CHEBYSHEV(kind)                                                         \
  KILN_POLYNOMIAL(chebyshev_polynomial_##kind, chebyshev(op, x, n, first_##kind(x))) \
  KILN_POLYNOMIAL(shifted_chebyshev_polynomial_##kind,                               \
                  chebyshev(op, first_v(x), n, first_##kind(first_v(x))))
KILN_CHEBYSHEV(t)
KILN_CHEBYSHEV(u)
KILN_CHEBYSHEV(v)
KILN_CHEBYSHEV(w)
KILN_POLYNOMIAL(hermite_polynomial_h, hermite(op, x, n, 2))
KILN_POLYNOMIAL(hermite_polynomial_he, hermite(op, x, n, 1))
KILN_POLYNOMIAL(laguerre_polynomial_l, laguerre(op, x, n))
KILN_POLYNOMIAL(legendre_polynomial_p, legendre(op, x, n))

}  // namespace kiln::special
