// Reductions of complex tensors.
#include <cmath>

#include "kiln/tensor/complex/complex_ops.h"
#include "kiln/tensor/operands.h"

namespace kiln::complex_ops {

using namespace detail;

namespace {

// The dims to reduce, of z and (the same numbers) of its parts.
Dims reduced(const char* op, const Tensor& z, const Dims& dims) {
  if (z.dim() == 0) {
    normalize_dims(op, dims, 0);
    return {};
  }
  return dims.empty() ? all_dims(z.dim()) : normalize_dims(op, dims, z.dim());
}

}  // namespace

Tensor sum(const Tensor& x, const Dims& dims, bool keepdim) {
  const Dims over = reduced("sum", x, dims);
  if (over.empty()) return x.clone();
  return through_parts(x, [&](const Tensor& p) { return p.sum(over, keepdim); });
}

Tensor mean(const Tensor& x, const Dims& dims, bool keepdim) {
  const Dims over = reduced("mean", x, dims);
  if (over.empty()) return x.clone();
  return through_parts(x, [&](const Tensor& p) { return p.mean(over, keepdim); });
}

// The mean squared distance from the mean: the parts' variances together.
Tensor var(const Tensor& x, const Dims& dims, double correction, bool keepdim) {
  const Dims over = reduced("var", x, dims);
  const auto of = [&](const Tensor& p) {
    return over.empty() ? p.unsqueeze(0).var(0, correction) : p.var(over, correction, keepdim);
  };
  const Parts p = split_parts(x);
  return of(p.re) + of(p.im);
}

// Products of halves: log n products, each differentiable, with no division that a zero would
// break.
Tensor prod(const Tensor& x, int64_t dim, bool keepdim) {
  const int d = normalize_dim("prod", dim, x.dim());
  if (x.dim() == 0) return x.clone();
  Tensor left = x;
  int64_t n = x.shape()[d];
  if (n == 0) {
    Shape shape = x.shape();
    shape[d] = 1;
    left = constant_of(x, ones(shape, {x.dtype(), x.device()}));
    n = 1;
  }
  while (n > 1) {
    const int64_t half = n / 2;
    Tensor next = mul(left.narrow(d, 0, half), left.narrow(d, half, half));
    if (n % 2 != 0) next = cat({next, left.narrow(d, n - 1, 1)}, d);
    left = next;
    n = n - half;
  }
  if (left.is_same(x)) left = x.clone();
  return keepdim ? left : left.squeeze(d);
}

namespace {

// Hillis and Steele's scan: log n combinations of the whole.
template <class F>
Tensor scanned(const Tensor& x, int d, F combine) {
  Tensor out = x.clone();
  if (x.dim() == 0) return out;
  const int64_t n = x.shape()[d];
  for (int64_t step = 1; step < n; step *= 2) {
    const Tensor later = combine(out.narrow(d, step, n - step), out.narrow(d, 0, n - step));
    out = cat({out.narrow(d, 0, step), later}, d);
  }
  return out;
}

}  // namespace

Tensor cumprod(const Tensor& x, int64_t dim) {
  const int d = normalize_dim("cumprod", dim, x.dim());
  return scanned(x, d, [](const Tensor& a, const Tensor& b) { return mul(a, b); });
}

// With the largest real part taken out first, so that no power overflows.
Tensor logsumexp(const Tensor& x, const Dims& dims, bool keepdim) {
  const Dims over = reduced("logsumexp", x, dims);
  Tensor largest = kiln::real(x.detach()).amax(over, true);
  largest = largest.masked_fill(largest.isinf(), 0);
  const Tensor sums = sub(x, largest).exp().sum(over, keepdim).log();
  return add(sums, keepdim ? largest : largest.reshape(sums.shape()));
}

Tensor logaddexp(const Tensor& x, const Tensor& y) {
  const Tensor first = kiln::real(x.detach()).ge(kiln::real(y.detach()));
  const Tensor high = kiln::where(first, x, y);
  const Tensor low = kiln::where(first, y, x);
  // Of two equal infinities there is no difference.
  const Tensor end = kiln::real(high.detach());
  const Tensor same = end.isinf().logical_and(end.eq(kiln::real(low.detach())));
  const Tensor away = sub(low, high).masked_fill(same, 0);
  return add(high, away.exp().log1p());
}

Tensor logcumsumexp(const Tensor& x, int64_t dim) {
  const int d = normalize_dim("logcumsumexp", dim, x.dim());
  return scanned(x, d, [](const Tensor& a, const Tensor& b) { return logaddexp(a, b); });
}

}  // namespace kiln::complex_ops
