// Solving with triangular matrices, and what is made of it.
#include "kiln/tensor/amp/op_lists.h"
#include "kiln/tensor/linalg/host.h"
#include "kiln/tensor/linalg/linalg.h"

namespace kiln::linalg {

using namespace detail;

namespace {

// A matrix that is only read: where its rows lie one after another, or where its columns do.
struct ReadMatrix {
  Tensor memory;
  bool is_columns;  // LAPACK, which counts by columns, sees the matrix itself, not its transpose
};

ReadMatrix read(const Tensor& a) {
  const Tensor here = to_device(a.detach(), Device(kCpu));
  if (!here.is_contiguous() && mT(here).is_contiguous()) return {mT(here), true};
  return {here.contiguous(), false};
}

// Without recording. LAPACK sees the row-major memory of X as X^T, so the sides swap.
Tensor solve_rows(const Tensor& a, const Tensor& b, bool upper_part, bool left,
                  bool unitriangular) {
  const int m = checked_size("linalg.solve_triangular", rows(b));
  const int n = checked_size("linalg.solve_triangular", cols(b));
  const int64_t size = rows(a);
  Tensor x = host_copy(b);
  if (x.numel() == 0) return to_device(x, b.device());
  const ReadMatrix matrix = read(expand_batch(a, batch_shape(b)));
  const char side = left ? 'R' : 'L';
  const char uplo = upper_part == matrix.is_columns ? 'U' : 'L';
  const char trans = matrix.is_columns ? 'T' : 'N';
  by_type(b.dtype(), [&]<class T>(T) {
    const T* data = matrix.memory.data_ptr<T>();
    T* out = x.data_ptr<T>();
    over_batch(batch_count(b), int64_t{m} * n * size, [&](int64_t i) {
      lapack::trsm(side, uplo, trans, unitriangular ? 'U' : 'N', n, m, T(1), data + i * size * size,
                   static_cast<int>(size), out + i * m * n, n);
    });
  });
  return to_device(x, b.device());
}

// b has the full batch.
Tensor solve_expanded(const Tensor& a, const Tensor& b, bool upper_part, bool left,
                      bool unitriangular) {
  const auto forward = [&](FunctionContext& ctx, const TensorList& in) {
    Tensor x = solve_rows(in[0], in[1], upper_part, left, unitriangular);
    // Only the gradient of A needs the result, which may be written to otherwise.
    ctx.save_for_backward({in[0], ctx.needs_input_grad(0) ? x : Tensor()});
    return TensorList{x};
  };
  const auto backward = [=](FunctionContext& ctx, const TensorList& g) {
    const TensorList saved = ctx.saved_tensors();
    const Tensor gb = solve_expanded(mH(saved[0]), g[0], !upper_part, left, unitriangular);
    TensorList out{{}, gb};
    if (ctx.needs_input_grad(0)) {
      const Tensor ga = left ? matmul(gb, mH(saved[1])).neg() : matmul(mH(saved[1]), gb).neg();
      const int64_t off = unitriangular ? 1 : 0;
      out[0] = upper_part ? upper(ga, off) : lower(ga, -off);
    }
    return out;
  };
  return call_function("linalg_solve_triangular", {a, b}, forward, backward)[0];
}

}  // namespace

Tensor solve_triangular(const Tensor& a, const Tensor& b, bool upper, bool left,
                        bool unitriangular) {
  constexpr const char* kOp = "linalg.solve_triangular";
  check_square(kOp, a);
  check_matrix(kOp, b);
  check_like(kOp, a, b);
  if ((left ? rows(b) : cols(b)) != rows(a)) {
    throw_error<ShapeError>(kOp, ": the shapes do not fit; got A ", a.shape(), " and B ", b.shape(),
                            "; expected B [.., ", rows(a), left ? ", k]" : "]");
  }
  const Shape batch = broadcast_shapes(kOp, batch_shape(a), batch_shape(b));
  return solve_expanded(a, expand_batch(b, batch), upper, left, unitriangular);
}

}  // namespace kiln::linalg

namespace kiln {

Tensor cholesky_solve(const Tensor& b, const Tensor& l, bool upper) {
  KILN_AUTOCAST(f32, cholesky_solve, b, l, upper);
  using linalg::detail::mH;
  linalg::detail::check_matrix("cholesky_solve", b);
  const Tensor factor = upper ? mH(l) : l;
  const Tensor y = linalg::solve_triangular(factor, b, false);
  return linalg::solve_triangular(mH(factor), y, true);
}

Tensor cholesky_inverse(const Tensor& l, bool upper) {
  KILN_AUTOCAST(f32, cholesky_inverse, l, upper);
  linalg::detail::check_square("cholesky_inverse", l);
  const Tensor one = linalg::detail::identity_like(l, l.size(-1));
  return cholesky_solve(one.expand(l.shape()), l, upper);
}

}  // namespace kiln
