// Distances between all rows of two matrices.
#include <algorithm>
#include <cmath>
#include <limits>

#include "kiln/backend/cpu/reduce/distance_kernels.h"
#include "kiln/backend/cpu/scratch.h"
#include "kiln/core/parallel.h"
#include "kiln/tensor/autograd/custom_function.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/interop.h"
#include "kiln/tensor/linalg/host.h"
#include "kiln/tensor/linalg/linalg.h"
#include "kiln/tensor/linalg/products.h"
#include "kiln/tensor/ops.h"

namespace kiln {

namespace {

using linalg::detail::mT;

// |x|^2 + |y|^2 - 2 x y^T as one product: [-2 x, |x|^2, 1] [y, 1, |y|^2]^T.
Tensor squared_by_product(const Tensor& x, const Tensor& y) {
  const Tensor xx = (x * x).sum(-1, true);
  const Tensor yy = (y * y).sum(-1, true);
  const Tensor left = cat({x * -2, xx, ones_like(xx)}, -1);
  const Tensor right = cat({y, ones_like(yy), yy}, -1);
  return matmul(left, mT(right)).clamp(0);
}

// For p of 1 and 2, in host memory: the rows of y are turned, so that lanes are rows.
template <class T>
void distances_of_batch(const T* x, const T* y, int64_t p, int64_t r, int64_t m, bool euclidean,
                        T* to) {
  const cpu::DistanceKernels<T>& kernels = cpu::distance_kernels<T>();
  const auto row = euclidean ? kernels.euclidean : kernels.absolute;
  const int64_t step = (r + kernels.block - 1) / kernels.block * kernels.block;
  const cpu::Scratch<T> turned(m * step);
  std::fill_n(turned.get(), m * step, T(0));
  for (int64_t j = 0; j < r; ++j) {
    for (int64_t k = 0; k < m; ++k) turned[k * step + j] = y[j * m + k];
  }
  parallel_for(p, std::max<int64_t>(1, 16 * kGrain / std::max<int64_t>(1, r * m)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t i = begin; i < end; ++i) {
                   row(x + i * m, turned.get(), step, m, r, to + i * r);
                 }
               });
}

Tensor distances_on_host(const Tensor& x, const Tensor& y, bool euclidean) {
  const Tensor a = x.to(Device(kCpu)).contiguous(), b = y.to(Device(kCpu)).contiguous();
  Shape shape = a.shape();
  const int64_t p = a.size(-2), r = b.size(-2), m = a.size(-1);
  shape.back() = r;
  const Tensor out = empty(shape, {a.dtype()});
  if (out.numel() == 0) return out.to(x.device());
  const auto run = [&]<class T>() {
    const T* u = static_cast<const T*>(interop::data(a));
    const T* v = static_cast<const T*>(interop::data(b));
    T* to = static_cast<T*>(interop::data(out));
    for (int64_t i = 0; i < out.numel() / (p * r); ++i) {
      distances_of_batch<T>(u + i * p * m, v + i * r * m, p, r, m, euclidean, to + i * p * r);
    }
  };
  a.dtype() == f64 ? run.operator()<double>() : run.operator()<float>();
  return out.to(x.device());
}

// Without recording; [.., p, m], [.., r, m].
Tensor distances(const Tensor& x, const Tensor& y, double p, bool by_product) {
  if (by_product) return squared_by_product(x, y).sqrt();
  if ((p == 1 || p == 2) && (x.dtype() == f32 || x.dtype() == f64)) {
    return distances_on_host(x, y, p == 2);
  }
  return linalg::vector_norm(x.unsqueeze(-2) - y.unsqueeze(-3), p, {-1});
}

// g d^(1-p), and 0 where the distance is.
Tensor weights(const Tensor& g, const Tensor& d, double p) {
  const Tensor none = d.eq(0);
  const Tensor safe = d.masked_fill(none, 1);
  return (g / safe.pow(p - 1)).masked_fill(none, 0);
}

TensorList gradients(const Tensor& x, const Tensor& y, const Tensor& d, const Tensor& g, double p) {
  if (p == 0) return {zeros_like(x), zeros_like(y)};
  if (p == 2) {
    // sum_j w_ij (x_i - y_j), without the differences.
    const Tensor w = weights(g, d, 2);
    return {x * w.sum(-1, true) - matmul(w, y), y * mT(w).sum(-1, true) - matmul(mT(w), x)};
  }
  const Tensor diff = x.unsqueeze(-2) - y.unsqueeze(-3);
  Tensor part;
  if (p == 1) {
    part = diff.sign() * g.unsqueeze(-1);
  } else if (std::isinf(p)) {
    const Tensor hit = diff.abs().eq(d.unsqueeze(-1)).to(x.dtype());
    part = diff.sign() * hit * g.unsqueeze(-1);
  } else {
    const Tensor zero = diff.eq(0);
    const Tensor power = diff.abs().masked_fill(zero, 1).pow(p - 1).masked_fill(zero, 0);
    part = diff.sign() * power * weights(g, d, p).unsqueeze(-1);
  }
  return {part.sum(-2), part.sum(-3).neg()};
}

}  // namespace

Tensor cdist(const Tensor& x, const Tensor& y, double p, const std::string& compute_mode) {
  constexpr const char* kOp = "cdist";
  if (x.dtype() == y.dtype() && (x.dtype() == f16 || x.dtype() == bf16)) {
    return cdist(x.to(f32), y.to(f32), p, compute_mode).to(x.dtype());
  }
  linalg::detail::check_matrix(kOp, x);
  linalg::detail::check_matrix(kOp, y);
  linalg::detail::check_like(kOp, x, y);
  if (x.size(-1) != y.size(-1)) {
    throw_error<ShapeError>(kOp, ": rows of different lengths; got ", x.shape(), " and ",
                            y.shape());
  }
  if (!(p >= 0)) throw_error<ValueError>(kOp, ": p must not be negative; got ", p);
  const bool many = x.size(-2) > 25 || y.size(-2) > 25;
  bool by_product = p == 2;
  if (compute_mode == "use_mm_for_euclid_dist_if_necessary") {
    by_product = by_product && many;
  } else if (compute_mode == "donot_use_mm_for_euclid_dist") {
    by_product = false;
  } else if (compute_mode != "use_mm_for_euclid_dist") {
    throw_error<ValueError>(kOp, ": unknown compute_mode; got '", compute_mode, "'");
  }
  const Shape batch =
      broadcast_shapes(kOp, linalg::detail::batch_shape(x), linalg::detail::batch_shape(y));
  const Tensor a = linalg::detail::expand_batch(x, batch);
  const Tensor b = linalg::detail::expand_batch(y, batch);
  const auto forward = [&](FunctionContext& ctx, const TensorList& in) {
    Tensor d = in[0].size(-1) == 0
                   ? zeros(linalg::detail::with_dims(batch, {x.size(-2), y.size(-2)}),
                           {.dtype = x.dtype(), .device = x.device()})
                   : distances(in[0], in[1], p, by_product);
    ctx.save_for_backward({in[0], in[1], d});
    return TensorList{d};
  };
  const auto backward = [p](FunctionContext& ctx, const TensorList& g) {
    const TensorList saved = ctx.saved_tensors();
    return gradients(saved[0], saved[1], saved[2], g[0], p);
  };
  return call_function("cdist", {a, b}, forward, backward)[0];
}

}  // namespace kiln
