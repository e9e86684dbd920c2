// Eigenvalues of general matrices.
#include "kiln/tensor/amp/op_lists.h"
#include "kiln/tensor/linalg/host.h"
#include "kiln/tensor/linalg/linalg.h"

namespace kiln::linalg {

using namespace detail;

namespace {

// Eigenvalues and, when asked, eigenvectors; without recording.
std::pair<Tensor, Tensor> decompose(const char* op, const Tensor& a, bool vectors) {
  const int n = checked_size(op, rows(a));
  const Shape batch = batch_shape(a);
  if (!a.detach().isfinite().all().item<bool>()) {
    throw_error<LinAlgError>(op, ": the matrix holds infinities or NaN; expected finite numbers");
  }
  const Tensor work = columns(a);
  const Tensor l = host_empty(with_dims(batch, {n}), complex_dtype(a.dtype()));
  const Tensor v = host_empty(with_dims(batch, {vectors ? n : 0, n}), l.dtype());
  const Tensor info = host_empty(batch, i32);
  int32_t* status = info.data_ptr<int32_t>();
  by_type(a.dtype(), [&]<class T>(T) {
    using C = std::complex<lapack::Real<T>>;
    T* data = work.data_ptr<T>();
    C* values = l.data_ptr<C>();
    C* columns_of_v = v.data_ptr<C>();
    const int64_t size = int64_t{n} * n;
    over_batch(n == 0 ? 0 : batch.numel(), 25 * size * n, [&](int64_t i) {
      status[i] = lapack::geev(vectors ? 'V' : 'N', n, data + i * size, n, values + i * n,
                               vectors ? columns_of_v + i * size : nullptr, n);
    });
  });
  if (n > 0) {
    check_info(op, info, [](int32_t i) {
      return concat("the algorithm failed to converge (error code: ", i, ")");
    });
  }
  return {to_device(l, a.device()), from_columns(v, a.device())};
}

// V^-1 dA V = diag(dL) + (V^-1 dV) .* (l_j - l_i), where dV keeps the columns' norms and phases
// (Boeddeker et al., "On the computation of complex-valued gradients with application to
// statistically optimum beamforming", 2017).
Tensor eig_backward(const Tensor& l, const Tensor& v, const Tensor& gl, const Tensor& gv) {
  const Tensor vh = mH(v);
  if (!gv.defined()) return solve(vh, gl.unsqueeze(-1) * vh);
  const Tensor turn = matmul(vh, gv);
  check_phase("linalg.eig", turn);
  const Tensor same = eye(l.size(-1), {.dtype = bool_, .device = l.device()});
  const Tensor gaps = conj(l.unsqueeze(-2) - l.unsqueeze(-1)).masked_fill(same, 1);
  const Tensor moved = turn - matmul(vh, v) * real(diagonal_of(turn)).unsqueeze(-2);
  Tensor inner = (moved / gaps).masked_fill(same, 0);
  if (gl.defined()) inner = inner + diagonal_matrix(gl);
  return solve(vh, matmul(inner, vh));
}

TensorList tracked_eig(const char* op, const Tensor& a) {
  const auto forward = [&](FunctionContext& ctx, const TensorList& in) {
    auto [l, v] = decompose(op, in[0], true);
    ctx.set_materialize_grads(false);
    ctx.save_for_backward({l, v});
    return TensorList{l, v};
  };
  const auto backward = [](FunctionContext& ctx, const TensorList& g) {
    if (!g[0].defined() && !g[1].defined()) return TensorList{{}};
    const TensorList saved = ctx.saved_tensors();
    return TensorList{eig_backward(saved[0], saved[1], g[0], g[1])};
  };
  return call_function("linalg_eig", {a}, forward, backward);
}

}  // namespace

std::pair<Tensor, Tensor> eig(const Tensor& a) {
  KILN_AUTOCAST(f32, eig, a);
  check_square("linalg.eig", a);
  const TensorList out = tracked_eig("linalg.eig", a);
  return {out[0], out[1]};
}

Tensor eigvals(const Tensor& a) {
  KILN_AUTOCAST(f32, eigvals, a);
  constexpr const char* kOp = "linalg.eigvals";
  check_square(kOp, a);
  if (is_tracked(a)) return tracked_eig(kOp, a)[0];
  return decompose(kOp, a, false).first;
}

}  // namespace kiln::linalg
