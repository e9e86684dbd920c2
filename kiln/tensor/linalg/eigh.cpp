// Eigenvalues of symmetric matrices.
#include <limits>

#include "kiln/tensor/amp/op_lists.h"
#include "kiln/tensor/linalg/host.h"
#include "kiln/tensor/linalg/linalg.h"

namespace kiln::linalg {

using namespace detail;

namespace {

char checked_uplo(const char* op, const std::string& uplo) {
  if (uplo.size() == 1) {
    if (uplo[0] == 'L' || uplo[0] == 'l') return 'L';
    if (uplo[0] == 'U' || uplo[0] == 'u') return 'U';
  }
  throw_error<ValueError>(op, ": unknown UPLO; got '", uplo, "'; expected 'L' or 'U'");
}

// Eigenvalues and, when asked, eigenvectors; without recording.
std::pair<Tensor, Tensor> decompose(const char* op, const Tensor& a, char uplo, bool vectors) {
  const int n = checked_size(op, rows(a));
  const Shape batch = batch_shape(a);
  const Tensor v = columns(a);
  const Tensor l = host_empty(with_dims(batch, {n}), real_dtype(a.dtype()));
  const Tensor info = host_empty(batch, i32);
  int32_t* status = info.data_ptr<int32_t>();
  by_type(a.dtype(), [&]<class T>(T) {
    T* data = v.data_ptr<T>();
    auto* values = l.data_ptr<lapack::Real<T>>();
    const int64_t size = int64_t{n} * n;
    over_batch(batch.numel(), 4 * size * n, [&](int64_t i) {
      status[i] =
          n == 0 ? 0
                 : lapack::syevd(vectors ? 'V' : 'N', uplo, n, data + i * size, n, values + i * n);
    });
  });
  check_info(op, info, [](int32_t i) {
    return concat(
        "the algorithm failed to converge because the input matrix is ill-conditioned, "
        "has too many repeated eigenvalues or is not finite (error code: ",
        i, ")");
  });
  return {to_device(l, a.device()), from_columns(v, a.device())};
}

// V^H dA V = diag(dL) + off-diagonal parts that turn V by 1 / (l_j - l_i).
Tensor eigh_backward(const Tensor& l, const Tensor& v, const Tensor& gl, const Tensor& gv) {
  if (!gv.defined()) return matmul(v * gl.unsqueeze(-2), mH(v));
  const int64_t n = l.size(-1);
  const Tensor same = eye(n, {.dtype = bool_, .device = l.device()});
  const Tensor gaps = (l.unsqueeze(-2) - l.unsqueeze(-1))
                          .masked_fill(same, std::numeric_limits<double>::infinity());
  const Tensor turn = matmul(mH(v), gv);
  check_phase("linalg.eigh", turn);
  Tensor inner = turn / gaps;
  if (gl.defined()) inner = inner + diagonal_matrix(gl);
  return matmul(matmul(v, inner), mH(v));
}

TensorList tracked_eigh(const char* op, const Tensor& a, char uplo) {
  const auto forward = [&](FunctionContext& ctx, const TensorList& in) {
    auto [l, v] = decompose(op, in[0], uplo, true);
    ctx.set_materialize_grads(false);
    ctx.save_for_backward({l, v});
    return TensorList{l, v};
  };
  const auto backward = [](FunctionContext& ctx, const TensorList& g) {
    if (!g[0].defined() && !g[1].defined()) return TensorList{{}};
    const TensorList saved = ctx.saved_tensors();
    return TensorList{eigh_backward(saved[0], saved[1], g[0], g[1])};
  };
  return call_function("linalg_eigh", {a}, forward, backward);
}

}  // namespace

std::pair<Tensor, Tensor> eigh(const Tensor& a, const std::string& uplo) {
  KILN_AUTOCAST(f32, eigh, a, uplo);
  check_square("linalg.eigh", a);
  const TensorList out = tracked_eigh("linalg.eigh", a, checked_uplo("linalg.eigh", uplo));
  return {out[0], out[1]};
}

Tensor eigvalsh(const Tensor& a, const std::string& uplo) {
  KILN_AUTOCAST(f32, eigvalsh, a, uplo);
  constexpr const char* kOp = "linalg.eigvalsh";
  check_square(kOp, a);
  const char part = checked_uplo(kOp, uplo);
  if (is_tracked(a)) return tracked_eigh(kOp, a, part)[0];
  return decompose(kOp, a, part, false).first;
}

}  // namespace kiln::linalg
