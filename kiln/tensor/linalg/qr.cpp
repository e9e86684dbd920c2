// QR, and products of Householder reflectors.
#include "kiln/tensor/amp/op_lists.h"
#include "kiln/tensor/linalg/host.h"
#include "kiln/tensor/linalg/linalg.h"
#include "kiln/tensor/operands.h"

namespace kiln::linalg {

using namespace detail;

namespace {

// What LAPACK leaves: R on and above the diagonal, the reflectors below; in its layout.
struct Reflectors {
  Tensor packed;  // [.., n, m]
  Tensor tau;     // [.., k]
};

Reflectors reflectors_of(const char* kOp, const Tensor& a) {
  const int m = checked_size(kOp, rows(a));
  const int n = checked_size(kOp, cols(a));
  const int64_t k = std::min(m, n);
  Reflectors out{columns(a), host_empty(with_dims(batch_shape(a), {k}), a.dtype())};
  if (out.packed.numel() == 0) return out;
  by_type(a.dtype(), [&]<class T>(T) {
    T* data = out.packed.data_ptr<T>();
    T* tau = out.tau.data_ptr<T>();
    over_batch(batch_count(a), 2 * int64_t{m} * n * k,
               [&](int64_t i) { lapack::geqrf(m, n, data + i * m * n, m, tau + i * k); });
  });
  return out;
}

// The first `count` columns of the product of the reflectors, in LAPACK's layout [.., count, m].
Tensor product_of(const Tensor& packed, const Tensor& tau, int64_t count) {
  constexpr const char* kOp = "linalg.householder_product";
  const int64_t m = cols(packed);
  const int64_t n = rows(packed);
  const int64_t k = tau.size(-1);
  const int ms = checked_size(kOp, m);
  const int cs = checked_size(kOp, count);
  const Shape batch = batch_shape(packed);
  const Tensor q = zeros(with_dims(batch, {count, m}), {.dtype = packed.dtype()});
  if (q.numel() == 0) return q;
  by_type(packed.dtype(), [&]<class T>(T) {
    const T* from = packed.data_ptr<T>();
    const T* scale = tau.data_ptr<T>();
    T* out = q.data_ptr<T>();
    over_batch(batch.numel(), 2 * m * count * std::max<int64_t>(k, 1), [&](int64_t i) {
      std::copy_n(from + i * n * m, std::min(n, count) * m, out + i * count * m);
      lapack::orgqr(ms, cs, static_cast<int>(k), out + i * count * m, ms, scale + i * k);
    });
  });
  return q;
}

// X + X^H with half its diagonal, for an upper triangular X.
Tensor symmetric(const Tensor& x) {
  return x + mH(x) - diagonal_matrix(kiln::real(diagonal_of(x)));
}

// The part of X - X^H below its diagonal, and half that diagonal, which is imaginary.
Tensor lower_skew(const Tensor& x) {
  const Tensor below = lower(x - mH(x), -1);
  if (!is_complex(x)) return below;
  const Tensor turn = imag(diagonal_of(x));
  return below + diagonal_matrix(complex(zeros_like(turn), turn));
}

// Walter & Lehmann (2010) for m >= n; for m < n the columns beyond the square follow.
Tensor qr_backward(const Tensor& q, const Tensor& r, const Tensor& gq, const Tensor& gr) {
  const int64_t m = rows(q);
  const int64_t n = cols(r);
  if (m >= n) {
    Tensor inner;
    if (gr.defined()) inner = matmul(gr, mH(r));
    if (gq.defined()) {
      const Tensor part = matmul(mH(q), gq);
      inner = inner.defined() ? inner - part : part.neg();
    }
    Tensor right = matmul(q, symmetric(upper(inner)));
    if (gq.defined()) right = right + gq;
    return solve_triangular(mH(r), right, false, false);
  }
  const Tensor r1 = r.narrow(-1, 0, m);
  Tensor skew;
  if (gq.defined()) skew = matmul(mH(q), gq);
  if (gr.defined()) {
    const Tensor part = matmul(gr, mH(r));
    skew = skew.defined() ? skew - part : part.neg();
  }
  const Tensor turned = solve_triangular(mH(r1), lower_skew(skew), false, false);
  const Tensor rest =
      zeros(with_dims(batch_shape(turned), {m, n - m}), {.dtype = q.dtype(), .device = q.device()});
  Tensor inner = cat({turned, rest}, -1);
  if (gr.defined()) inner = inner + gr;
  return matmul(q, inner);
}

}  // namespace

std::pair<Tensor, Tensor> qr(const Tensor& a, const std::string& mode) {
  KILN_AUTOCAST(f32, qr, a, mode);
  static constexpr const char* kOp = "linalg.qr";
  check_matrix(kOp, a);
  if (mode != "reduced" && mode != "complete" && mode != "r") {
    throw_error<ValueError>(kOp, ": unknown mode; got '", mode,
                            "'; expected 'reduced', 'complete' or 'r'");
  }
  const int64_t m = rows(a);
  const int64_t n = cols(a);
  const int64_t k = mode == "complete" ? m : std::min(m, n);
  const auto forward = [&](FunctionContext& ctx, const TensorList& in) {
    const Reflectors factors = reflectors_of(kOp, in[0]);
    Tensor r = from_columns(factors.packed, a.device());
    if (k < m) r = r.narrow(-2, 0, k);
    r = upper(r);
    Tensor q = mode == "r" ? empty({0}, {.dtype = a.dtype(), .device = a.device()})
                           : from_columns(product_of(factors.packed, factors.tau, k), a.device());
    ctx.set_materialize_grads(false);
    ctx.save_for_backward({q, r});
    return TensorList{q, r};
  };
  const auto backward = [mode, m, n](FunctionContext& ctx, const TensorList& g) {
    if (mode == "r") {
      throw_error<AutodiffError>(kOp,
                                 ": the derivative needs Q, which mode 'r' does not compute; try "
                                 "mode 'reduced'");
    }
    if (mode == "complete" && m > n) {
      throw_error<AutodiffError>(kOp, ": no derivative with mode 'complete' for m > n; got ", m,
                                 " x ", n, "; try mode 'reduced'");
    }
    if (!g[0].defined() && !g[1].defined()) return TensorList{{}};
    const TensorList saved = ctx.saved_tensors();
    return TensorList{qr_backward(saved[0], saved[1], g[0], g[1])};
  };
  const TensorList out = call_function("linalg_qr", {a}, forward, backward);
  return {out[0], out[1]};
}

Tensor householder_product(const Tensor& a, const Tensor& tau) {
  KILN_AUTOCAST(f32, householder_product, a, tau);
  constexpr const char* kOp = "linalg.householder_product";
  check_matrix(kOp, a);
  check_like(kOp, a, tau);
  const int64_t m = rows(a);
  const int64_t n = cols(a);
  const int64_t k = tau.dim() == a.dim() - 1 ? tau.size(-1) : -1;
  if (m < n || k < 0 || k > n || !(tau.shape() == with_dims(batch_shape(a), {k}))) {
    throw_error<ShapeError>(kOp, ": the operands do not fit; got ", a.shape(), " and tau ",
                            tau.shape(), "; expected [.., m, n] with m >= n and [.., k], k <= n");
  }
  if (!is_tracked(a) && !is_tracked(tau)) {
    return from_columns(product_of(columns(a), host_copy(tau), n), a.device());
  }
  // One reflector after another, from the last: ordinary ops, which know their derivatives.
  Tensor q = eye(m, {.dtype = a.dtype(), .device = a.device()})
                 .narrow(-1, 0, n)
                 .expand(with_dims(batch_shape(a), {m, n}));
  if (k == 0) return kiln::detail::constant_of(a, kiln::detail::constant_of(tau, q.clone()));
  const Tensor below = lower(a, -1);
  const Tensor one = eye(m, {.dtype = a.dtype(), .device = a.device()});
  for (int64_t i = k - 1; i >= 0; --i) {
    const Tensor v = below.narrow(-1, i, 1) + one.narrow(-1, i, 1);
    const Tensor scale = tau.narrow(-1, i, 1).unsqueeze(-1);
    q = q - matmul(v, matmul(mH(v), q)) * scale;
  }
  return q;
}

}  // namespace kiln::linalg

