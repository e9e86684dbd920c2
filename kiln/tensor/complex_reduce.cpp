// Reductions of complex tensors.
#include <cmath>

#include "kiln/tensor/complex_ops.h"

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
    left = ones(shape, {x.dtype(), x.device()});
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

// Hillis and Steele's scan: log n products of the whole.
Tensor cumprod(const Tensor& x, int64_t dim) {
  const int d = normalize_dim("cumprod", dim, x.dim());
  if (x.dim() == 0) return x.clone();
  const int64_t n = x.shape()[d];
  Tensor out = x.clone();
  for (int64_t step = 1; step < n; step *= 2) {
    const Tensor later = mul(out.narrow(d, step, n - step), out.narrow(d, 0, n - step));
    out = cat({out.narrow(d, 0, step), later}, d);
  }
  return out;
}

Tensor parts_index(const Tensor& index) {
  Shape shape = index.shape();
  shape.push_back(2);
  return index.unsqueeze(-1).expand(shape);
}

}  // namespace kiln::complex_ops
