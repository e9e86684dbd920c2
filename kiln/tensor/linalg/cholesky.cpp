// Cholesky's factorization, and L D L^H for what is symmetric only.
#include "kiln/tensor/amp/op_lists.h"
#include "kiln/tensor/linalg/host.h"
#include "kiln/tensor/linalg/lapack_small.h"
#include "kiln/tensor/linalg/linalg.h"

namespace kiln::linalg {

using namespace detail;

namespace {

// The lower factor, without recording; only the lower triangle of `a` is read.
Tensor factor_of(const char* op, const Tensor& a, Tensor* info) {
  const int n = checked_size(op, rows(a));
  const Shape batch = batch_shape(a);
  Tensor l = columns(a);
  *info = host_empty(batch, i32);
  int32_t* status = info->data_ptr<int32_t>();
  by_type(a.dtype(), [&]<class T>(T) {
    T* data = l.data_ptr<T>();
    const int64_t size = int64_t{n} * n;
    over_batch(batch.numel(), size * n / 3, [&](int64_t i) {
      T* one = data + i * size;
      status[i] = n == 0 ? 0 : lapack::potrf('L', n, one, n);
      if (lapack::small::takes(n, n, n)) return;  // the zeros are there
      for (int64_t j = 1; j < n; ++j) std::fill(one + j * n, one + j * n + j, T(0));
    });
  });
  return from_columns(l, a.device());
}

// Of A = L L^H (Murray, "Differentiation of the Cholesky decomposition", 2016).
Tensor backward_of(const Tensor& l, const Tensor& g) {
  const Tensor phi = matmul(mH(l), g);
  const Tensor symmetric = lower(phi) + mH(lower(phi, -1));
  const Tensor right = solve_triangular(l, symmetric, false, false);
  return solve_triangular(mH(l), right, true) * 0.5;
}

std::pair<Tensor, Tensor> lower_factor(const char* op, const Tensor& a, bool check_errors) {
  Tensor info;
  const auto forward = [&](FunctionContext& ctx, const TensorList& in) {
    Tensor l = factor_of(op, in[0], &info);
    if (check_errors) {
      check_info(op, info, [](int32_t i) {
        return concat(
            "the factorization could not be completed because the input is not "
            "positive-definite (the leading minor of order ",
            i, " is not positive-definite)");
      });
    }
    ctx.save_for_backward({l});
    return TensorList{l};
  };
  const auto backward = [](FunctionContext& ctx, const TensorList& g) {
    return TensorList{backward_of(ctx.saved_tensors()[0], g[0])};
  };
  Tensor l = call_function("linalg_cholesky", {a}, forward, backward)[0];
  return {l, to_device(info, a.device())};
}

std::pair<Tensor, Tensor> factor(const char* op, const Tensor& a, bool upper, bool check_errors) {
  check_square(op, a);
  auto [l, info] = lower_factor(op, upper ? mH(a) : a, check_errors);
  return {upper ? mH(l) : l, info};
}

}  // namespace

Tensor cholesky(const Tensor& a, bool upper) {
  KILN_AUTOCAST(f32, cholesky, a, upper);
  return factor("linalg.cholesky", a, upper, true).first;
}

std::pair<Tensor, Tensor> cholesky_ex(const Tensor& a, bool upper, bool check_errors) {
  KILN_AUTOCAST(f32, cholesky_ex, a, upper, check_errors);
  return factor("linalg.cholesky_ex", a, upper, check_errors);
}

// ---- L D L^H

std::tuple<Tensor, Tensor, Tensor> ldl_factor_ex(const Tensor& a, bool hermitian,
                                                 bool check_errors) {
  constexpr const char* kOp = "linalg.ldl_factor";
  check_square(kOp, a);
  const int n = checked_size(kOp, rows(a));
  const Shape batch = batch_shape(a);
  const Tensor ld = columns(a);
  const Tensor pivots = host_empty(with_dims(batch, {n}), i32);
  const Tensor info = host_empty(batch, i32);
  int32_t* swaps = pivots.data_ptr<int32_t>();
  int32_t* status = info.data_ptr<int32_t>();
  by_type(a.dtype(), [&]<class T>(T) {
    T* data = ld.data_ptr<T>();
    const int64_t size = int64_t{n} * n;
    over_batch(batch.numel(), size * n / 3, [&](int64_t i) {
      T* one = data + i * size;
      status[i] = n == 0 ? 0 : lapack::sytrf(hermitian, 'L', n, one, n, swaps + i * n);
      for (int64_t j = 1; j < n; ++j) std::fill(one + j * n, one + j * n + j, T(0));
    });
  });
  if (check_errors) {
    check_info(kOp, info, [](int32_t i) {
      return concat("the block D of the factorization is singular at ", i);
    });
  }
  return {from_columns(ld, a.device()), to_device(pivots, a.device()), to_device(info, a.device())};
}

std::pair<Tensor, Tensor> ldl_factor(const Tensor& a, bool hermitian) {
  auto [ld, pivots, info] = ldl_factor_ex(a, hermitian, true);
  return {ld, pivots};
}

Tensor ldl_solve(const Tensor& ld, const Tensor& pivots, const Tensor& b, bool hermitian) {
  constexpr const char* kOp = "linalg.ldl_solve";
  check_square(kOp, ld);
  check_matrix(kOp, b);
  check_like(kOp, ld, b);
  if (rows(b) != rows(ld) || !(pivots.shape() == with_dims(batch_shape(ld), {rows(ld)})) ||
      pivots.dtype() != i32) {
    throw_error<ShapeError>(kOp, ": the operands do not fit; got LD ", ld.shape(), ", pivots ",
                            pivots.shape(), " ", pivots.dtype(), " and B ", b.shape(),
                            "; expected [.., n, n], [.., n] int32 and [.., n, k]");
  }
  const int n = checked_size(kOp, rows(b));
  const int k = checked_size(kOp, cols(b));
  const Shape batch = broadcast_shapes(kOp, batch_shape(ld), batch_shape(b));
  const Tensor factors = columns(expand_batch(ld, batch));
  const Tensor swaps = host_copy(pivots.expand(with_dims(batch, {n})));
  for (const int32_t p : swaps.to_vector<int32_t>()) {
    if (p == 0 || p > n || p < -n) {
      throw_error<ValueError>(kOp, ": a pivot lies outside the matrix; got ", p, "; expected 1 to ",
                              n, ", or its negative");
    }
  }
  const auto forward = [&](FunctionContext&, const TensorList& in) {
    Tensor x = columns(in[0]);
    by_type(x.dtype(), [&]<class T>(T) {
      const T* data = factors.data_ptr<T>();
      const int32_t* rows_swapped = swaps.data_ptr<int32_t>();
      T* out = x.data_ptr<T>();
      if (x.numel() == 0) return;
      over_batch(batch.numel(), int64_t{n} * n * k, [&](int64_t i) {
        lapack::sytrs(hermitian, 'L', n, k, data + i * n * n, n, rows_swapped + i * n,
                      out + i * n * k, n);
      });
    });
    return TensorList{from_columns(x, b.device())};
  };
  const auto backward = [ld = ld.detach(), pivots, hermitian](FunctionContext&,
                                                              const TensorList& g) {
    return TensorList{ldl_solve(ld, pivots, g[0], hermitian)};
  };
  return call_function("linalg_ldl_solve", {expand_batch(b, batch)}, forward, backward)[0];
}

}  // namespace kiln::linalg
