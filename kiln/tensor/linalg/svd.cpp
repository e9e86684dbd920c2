// Singular values, and what is defined by them: pinv, matrix_rank, lstsq's gradient.
#include "kiln/tensor/amp/op_lists.h"
#include "kiln/tensor/linalg/host.h"
#include "kiln/tensor/linalg/linalg.h"
#include "kiln/tensor/linalg/pseudoinverse.h"

namespace kiln::linalg {

using namespace detail;

namespace {

struct Svd {
  Tensor u, s, vh;
};

bool all_finite(const Tensor& a) { return a.detach().isfinite().all().item<bool>(); }

char checked_driver(const char* op, const std::string& driver) {
  if (driver.empty() || driver == "gesdd") return 'd';
  if (driver == "gesvd") return 'v';
  throw_error<ValueError>(op, ": unknown driver; got '", driver, "'; expected 'gesdd' or 'gesvd'");
}

// Without recording. job: LAPACK's 'A', 'S' or 'N'.
Svd decompose(const char* op, const Tensor& a, char job, char driver) {
  const int m = checked_size(op, rows(a));
  const int n = checked_size(op, cols(a));
  const int64_t k = std::min(m, n);
  const Shape batch = batch_shape(a);
  if (!all_finite(a)) {
    throw_error<LinAlgError>(op,
                             ": the algorithm failed to converge because the input matrix "
                             "contained non-finite values");
  }
  const int64_t u_cols = job == 'A' ? m : job == 'S' ? k : 0;
  const int64_t v_rows = job == 'A' ? n : job == 'S' ? k : 0;
  const TensorOptions options{.dtype = a.dtype()};
  Svd out;
  out.s = host_empty(with_dims(batch, {k}), real_dtype(a.dtype()));
  const bool is_empty = k == 0;
  if (is_empty && job == 'A') {
    out.u = eye(m, options).expand(with_dims(batch, {m, m})).contiguous();
    out.vh = eye(n, options).expand(with_dims(batch, {n, n})).contiguous();
  } else {
    out.u = host_empty(with_dims(batch, {u_cols, m}), a.dtype());
    out.vh = host_empty(with_dims(batch, {n, v_rows}), a.dtype());
  }
  if (!is_empty && batch.numel() > 0) {
    const Tensor work = columns(a);
    const Tensor original = driver == 'd' ? columns(a) : Tensor();
    const Tensor info = host_empty(batch, i32);
    int32_t* status = info.data_ptr<int32_t>();
    by_type(a.dtype(), [&]<class T>(T) {
      T* data = work.data_ptr<T>();
      auto* s = out.s.data_ptr<lapack::Real<T>>();
      T* u = job == 'N' ? nullptr : out.u.data_ptr<T>();
      T* vh = job == 'N' ? nullptr : out.vh.data_ptr<T>();
      const int ldv = static_cast<int>(std::max<int64_t>(1, v_rows));
      over_batch(batch.numel(), 8 * int64_t{m} * n * k, [&](int64_t i) {
        T* one = data + i * m * n;
        T* ui = u == nullptr ? nullptr : u + i * u_cols * m;
        T* vi = vh == nullptr ? nullptr : vh + i * n * v_rows;
        status[i] = driver == 'd' ? lapack::gesdd(job, m, n, one, m, s + i * k, ui, m, vi, ldv)
                                  : lapack::gesvd(job, m, n, one, m, s + i * k, ui, m, vi, ldv);
        if (status[i] > 0 && driver == 'd') {  // slower, and converges where gesdd may not
          std::copy_n(original.data_ptr<T>() + i * m * n, int64_t{m} * n, one);
          status[i] = lapack::gesvd(job, m, n, one, m, s + i * k, ui, m, vi, ldv);
        }
      });
    });
    check_info(op, info, [](int32_t i) {
      return concat(
          "the algorithm failed to converge because the input matrix is ill-conditioned "
          "or has too many repeated singular values (error code: ",
          i, ")");
    });
  }
  out.s = to_device(out.s, a.device());
  if (is_empty && job == 'A') {
    out.u = to_device(out.u, a.device());
    out.vh = to_device(out.vh, a.device());
  } else if (job != 'N') {
    out.u = from_columns(out.u, a.device());
    out.vh = from_columns(out.vh, a.device());
  }
  return out;
}

Tensor skew(const Tensor& x) { return x - mH(x); }

// Without its diagonal, which is zero in real numbers.
Tensor off_diagonal(const Tensor& x, const Tensor& diagonal) {
  return is_complex(x) ? x.masked_fill(diagonal, 0) : x;
}

// u and v may turn by one phase together: see check_phase.
void check_phases(const Svd& f, const Svd& g) {
  NoGradGuard guard;
  Tensor turn;
  if (g.u.defined()) turn = matmul(mH(f.u.detach()), g.u.detach());
  if (g.vh.defined()) {
    const Tensor part = matmul(f.vh.detach(), mH(g.vh.detach()));
    turn = turn.defined() ? turn + part : part;
  }
  if (turn.defined()) check_phase("linalg.svd", turn);
}

// Townsend, "Differentiating the singular value decomposition" (2016), in PyTorch's form.
Tensor svd_backward(Svd f, Svd g) {
  const int64_t k = f.s.size(-1);
  const int64_t m = rows(f.u);
  const int64_t n = cols(f.vh);
  if (cols(f.u) > k) {  // full matrices: the columns beyond are not determined by A
    f.u = f.u.narrow(-1, 0, k);
    if (g.u.defined()) g.u = g.u.narrow(-1, 0, k);
  }
  if (rows(f.vh) > k) {
    f.vh = f.vh.narrow(-2, 0, k);
    if (g.vh.defined()) g.vh = g.vh.narrow(-2, 0, k);
  }
  if (is_complex(f.u)) check_phases(f, g);
  const Tensor columns_of_s = f.s.unsqueeze(-2);
  const Tensor rows_of_s = f.s.unsqueeze(-1);
  if (!g.u.defined() && !g.vh.defined()) return matmul(f.u * g.s.unsqueeze(-2), f.vh);
  const Tensor same = eye(k, {.dtype = bool_, .device = f.s.device()});
  const Tensor gaps =
      ((columns_of_s - rows_of_s) * (columns_of_s + rows_of_s)).masked_fill(same, 1);
  Tensor inner;
  if (g.u.defined()) inner = off_diagonal(skew(matmul(mH(f.u), g.u)), same) / gaps * columns_of_s;
  if (g.vh.defined()) {
    const Tensor part = rows_of_s * (off_diagonal(skew(matmul(f.vh, mH(g.vh))), same) / gaps);
    inner = inner.defined() ? inner + part : part;
  }
  if (g.s.defined()) inner = inner + diagonal_matrix(g.s);
  if (is_complex(f.u) && g.u.defined() && g.vh.defined()) {
    const Tensor turn = diagonal_of(skew(matmul(mH(f.u), g.u)));
    inner = inner + diagonal_matrix(turn / (f.s * 2));
  }
  Tensor out = matmul(matmul(f.u, inner), f.vh);
  if (m > k && g.u.defined()) {
    const Tensor beyond = g.u - matmul(f.u, matmul(mH(f.u), g.u));
    out = out + matmul(beyond / columns_of_s, f.vh);
  }
  if (n > k && g.vh.defined()) {
    const Tensor beyond = g.vh - matmul(matmul(g.vh, mH(f.vh)), f.vh);
    out = out + matmul(f.u, beyond / rows_of_s);
  }
  return out;
}

TensorList tracked_svd(const char* op, const Tensor& a, bool full, char driver) {
  const auto forward = [&](FunctionContext& ctx, const TensorList& in) {
    Svd f = decompose(op, in[0], full ? 'A' : 'S', driver);
    ctx.set_materialize_grads(false);
    ctx.save_for_backward({f.u, f.s, f.vh});
    return TensorList{f.u, f.s, f.vh};
  };
  const auto backward = [](FunctionContext& ctx, const TensorList& g) {
    if (!g[0].defined() && !g[1].defined() && !g[2].defined()) return TensorList{{}};
    const TensorList saved = ctx.saved_tensors();
    return TensorList{svd_backward({saved[0], saved[1], saved[2]}, {g[0], g[1], g[2]})};
  };
  return call_function("linalg_svd", {a}, forward, backward);
}

}  // namespace

std::tuple<Tensor, Tensor, Tensor> svd(const Tensor& a, bool full_matrices,
                                       const std::string& driver) {
  KILN_AUTOCAST(f32, svd, a, full_matrices, driver);
  check_matrix("linalg.svd", a);
  const TensorList out =
      tracked_svd("linalg.svd", a, full_matrices, checked_driver("linalg.svd", driver));
  return {out[0], out[1], out[2]};
}

Tensor svdvals(const Tensor& a, const std::string& driver) {
  KILN_AUTOCAST(f32, svdvals, a, driver);
  constexpr const char* kOp = "linalg.svdvals";
  check_matrix(kOp, a);
  const char chosen = checked_driver(kOp, driver);
  if (is_tracked(a)) return tracked_svd(kOp, a, false, chosen)[1];
  return decompose(kOp, a, 'N', chosen).s;
}

// ---- The pseudoinverse

namespace detail {

double default_rtol(const Tensor& a, std::optional<double> atol, std::optional<double> rtol) {
  if (rtol) return *rtol;
  if (atol && *atol > 0) return 0.0;
  const double eps = real_dtype(a.dtype()) == f64 ? 2.220446049250313e-16 : 1.1920928955078125e-07;
  return eps * static_cast<double>(std::max(rows(a), cols(a)));
}

// Golub & Pereyra (1973), for matrices whose rank stays.
Tensor pinv_backward(const Tensor& a, const Tensor& y, const Tensor& g) {
  const Tensor gh = mH(g);
  const Tensor yh = mH(y);
  if (rows(a) <= cols(a)) {
    const Tensor k = matmul(gh, y);
    const Tensor k_yh = matmul(k, yh);
    return mH(matmul(y, k)).neg() + k_yh - matmul(matmul(a, y), k_yh) +
           matmul(matmul(yh, y), gh - matmul(k, a));
  }
  const Tensor k = matmul(y, gh);
  const Tensor yh_k = matmul(yh, k);
  return mH(matmul(k, y)).neg() + matmul(matmul(gh - matmul(a, k), y), yh) + yh_k -
         matmul(matmul(yh_k, y), a);
}

}  // namespace detail

namespace {

Tensor bound_of(const Tensor& magnitudes, std::optional<double> atol, double rtol) {
  return (magnitudes.amax(-1, true) * rtol).clamp(atol.value_or(0.0));
}

Tensor pseudoinverse_of(const Tensor& a, std::optional<double> atol, double rtol, bool hermitian) {
  if (hermitian) {
    const auto [l, v] = eigh(a);
    const Tensor keep = l.abs().gt(bound_of(l.abs(), atol, rtol));
    return matmul(v * where(keep, l.pow(-1.0), 0).unsqueeze(-2), mH(v));
  }
  const auto [u, s, vh] = svd(a, false);
  const Tensor keep = s.gt(bound_of(s, atol, rtol));
  return matmul(mH(vh) * where(keep, s.pow(-1.0), 0).unsqueeze(-2), mH(u));
}

}  // namespace

Tensor pinv(const Tensor& a, std::optional<double> atol, std::optional<double> rtol,
            bool hermitian) {
  KILN_AUTOCAST(f32, pinv, a, atol, rtol, hermitian);
  constexpr const char* kOp = "linalg.pinv";
  hermitian ? check_square(kOp, a) : check_matrix(kOp, a);
  if (a.numel() == 0) return zeros_like(mT(a)) + mT(a) * 0;
  const double relative = default_rtol(a, atol, rtol);
  const auto forward = [&](FunctionContext& ctx, const TensorList& in) {
    Tensor y = pseudoinverse_of(in[0], atol, relative, hermitian);
    ctx.save_for_backward({in[0], y});
    return TensorList{y};
  };
  const auto backward = [](FunctionContext& ctx, const TensorList& g) {
    const TensorList saved = ctx.saved_tensors();
    return TensorList{pinv_backward(saved[0], saved[1], g[0])};
  };
  return call_function("linalg_pinv", {a}, forward, backward)[0];
}

Tensor matrix_rank(const Tensor& a, std::optional<double> atol, std::optional<double> rtol,
                   bool hermitian) {
  KILN_AUTOCAST(f32, matrix_rank, a, atol, rtol, hermitian);
  constexpr const char* kOp = "linalg.matrix_rank";
  hermitian ? check_square(kOp, a) : check_matrix(kOp, a);
  NoGradGuard guard;
  const Tensor s = hermitian ? eigvalsh(a).abs() : svdvals(a);
  if (s.size(-1) == 0) return zeros(batch_shape(a), {.dtype = i64, .device = a.device()});
  return s.gt(bound_of(s, atol, default_rtol(a, atol, rtol))).to(i64).sum(-1);
}

}  // namespace kiln::linalg
