// Solving with the LU factorization: solve, inv, lu_solve, determinants.
#include <algorithm>
#include <cmath>
#include <limits>

#include "kiln/tensor/amp/op_lists.h"
#include "kiln/tensor/linalg/factors.h"
#include "kiln/tensor/linalg/host.h"
#include "kiln/tensor/linalg/linalg.h"

namespace kiln::linalg {

using namespace detail;

namespace detail {

LuFactors lu_factors(const char* op, const Tensor& a) {
  check_matrix(op, a);
  const int64_t m = rows(a);
  const int64_t n = cols(a);
  const int64_t k = std::min(m, n);
  const int ms = checked_size(op, m);
  const int ns = checked_size(op, n);
  const Shape batch = batch_shape(a);
  LuFactors out{columns(a), host_empty(with_dims(batch, {k}), i32), host_empty(batch, i32)};
  int32_t* pivots = out.pivots.data_ptr<int32_t>();
  int32_t* info = out.info.data_ptr<int32_t>();
  by_type(a.dtype(), [&]<class T>(T) {
    T* data = out.lu.data_ptr<T>();
    over_batch(batch.numel(), m * n * k, [&](int64_t i) {
      info[i] =
          k == 0 ? 0 : lapack::getrf(ms, ns, data + i * m * n, std::max(1, ms), pivots + i * k);
    });
  });
  return out;
}

Tensor solve_factored(const Tensor& lu, const Tensor& pivots, const Tensor& b, bool adjoint) {
  const int64_t n = rows(b);
  const int64_t nrhs = cols(b);
  const int ns = checked_size("linalg.solve", n);
  const int ks = checked_size("linalg.solve", nrhs);
  const Shape batch = batch_shape(b);
  Tensor x = columns(b);
  if (x.numel() == 0) return from_columns(x, b.device());
  // lu is in LAPACK's layout already, [.., n, n].
  const Tensor factors = expand_batch(lu, batch).contiguous();
  const Tensor swaps = pivots.expand(with_dims(batch, {n})).contiguous();
  by_type(b.dtype(), [&]<class T>(T) {
    const T* data = factors.data_ptr<T>();
    const int32_t* rows_swapped = swaps.data_ptr<int32_t>();
    T* out = x.data_ptr<T>();
    over_batch(batch.numel(), n * n * nrhs, [&](int64_t i) {
      lapack::getrs(adjoint ? 'C' : 'N', ns, ks, data + i * n * n, ns, rows_swapped + i * n,
                    out + i * n * nrhs, ns);
    });
  });
  return from_columns(x, b.device());
}

// X with A X = B (adjoint: A^H X = B) from A's factors, which are taken as they are: the derivative
// with respect to A is A's own.
Tensor solve_with(const Tensor& a, const Tensor& b, const LuFactors& factors, bool adjoint) {
  const auto forward = [&](FunctionContext& ctx, const TensorList& in) {
    Tensor x = solve_factored(factors.lu, factors.pivots, in[1], adjoint);
    // Only the gradient of A needs the result, which may be written to otherwise.
    ctx.save_for_backward({in[0], ctx.needs_input_grad(0) ? x : Tensor()});
    return TensorList{x};
  };
  const auto backward = [factors, adjoint](FunctionContext& ctx, const TensorList& g) {
    const TensorList saved = ctx.saved_tensors();
    const Tensor gb = solve_with(saved[0], g[0], factors, !adjoint);
    TensorList out{{}, gb};
    if (ctx.needs_input_grad(0)) {
      out[0] = adjoint ? matmul(saved[1], mH(gb)).neg() : matmul(gb, mH(saved[1])).neg();
    }
    return out;
  };
  return call_function("linalg_solve", {a, b}, forward, backward)[0];
}

}  // namespace detail

namespace {

std::string singular_message(int32_t) {
  return "the solver failed because the input matrix is singular";
}

// A square matrix with any right-hand side whose rows fit, batches broadcast.
std::pair<Tensor, Tensor> solve_checked(const char* op, const Tensor& a, const Tensor& b, bool left,
                                        bool check_errors) {
  check_square(op, a);
  check_like(op, a, b);
  const bool is_vector =
      b.dim() == 1 || (b.dim() == a.dim() - 1 && b.shape() == with_dims(batch_shape(a), {rows(a)}));
  if (is_vector && !left) {
    throw_error<ShapeError>(op, ": a vector on the right side needs left; got B of shape ",
                            b.shape(), " with left = false; expected a matrix");
  }
  const Tensor right = is_vector ? b.unsqueeze(-1) : b;
  const int64_t fits = right.dim() < 2 ? -1 : left ? rows(right) : cols(right);
  if (fits != rows(a)) {
    throw_error<ShapeError>(op, ": the shapes do not fit; got A ", a.shape(), " and B ", b.shape(),
                            "; expected B [.., ", rows(a), left ? ", k]" : "]");
  }
  const LuFactors factors = lu_factors(op, a);
  if (check_errors) check_info(op, factors.info, singular_message);
  const Shape batch = broadcast_shapes(op, batch_shape(a), batch_shape(right));
  Tensor x;
  if (left) {
    x = solve_with(a, expand_batch(right, batch), factors, false);
  } else {
    // X A = B is A^H X^H = B^H.
    x = mH(solve_with(a, expand_batch(mH(right), batch), factors, true));
  }
  if (is_vector) x = x.squeeze(-1);
  return {x, to_device(factors.info, a.device())};
}

}  // namespace

Tensor solve(const Tensor& a, const Tensor& b, bool left) {
  KILN_AUTOCAST(f32, solve, a, b, left);
  return solve_checked("linalg.solve", a, b, left, true).first;
}

std::pair<Tensor, Tensor> solve_ex(const Tensor& a, const Tensor& b, bool left, bool check_errors) {
  KILN_AUTOCAST(f32, solve_ex, a, b, left, check_errors);
  return solve_checked("linalg.solve_ex", a, b, left, check_errors);
}

namespace {

std::pair<Tensor, Tensor> inverse(const char* op, const Tensor& a, bool check_errors) {
  check_square(op, a);
  const int64_t n = rows(a);
  const int ns = checked_size(op, n);
  Tensor info;
  const auto forward = [&](FunctionContext& ctx, const TensorList& in) {
    LuFactors factors = lu_factors(op, in[0]);
    if (check_errors) {
      check_info(op, factors.info, [](int32_t i) {
        return concat("the diagonal element ", i,
                      " is zero, the inversion could not be completed because the input matrix is "
                      "singular");
      });
    }
    info = to_device(factors.info, a.device());
    const int64_t count = batch_count(a);
    if (n > 0) {
      by_type(a.dtype(), [&]<class T>(T) {
        T* data = factors.lu.data_ptr<T>();
        const int32_t* pivots = factors.pivots.data_ptr<int32_t>();
        over_batch(count, 2 * n * n * n,
                   [&](int64_t i) { lapack::getri(ns, data + i * n * n, ns, pivots + i * n); });
      });
    }
    Tensor y = from_columns(factors.lu, a.device());
    ctx.save_for_backward({y});
    return TensorList{y};
  };
  const auto backward = [](FunctionContext& ctx, const TensorList& g) {
    const Tensor yh = mH(ctx.saved_tensors()[0]);
    return TensorList{matmul(matmul(yh, g[0]), yh).neg()};
  };
  Tensor y = call_function("linalg_inv", {a}, forward, backward)[0];
  return {y, info};
}

}  // namespace

Tensor inv(const Tensor& a) {
  KILN_AUTOCAST(f32, inv, a);
  return inverse("linalg.inv", a, true).first;
}
std::pair<Tensor, Tensor> inv_ex(const Tensor& a, bool check_errors) {
  KILN_AUTOCAST(f32, inv_ex, a, check_errors);
  return inverse("linalg.inv_ex", a, check_errors);
}

// ---- Determinants

namespace {

// Whether one of them is singular, or so nearly that roundings decide whether U's last diagonal
// element is zero.
bool one_singular(const LuFactors& factors) {
  const int64_t n = rows(factors.lu);
  bool out = false;
  by_type(factors.lu.dtype(), [&]<class T>(T) {
    using R = lapack::Real<T>;
    const T* u = factors.lu.data_ptr<T>();
    const int64_t count = n == 0 ? 0 : batch_count(factors.lu);
    for (int64_t i = 0; i < count && !out; ++i, u += n * n) {
      R least = std::abs(u[0]);
      R most = least;
      for (int64_t j = 1; j < n; ++j) {
        const R here = std::abs(u[j * (n + 1)]);
        least = std::min(least, here);
        most = std::max(most, here);
      }
      const R bound = 4 * static_cast<R>(n) * std::numeric_limits<R>::epsilon() * most;
      out = least <= bound && std::isfinite(most);
    }
  });
  return out;
}

template <class T>
T sign_of(T u) {
  return u > 0 ? T(1) : u < 0 ? T(-1) : u;
}
template <class T>
std::complex<T> sign_of(std::complex<T> u) {
  return u == T(0) ? u : u / std::abs(u);
}

// f(i, diagonal of U, signs of the swaps) for each matrix; f reads element j of both.
template <class T, class F>
void over_diagonals(const LuFactors& factors, F f) {
  const int64_t n = rows(factors.lu);
  const T* lu = factors.lu.data_ptr<T>();
  const int32_t* pivots = factors.pivots.data_ptr<int32_t>();
  over_batch(batch_count(factors.lu), 4 * n, [&](int64_t i) {
    const auto diagonal = [&](int64_t j) { return lu[(i * n + j) * n + j]; };
    const auto swap = [&](int64_t j) {
      return pivots[i * n + j] == j + 1 ? lapack::Real<T>(1) : lapack::Real<T>(-1);
    };
    f(i, diagonal, swap);
  });
}

// The product of U's diagonal and of the swaps' signs.
Tensor determinant_of(const LuFactors& factors) {
  const Tensor out = host_empty(batch_shape(factors.lu), factors.lu.dtype());
  const int64_t n = rows(factors.lu);
  by_type(out.dtype(), [&]<class T>(T) {
    T* value = out.data_ptr<T>();
    over_diagonals<T>(factors, [=](int64_t i, auto diagonal, auto swap) {
      T product(1);
      for (int64_t j = 0; j < n; ++j) product *= diagonal(j) * swap(j);
      value[i] = product;
    });
  });
  return out;
}

// Its sign (of a complex number z / |z|) and the logarithm of its absolute value.
std::pair<Tensor, Tensor> sign_and_log_of(const LuFactors& factors) {
  const Tensor signs = host_empty(batch_shape(factors.lu), factors.lu.dtype());
  const Tensor logs = host_empty(signs.shape(), real_dtype(signs.dtype()));
  const int64_t n = rows(factors.lu);
  by_type(signs.dtype(), [&]<class T>(T) {
    T* sign = signs.data_ptr<T>();
    auto* log = logs.data_ptr<lapack::Real<T>>();
    over_diagonals<T>(factors, [=](int64_t i, auto diagonal, auto swap) {
      T product(1);
      lapack::Real<T> sum = 0;
      for (int64_t j = 0; j < n; ++j) {
        product *= sign_of(diagonal(j)) * swap(j);
        sum += std::log(std::abs(diagonal(j)));
      }
      sign[i] = product;
      log[i] = sum;
    });
  });
  return {signs, logs};
}

// The conjugates of A's cofactors, which are det's derivative, where A may be singular: with A = U
// S V^H each singular value is replaced by the product of the others.
Tensor cofactors(const Tensor& a) {
  const auto [u, s, vh] = svd(a, false);
  const int64_t n = s.size(-1);
  std::vector<Tensor> others;
  for (int64_t i = 0; i < n; ++i) {
    others.push_back(cat({s.narrow(-1, 0, i), s.narrow(-1, i + 1, n - i - 1)}, -1).prod(-1));
  }
  const Tensor turn = conj(det(u) * det(vh)).unsqueeze(-1).unsqueeze(-1);
  return matmul(u * stack(others, -1).unsqueeze(-2), vh) * turn;
}

// A small matrix that moves every singular value of A by the same amount: A + it and A - it are
// regular, and what is smooth has the mean of its values there at A, up to the square of the step.
Tensor off_singular(const Tensor& a) {
  NoGradGuard guard;
  const auto [u, s, vh] = svd(a.detach(), false);
  const double step = real_dtype(a.dtype()) == f64 ? 1e-7 : 1e-3;
  const Tensor size = s.amax(-1).clamp(1e-30).unsqueeze(-1).unsqueeze(-1);
  return matmul(u, vh) * size * step;
}

Tensor det_backward(const Tensor& a, const Tensor& value, const Tensor& g, const LuFactors& factors,
                    bool singular) {
  const int64_t n = rows(a);
  const auto as_matrix = [](const Tensor& x) { return x.unsqueeze(-1).unsqueeze(-1); };
  if (!singular) {
    const Tensor scaled = as_matrix(g * conj(value)) * identity_like(a, n);
    return solve_with(a, scaled, factors, true);
  }
  if (!is_grad_enabled()) return as_matrix(g) * cofactors(a);
  const Tensor step = off_singular(a);
  const auto cofactors_of = [&](const Tensor& x) { return as_matrix(conj(det(x))) * mH(inv(x)); };
  return as_matrix(g * 0.5) * (cofactors_of(a + step) + cofactors_of(a - step));
}

}  // namespace

Tensor det(const Tensor& a) {
  check_square("linalg.det", a);
  const auto forward = [&](FunctionContext& ctx, const TensorList& in) {
    const LuFactors factors = lu_factors("linalg.det", in[0]);
    Tensor value = to_device(determinant_of(factors), a.device());
    if (ctx.needs_input_grad(0)) {
      ctx.save_for_backward({in[0], value});
      ctx.saved_data()["factors"] = factors;
      ctx.saved_data()["singular"] = one_singular(factors);
    }
    return TensorList{value};
  };
  const auto backward = [](FunctionContext& ctx, const TensorList& g) {
    const TensorList saved = ctx.saved_tensors();
    return TensorList{det_backward(saved[0], saved[1], g[0],
                                   std::any_cast<LuFactors>(ctx.saved_data()["factors"]),
                                   std::any_cast<bool>(ctx.saved_data()["singular"]))};
  };
  return call_function("linalg_det", {a}, forward, backward)[0];
}

std::pair<Tensor, Tensor> slogdet(const Tensor& a) {
  check_square("linalg.slogdet", a);
  const auto forward = [&](FunctionContext& ctx, const TensorList& in) {
    const LuFactors factors = lu_factors("linalg.slogdet", in[0]);
    const auto [host_sign, host_log] = sign_and_log_of(factors);
    Tensor sign = to_device(host_sign, a.device());
    if (!is_complex(a)) ctx.mark_non_differentiable({sign});
    ctx.save_for_backward({in[0], sign});
    ctx.saved_data()["factors"] = factors;
    return TensorList{sign, to_device(host_log, a.device())};
  };
  // With t = tr(A^-1 dA), log|det| moves by Re t and a complex sign by i sign Im t.
  const auto backward = [](FunctionContext& ctx, const TensorList& g) {
    const TensorList saved = ctx.saved_tensors();
    const Tensor& a = saved[0];
    Tensor slope = g[1];
    if (is_complex(a)) slope = complex(slope, imag(conj(saved[1]) * g[0]));
    const Tensor scaled = slope.unsqueeze(-1).unsqueeze(-1) * identity_like(a, rows(a));
    return TensorList{
        solve_with(a, scaled, std::any_cast<LuFactors>(ctx.saved_data()["factors"]), true)};
  };
  const TensorList out = call_function("linalg_slogdet", {a}, forward, backward);
  return {out[0], out[1]};
}

}  // namespace kiln::linalg

namespace kiln {

Tensor logdet(const Tensor& a) {
  const auto [sign, log] = linalg::slogdet(a);
  if (is_complex(a)) return log + sign.log();
  return where(sign < 0, full_like(log, std::nan("")), log);
}

}  // namespace kiln
