// Least squares.
#include "kiln/tensor/amp/op_lists.h"
#include "kiln/tensor/linalg/host.h"
#include "kiln/tensor/linalg/linalg.h"
#include "kiln/tensor/linalg/pseudoinverse.h"

namespace kiln::linalg {

using namespace detail;

namespace {

constexpr const char* kOp = "linalg.lstsq";

enum class Driver { gels, gelsy, gelsd, gelss };

Driver checked_driver(const std::string& name) {
  if (name.empty() || name == "gelsy") return Driver::gelsy;
  if (name == "gels") return Driver::gels;
  if (name == "gelsd") return Driver::gelsd;
  if (name == "gelss") return Driver::gelss;
  throw_error<ValueError>(kOp, ": unknown driver; got '", name,
                          "'; expected 'gels', 'gelsy', 'gelsd' or 'gelss'");
}

struct Solution {
  Tensor x;          // [.., n, k]
  Tensor residuals;  // [.., k], or empty
  Tensor rank;       // [..] i64, or empty
  Tensor s;          // [.., min(m, n)], or empty
};

// Without recording; the batch dims are equal.
Solution solve_host(const Tensor& a, const Tensor& b, double rcond, Driver driver) {
  const int m = checked_size(kOp, rows(a));
  const int n = checked_size(kOp, cols(a));
  const int nrhs = checked_size(kOp, cols(b));
  const int ld = std::max({1, m, n});
  const int64_t k = std::min(m, n);
  const Shape batch = batch_shape(a);
  const int64_t count = batch.numel();
  const Tensor work = columns(a);
  Tensor x = columns(b);  // [.., nrhs, m], padded to max(m, n) rows
  if (n > m) {
    x = cat({x, zeros(with_dims(batch, {nrhs, n - m}), {.dtype = a.dtype()})}, -1).contiguous();
  }
  const Tensor s = host_empty(with_dims(batch, {k}), real_dtype(a.dtype()));
  const Tensor rank = zeros(batch, {.dtype = i64});
  const Tensor info = zeros(batch, {.dtype = i32});
  if (count > 0 && k > 0) {
    int64_t* ranks = rank.data_ptr<int64_t>();
    int32_t* status = info.data_ptr<int32_t>();
    by_type(a.dtype(), [&]<class T>(T) {
      using R = lapack::Real<T>;
      T* data = work.data_ptr<T>();
      T* out = x.data_ptr<T>();
      R* values = s.data_ptr<R>();
      over_batch(count, 4 * int64_t{m} * n * k, [&](int64_t i) {
        T* ai = data + i * m * n;
        T* bi = out + i * nrhs * ld;
        int found = 0;
        const R bound = static_cast<R>(rcond);
        switch (driver) {
          case Driver::gels:
            status[i] = lapack::gels(m, n, nrhs, ai, m, bi, ld);
            break;
          case Driver::gelsy:
            status[i] = lapack::gelsy(m, n, nrhs, ai, m, bi, ld, bound, &found);
            break;
          case Driver::gelsd:
            status[i] = lapack::gelsd(m, n, nrhs, ai, m, bi, ld, values + i * k, bound, &found);
            break;
          case Driver::gelss:
            status[i] = lapack::gelss(m, n, nrhs, ai, m, bi, ld, values + i * k, bound, &found);
            break;
        }
        ranks[i] = found;
      });
    });
    check_info(kOp, info, [](int32_t i) {
      return concat(
          "the least squares solution could not be computed because the input matrix does "
          "not have full rank (error code: ",
          i, ")");
    });
  } else if (x.numel() > 0) {
    x.fill_(0);
    if (s.numel() > 0) Tensor(s).fill_(0);
  }
  const Device device = a.device();
  const auto none = [&](DType dtype) { return empty({0}, {.dtype = dtype, .device = device}); };
  Solution out;
  out.x = from_columns(x, device).narrow(-2, 0, n);
  const bool gives_values = driver == Driver::gelsd || driver == Driver::gelss;
  out.rank = driver == Driver::gels ? none(i64) : to_device(rank, device);
  out.s = gives_values ? to_device(s, device) : none(real_dtype(a.dtype()));
  out.residuals = none(real_dtype(a.dtype()));
  const bool full_rank = driver == Driver::gels || (gives_values && rank.eq(n).all().item<bool>());
  if (m > n && full_rank) {
    out.residuals = abs_squared(to_device(x.narrow(-1, n, m - n), device)).sum(-1);
  }
  return out;
}

}  // namespace

std::tuple<Tensor, Tensor, Tensor, Tensor> lstsq(const Tensor& a, const Tensor& b,
                                                 std::optional<double> rcond,
                                                 const std::string& driver) {
  KILN_AUTOCAST(f32, lstsq, a, b, rcond, driver);
  check_matrix(kOp, a);
  check_like(kOp, a, b);
  const Driver chosen = checked_driver(driver);
  const bool is_vector =
      b.dim() == a.dim() - 1 && b.shape() == with_dims(batch_shape(a), {rows(a)});
  const Tensor right = is_vector ? b.unsqueeze(-1) : b;
  if (right.dim() < 2 || rows(right) != rows(a)) {
    throw_error<ShapeError>(kOp, ": the shapes do not fit; got A ", a.shape(), " and B ", b.shape(),
                            "; expected B [.., ", rows(a), ", k]");
  }
  const Shape batch = broadcast_shapes(kOp, batch_shape(a), batch_shape(right));
  const Tensor left = expand_batch(a, batch);
  const Tensor wide = expand_batch(right, batch);
  const double bound = rcond ? *rcond : default_rtol(a, {}, {});
  const auto forward = [&](FunctionContext& ctx, const TensorList& in) {
    Solution s = solve_host(in[0], in[1], bound, chosen);
    ctx.mark_non_differentiable({s.residuals, s.rank, s.s});
    ctx.save_for_backward({in[0], in[1]});
    return TensorList{s.x, s.residuals, s.rank, s.s};
  };
  const auto backward = [](FunctionContext& ctx, const TensorList& g) {
    const TensorList saved = ctx.saved_tensors();
    const Tensor y = pinv(saved[0]);
    TensorList out(2);
    if (ctx.needs_input_grad(0)) {
      out[0] = pinv_backward(saved[0], y, matmul(g[0], mH(saved[1])));
    }
    if (ctx.needs_input_grad(1)) out[1] = matmul(mH(y), g[0]);
    return out;
  };
  const TensorList out = call_function("linalg_lstsq", {left, wide}, forward, backward);
  Tensor residuals = out[1];
  if (residuals.numel() > 0 && (is_tracked(a) || is_tracked(b))) {
    residuals = abs_squared(matmul(left, out[0]) - wide).sum(-2);
  }
  return {is_vector ? out[0].squeeze(-1) : out[0], residuals, out[2], out[3]};
}

}  // namespace kiln::linalg
