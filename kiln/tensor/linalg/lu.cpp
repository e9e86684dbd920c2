// The LU factorization as a result: lu_factor, lu, lu_solve, lu_unpack.
#include <numeric>

#include "kiln/tensor/amp/op_lists.h"
#include "kiln/tensor/linalg/factors.h"
#include "kiln/tensor/linalg/host.h"
#include "kiln/tensor/linalg/linalg.h"

namespace kiln::linalg {

using namespace detail;

namespace {

void check_pivot(const char* op, bool pivot) {
  if (!pivot) {
    throw_error<NotImplementedError>(
        op, ": LU without pivoting is not there on the cpu; got pivot = false; expected true");
  }
}

// P of A = P L U, from the swaps.
Tensor permutation(const char* op, const Tensor& pivots, int64_t m, const Tensor& like) {
  const Tensor swaps = host_copy(pivots);
  const int64_t k = swaps.size(-1);
  Shape batch = swaps.shape();
  batch.erase(batch.rank() - 1);
  Tensor p = zeros(with_dims(batch, {m, m}), {.dtype = like.dtype()});
  const int32_t* swap = swaps.data_ptr<int32_t>();
  by_type(like.dtype(), [&]<class T>(T) {
    T* out = p.data_ptr<T>();
    std::vector<int64_t> order(static_cast<size_t>(m));
    for (int64_t i = 0; i < batch.numel(); ++i) {
      std::iota(order.begin(), order.end(), int64_t{0});
      for (int64_t j = 0; j < k; ++j) {
        const int64_t other = swap[i * k + j] - 1;
        if (other < 0 || other >= m) {
          throw_error<ValueError>(op, ": a pivot lies outside the matrix; got ", other + 1,
                                  "; expected 1 to ", m);
        }
        std::swap(order[static_cast<size_t>(j)], order[static_cast<size_t>(other)]);
      }
      for (int64_t j = 0; j < m; ++j) out[(i * m + order[static_cast<size_t>(j)]) * m + j] = 1;
    }
  });
  return to_device(p, like.device());
}

// L with its ones, [.., m, k].
Tensor lower_of(const Tensor& lu) {
  const int64_t k = std::min(rows(lu), cols(lu));
  const Tensor one = eye(rows(lu), {.dtype = lu.dtype(), .device = lu.device()}).narrow(-1, 0, k);
  return lower(lu.narrow(-1, 0, k), -1) + one;
}

// Both at once, in one pass over the columns.
std::pair<Tensor, Tensor> triangles_of(const Tensor& lu) {
  const int64_t m = rows(lu);
  const int64_t n = cols(lu);
  const int64_t k = std::min(m, n);
  const auto forward = [&](FunctionContext&, const TensorList& in) {
    const Tensor from = mT(to_device(in[0].detach(), Device(kCpu))).contiguous();
    const Tensor l = host_empty(with_dims(batch_shape(lu), {k, m}), lu.dtype());
    const Tensor u = host_empty(with_dims(batch_shape(lu), {n, k}), lu.dtype());
    by_type(lu.dtype(), [&]<class T>(T) {
      const T* columns_of_lu = from.data_ptr<T>();
      T* columns_of_l = l.data_ptr<T>();
      T* columns_of_u = u.data_ptr<T>();
      over_batch(batch_count(lu) * n, 2 * m, [&](int64_t i) {
        const int64_t j = i % n;
        const T* column = columns_of_lu + i * m;
        const int64_t above = std::min(j + 1, k);
        T* to = columns_of_u + i * k;
        std::copy_n(column, above, to);
        std::fill(to + above, to + k, T(0));
        if (j >= k) return;
        to = columns_of_l + (i / n * k + j) * m;
        std::fill(to, to + j, T(0));
        to[j] = T(1);
        std::copy(column + j + 1, column + m, to + j + 1);
      });
    });
    return TensorList{from_columns(l, lu.device()), from_columns(u, lu.device())};
  };
  const auto backward = [m, n](FunctionContext&, const TensorList& g) {
    const auto grown = [](const Tensor& x, int dim, int64_t to) {
      Shape rest = x.shape();
      rest[x.dim() + dim] = to - x.size(dim);
      return rest[x.dim() + dim] == 0
                 ? x
                 : cat({x, zeros(rest, {.dtype = x.dtype(), .device = x.device()})}, dim);
    };
    return TensorList{grown(lower(g[0], -1), -1, n) + grown(upper(g[1]), -2, m)};
  };
  const TensorList out = call_function("lu_unpack", {lu}, forward, backward);
  return {out[0], out[1]};
}

Tensor upper_of(const Tensor& lu) { return upper(lu.narrow(-2, 0, std::min(rows(lu), cols(lu)))); }

// X L^H... with the unit lower triangular l: L^-H x.
Tensor by_lower(const Tensor& l, const Tensor& x) {
  return solve_triangular(mH(l), x, true, true, true);
}
// x U^-H.
Tensor by_upper(const Tensor& u, const Tensor& x) {
  return solve_triangular(mH(u), x, false, false);
}

// Of A = P L U with gradients of L and U packed into g. For m x n matrices the part beyond the
// square one follows the square one's factors.
Tensor backward_of(const Tensor& lu, const Tensor& p, const Tensor& g) {
  const int64_t m = rows(lu);
  const int64_t n = cols(lu);
  const int64_t k = std::min(m, n);
  const Tensor l = lower_of(lu);
  const Tensor u = upper_of(lu);
  const Tensor gl = lower(g.narrow(-1, 0, k), -1);
  const Tensor gu = upper(g.narrow(-2, 0, k));
  if (m == n) {
    const Tensor inner = lower(matmul(mH(l), gl), -1) + upper(matmul(gu, mH(u)));
    return matmul(p, by_upper(u, by_lower(l, inner)));
  }
  if (m < n) {
    const Tensor u1 = u.narrow(-1, 0, k);
    const Tensor u2 = u.narrow(-1, k, n - k);
    const Tensor gu1 = gu.narrow(-1, 0, k);
    const Tensor gu2 = gu.narrow(-1, k, n - k);
    const Tensor inner =
        lower(matmul(mH(l), gl) - matmul(gu2, mH(u2)), -1) + upper(matmul(gu1, mH(u1)));
    const Tensor first = by_upper(u1, inner);
    return matmul(p, by_lower(l, cat({first, gu2}, -1)));
  }
  const Tensor l1 = l.narrow(-2, 0, k);
  const Tensor l2 = l.narrow(-2, k, m - k);
  const Tensor gl1 = gl.narrow(-2, 0, k);
  const Tensor gl2 = gl.narrow(-2, k, m - k);
  const Tensor inner =
      lower(matmul(mH(l1), gl1), -1) + upper(matmul(gu, mH(u)) - matmul(mH(l2), gl2));
  const Tensor both = cat({by_lower(l1, inner), gl2}, -2);
  return matmul(p, by_upper(u, both));
}

}  // namespace

std::tuple<Tensor, Tensor, Tensor> lu_factor_ex(const Tensor& a, bool pivot, bool check_errors) {
  constexpr const char* kOp = "linalg.lu_factor";
  check_matrix(kOp, a);
  check_pivot(kOp, pivot);
  const auto forward = [&](FunctionContext& ctx, const TensorList& in) {
    const LuFactors factors = lu_factors(kOp, in[0]);
    if (check_errors) {
      check_info(kOp, factors.info, [](int32_t i) {
        return concat("U[", i, ",", i,
                      "] is zero and using it on lu_solve would result in a division by zero");
      });
    }
    const Tensor pivots = to_device(factors.pivots, a.device());
    const Tensor info = to_device(factors.info, a.device());
    Tensor lu = from_columns(factors.lu, a.device());
    ctx.save_for_backward({lu, pivots});
    return TensorList{lu, pivots, info};
  };
  const auto backward = [](FunctionContext& ctx, const TensorList& g) {
    const TensorList saved = ctx.saved_tensors();
    const Tensor p = permutation(kOp, saved[1], rows(saved[0]), saved[0]);
    return TensorList{backward_of(saved[0], p, g[0])};
  };
  const TensorList out = call_function("linalg_lu_factor", {a}, forward, backward);
  return {out[0], out[1], out[2]};
}

std::pair<Tensor, Tensor> lu_factor(const Tensor& a, bool pivot) {
  auto [lu, pivots, info] = lu_factor_ex(a, pivot, false);
  return {lu, pivots};
}

std::tuple<Tensor, Tensor, Tensor> lu(const Tensor& a, bool pivot) {
  check_pivot("linalg.lu", pivot);
  check_matrix("linalg.lu", a);
  const auto [packed, pivots] = lu_factor(a, pivot);
  return lu_unpack(packed, pivots);
}

Tensor lu_solve(const Tensor& lu, const Tensor& pivots, const Tensor& b, bool left, bool adjoint) {
  KILN_AUTOCAST(f32, lu_solve, lu, pivots, b, left, adjoint);
  constexpr const char* kOp = "linalg.lu_solve";
  check_square(kOp, lu);
  check_matrix(kOp, b);
  check_like(kOp, lu, b);
  if (!(pivots.shape() == with_dims(batch_shape(lu), {rows(lu)})) || pivots.dtype() != i32 ||
      (left ? rows(b) : cols(b)) != rows(lu)) {
    throw_error<ShapeError>(kOp, ": the operands do not fit; got LU ", lu.shape(), ", pivots ",
                            pivots.shape(), " ", pivots.dtype(), " and B ", b.shape(),
                            "; expected [.., n, n], [.., n] int32 and ",
                            left ? "[.., n, k]" : "[.., k, n]");
  }
  if (!left) return mH(lu_solve(lu, pivots, mH(b), true, !adjoint));
  const Shape batch = broadcast_shapes(kOp, batch_shape(lu), batch_shape(b));
  const Tensor p = permutation(kOp, pivots, rows(lu), lu);
  if (is_tracked(lu)) {
    const Tensor l = lower_of(lu);
    const Tensor u = upper_of(lu);
    if (adjoint) {
      const Tensor y = solve_triangular(mH(u), b, false);
      return matmul(p, solve_triangular(mH(l), y, true, true, true));
    }
    const Tensor y = solve_triangular(l, matmul(mT(p), b), false, true, true);
    return solve_triangular(u, y, true);
  }
  const LuFactors factors{columns(lu), to_device(pivots, Device(kCpu)), {}};
  return solve_with(lu.detach(), expand_batch(b, batch), factors, adjoint);
}

}  // namespace kiln::linalg

namespace kiln {

std::tuple<Tensor, Tensor, Tensor> lu_unpack(const Tensor& lu, const Tensor& pivots,
                                             bool unpack_data, bool unpack_pivots) {
  using namespace linalg::detail;
  constexpr const char* kOp = "lu_unpack";
  check_matrix(kOp, lu);
  const int64_t k = std::min(rows(lu), cols(lu));
  if (!pivots.defined() || pivots.dtype() != i32 ||
      !(pivots.shape() == with_dims(batch_shape(lu), {k}))) {
    throw_error<ShapeError>(kOp, ": the pivots do not fit LU ", lu.shape(), "; expected int32 of ",
                            with_dims(batch_shape(lu), {k}));
  }
  const Tensor none = empty({0}, {.dtype = lu.dtype(), .device = lu.device()});
  std::tuple<Tensor, Tensor, Tensor> out{none, none, none};
  if (unpack_pivots) std::get<0>(out) = linalg::permutation(kOp, pivots, rows(lu), lu);
  if (unpack_data) {
    std::tie(std::get<1>(out), std::get<2>(out)) = linalg::triangles_of(lu);
  }
  return out;
}

}  // namespace kiln