namespace kiln {

using namespace linalg::detail;

std::pair<Tensor, Tensor> geqrf(const Tensor& a) {
  KILN_AUTOCAST(f32, geqrf, a);
  check_matrix("geqrf", a);
  if (is_tracked(a)) {
    throw_error<AutodiffError>("geqrf: has no derivative; try linalg.qr, or detach() first");
  }
  const linalg::Reflectors out = linalg::reflectors_of("geqrf", a);
  return {from_columns(out.packed, a.device()), to_device(out.tau, a.device())};
}

namespace {

// Without recording: from the left, Q or Q^H.
Tensor multiplied(const Tensor& a, const Tensor& tau, const Tensor& c, bool adjoint) {
  const int m = checked_size("ormqr", rows(c));
  const int n = checked_size("ormqr", cols(c));
  const int k = checked_size("ormqr", tau.size(-1));
  const Tensor out = columns(c);
  if (out.numel() == 0) return from_columns(out, c.device());
  const Tensor packed = columns(a);
  const Tensor scales = host_copy(tau);
  const int64_t step = int64_t{m} * cols(a);
  by_type(c.dtype(), [&]<class T>(T) {
    const T* reflectors = packed.data_ptr<T>();
    const T* scale = scales.data_ptr<T>();
    T* to = out.data_ptr<T>();
    const char trans = !adjoint ? 'N' : std::is_same_v<T, lapack::Real<T>> ? 'T' : 'C';
    over_batch(batch_count(c), 4 * int64_t{m} * n * std::max(k, 1), [&](int64_t i) {
      lapack::ormqr('L', trans, m, n, k, reflectors + i * step, m, scale + i * k,
                    to + i * int64_t{m} * n, m);
    });
  });
  return from_columns(out, c.device());
}

// One reflector after another: ordinary ops, which know their derivatives.
Tensor multiplied_in_turn(const Tensor& a, const Tensor& tau, Tensor c, bool adjoint) {
  const Tensor below = lower(a, -1);
  const Tensor one = eye(rows(a), {.dtype = a.dtype(), .device = a.device()});
  const int64_t k = tau.size(-1);
  for (int64_t step = 0; step < k; ++step) {
    const int64_t i = adjoint ? step : k - 1 - step;
    const Tensor v = below.narrow(-1, i, 1) + one.narrow(-1, i, 1);
    const Tensor scale = tau.narrow(-1, i, 1).unsqueeze(-1);
    c = c - matmul(v, matmul(mH(v), c)) * (adjoint ? conj(scale) : scale);
  }
  return c;
}

}  // namespace

Tensor ormqr(const Tensor& a, const Tensor& tau, const Tensor& other, bool left, bool transpose) {
  KILN_AUTOCAST(f32, ormqr, a, tau, other, left, transpose);
  constexpr const char* kOp = "ormqr";
  check_matrix(kOp, a);
  check_matrix(kOp, other);
  check_like(kOp, a, tau);
  check_like(kOp, a, other);
  const int64_t m = rows(a);
  const int64_t k = tau.dim() == a.dim() - 1 ? tau.size(-1) : -1;
  if (k < 0 || k > cols(a) || k > m || !(tau.shape() == with_dims(batch_shape(a), {k})) ||
      !(batch_shape(other) == batch_shape(a)) || (left ? rows(other) : cols(other)) != m) {
    throw_error<ShapeError>(kOp, ": the operands do not fit; got ", a.shape(), ", tau ",
                            tau.shape(), " and other ", other.shape(),
                            "; expected [.., m, n], [.., k] with k <= min(m, n) and ",
                            left ? "[.., m, c]" : "[.., c, m]", " of one batch");
  }
  // C Q is (Q^H C^H)^H.
  if (!left) return mH(ormqr(a, tau, mH(other), true, !transpose));
  if (is_tracked(a) || is_tracked(tau) || is_tracked(other)) {
    return multiplied_in_turn(a, tau, other, transpose);
  }
  return multiplied(a, tau, other, transpose);
}

}  // namespace kiln
