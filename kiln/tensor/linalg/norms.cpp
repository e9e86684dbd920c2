// Norms of vectors and matrices, and the condition number.
#include <cmath>
#include <limits>

#include "kiln/tensor/linalg.h"
#include "kiln/tensor/linalg/host.h"

namespace kiln::linalg {

using namespace detail;

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

bool is_low(DType dtype) { return dtype == f16 || dtype == bf16; }

// The operand in the dtype asked for. Throws DTypeError unless floating point.
Tensor converted(const char* op, const Tensor& x, std::optional<DType> dtype) {
  if (!x.defined()) throw_error<ValueError>(op, ": the tensor is undefined");
  if (!x.is_floating_point()) {
    throw_error<DTypeError>(op, ": wrong dtype; got ", x.dtype(),
                            "; expected a floating point tensor");
  }
  if (!dtype) return x;
  if (!kiln::is_floating_point(*dtype)) {
    throw_error<DTypeError>(op, ": wrong dtype argument; got ", *dtype,
                            "; expected a floating point dtype");
  }
  return x.to(*dtype);
}

Tensor zero_where(const Tensor& mask, const Tensor& x) { return x.masked_fill(mask, 0); }

// Without recording. dims are normalized and not empty.
Tensor forward_norm(const Tensor& x, double ord, const Dims& dims, bool keepdim) {
  if (ord == 0) return x.ne(0).to(x.dtype()).sum(dims, keepdim);
  if (ord == 1) return x.abs().sum(dims, keepdim);
  if (ord == 2) return (x * x).sum(dims, keepdim).sqrt();
  if (ord == kInf) return x.abs().amax(dims, keepdim);
  if (ord == -kInf) return x.abs().amin(dims, keepdim);
  return x.abs().pow(ord).sum(dims, keepdim).pow(1.0 / ord);
}

// `norm` and g keep their dims.
Tensor norm_backward(const Tensor& x, const Tensor& norm, const Tensor& g, double ord,
                     const Dims& dims) {
  if (ord == 0) return zeros_like(x);
  if (ord == 1) return x.sign() * g;
  const Tensor none = norm.eq(0);
  // 0 / 1 where the norm is zero: the subgradient that PyTorch takes.
  const Tensor safe = norm.masked_fill(none, 1);
  if (ord == 2) return x * zero_where(none, g / safe);
  if (std::isinf(ord)) {
    const Tensor hit = x.abs().eq(norm).to(x.dtype());
    return x.sign() * hit * (g / hit.sum(dims, true));
  }
  const Tensor zero = x.eq(0);
  const Tensor magnitude = x.abs().masked_fill(zero, 1);
  const Tensor part = zero_where(zero, magnitude.pow(ord - 1) * x.sign());
  return part * zero_where(none, g / safe.pow(ord - 1));
}

Tensor norm_over(const Tensor& x, double ord, const Dims& dims, bool keepdim) {
  const auto forward = [&](FunctionContext& ctx, const TensorList& in) {
    Tensor y = forward_norm(in[0], ord, dims, keepdim);
    ctx.save_for_backward({in[0], y});
    return TensorList{y};
  };
  const auto backward = [ord, dims, keepdim](FunctionContext& ctx, const TensorList& g) {
    const TensorList saved = ctx.saved_tensors();
    const Shape kept = reduced_shape(saved[0].shape(), dims, true);
    (void)keepdim;
    return TensorList{
        norm_backward(saved[0], saved[1].reshape(kept), g[0].reshape(kept), ord, dims)};
  };
  return call_function("linalg_vector_norm", {x}, forward, backward)[0];
}

}  // namespace

Tensor vector_norm(const Tensor& x, double ord, const Dims& dims, bool keepdim,
                   std::optional<DType> dtype) {
  constexpr const char* kOp = "linalg.vector_norm";
  const Tensor a = converted(kOp, x, dtype);
  const Dims over = dims.empty() ? all_dims(a.dim()) : normalize_dims(kOp, dims, a.dim());
  if (a.dim() == 0) return ord == 0 ? a.ne(0).to(a.dtype()) : a.abs();
  if ((ord < 0 || ord == kInf) && reduced_shape(a.shape(), over, false).numel() > 0) {
    for (const int64_t d : over) {
      if (a.size(d) == 0) {
        throw_error<ShapeError>(kOp, ": the norm of order ", ord,
                                " has no value over an empty dim; got shape ", a.shape());
      }
    }
  }
  if (is_low(a.dtype())) {
    return norm_over(a.to(f32), ord, over, keepdim).to(a.dtype());
  }
  return norm_over(a, ord, over, keepdim);
}

// ---- Matrices

namespace {

// The two dims moved to the end, as matrices.
struct Matrices {
  Tensor a;
  Dims dims;  // normalized
};

Matrices matrices_of(const char* op, const Tensor& x, const Dims& dims) {
  if (x.dim() < 2) {
    throw_error<ShapeError>(op, ": expected at least 2 dims; got shape ", x.shape());
  }
  if (dims.rank() != 2) {
    throw_error<ValueError>(op, ": a matrix norm is over two dims; got ", dims);
  }
  const Dims over = normalize_dims(op, dims, x.dim());
  Dims order;
  for (int i = 0; i < x.dim(); ++i) {
    if (i != over[0] && i != over[1]) order.push_back(i);
  }
  order.push_back(over[0]);
  order.push_back(over[1]);
  return {x.permute(order), over};
}

Tensor kept(Tensor y, const Dims& dims, bool keepdim) {
  if (!keepdim) return y;
  const int64_t low = std::min(dims[0], dims[1]);
  return y.unsqueeze(low).unsqueeze(std::max(dims[0], dims[1]));
}

void check_not_empty(const char* op, const Tensor& a, double ord) {
  if (a.size(-1) == 0 || a.size(-2) == 0) {
    throw_error<ShapeError>(op, ": the norm of order ", ord,
                            " of an empty matrix has no value; got shape ", a.shape());
  }
}

}  // namespace

Tensor matrix_norm(const Tensor& x, double ord, const Dims& dims, bool keepdim,
                   std::optional<DType> dtype) {
  constexpr const char* kOp = "linalg.matrix_norm";
  const double size = std::abs(ord);
  if (size != 1 && size != 2 && size != kInf) {
    throw_error<ValueError>(kOp, ": unknown order; got ", ord,
                            "; expected 'fro', 'nuc', 1, -1, 2, -2, inf or -inf");
  }
  const auto [a, over] = matrices_of(kOp, converted(kOp, x, dtype), dims);
  if (size == 2) {
    const Tensor s = svdvals(a);
    if (s.size(-1) == 0) check_not_empty(kOp, a, ord);
    return kept(ord > 0 ? s.amax(-1) : s.amin(-1), over, keepdim);
  }
  const Tensor sums = vector_norm(a, 1, {size == 1 ? -2 : -1});
  if (sums.size(-1) == 0) check_not_empty(kOp, a, ord);
  return kept(ord > 0 ? sums.amax(-1) : sums.amin(-1), over, keepdim);
}

Tensor matrix_norm(const Tensor& x, const std::string& ord, const Dims& dims, bool keepdim,
                   std::optional<DType> dtype) {
  constexpr const char* kOp = "linalg.matrix_norm";
  if (ord == "fro") {
    const auto [a, over] = matrices_of(kOp, converted(kOp, x, dtype), dims);
    return kept(vector_norm(a, 2, {-2, -1}), over, keepdim);
  }
  if (ord != "nuc") {
    throw_error<ValueError>(kOp, ": unknown order; got '", ord,
                            "'; expected 'fro', 'nuc', 1, -1, 2, -2, inf or -inf");
  }
  const auto [a, over] = matrices_of(kOp, converted(kOp, x, dtype), dims);
  return kept(svdvals(a).sum(-1), over, keepdim);
}

Tensor norm(const Tensor& x, std::optional<double> ord, const Dims& dims, bool keepdim,
            std::optional<DType> dtype) {
  if (!ord) return vector_norm(x, 2, dims, keepdim, dtype);
  const int count = dims.empty() ? x.dim() : dims.rank();
  if (!dims.empty() && dims.rank() == 1) return vector_norm(x, *ord, dims, keepdim, dtype);
  if (dims.empty() && count == 1) return vector_norm(x, *ord, {}, keepdim, dtype);
  if (count != 2) {
    throw_error<ValueError>(
        "linalg.norm: with ord, one dim gives a vector norm and two a matrix "
        "norm; got ",
        count);
  }
  return matrix_norm(x, *ord, dims.empty() ? Dims{0, 1} : dims, keepdim, dtype);
}

Tensor norm(const Tensor& x, const std::string& ord, const Dims& dims, bool keepdim,
            std::optional<DType> dtype) {
  const int count = dims.empty() ? x.dim() : dims.rank();
  if (count != 2) {
    throw_error<ValueError>("linalg.norm: ord '", ord, "' is for matrices; got ", count,
                            " dims; expected 2");
  }
  return matrix_norm(x, ord, dims.empty() ? Dims{0, 1} : dims, keepdim, dtype);
}

// ---- The condition number

namespace {

// Of square matrices, with inf for the singular ones.
template <class Norm>
Tensor cond_by_inverse(const Tensor& a, Norm&& norm) {
  check_square("linalg.cond", a);
  const auto [inverse, info] = inv_ex(a);
  const Tensor product = norm(a) * norm(inverse);
  return product.masked_fill(info.ne(0), kInf);
}

}  // namespace

Tensor cond(const Tensor& a, std::optional<double> p) {
  constexpr const char* kOp = "linalg.cond";
  check_matrix(kOp, a);
  const double ord = p.value_or(2.0);
  if (std::abs(ord) == 2) {
    const Tensor s = svdvals(a);
    if (s.size(-1) == 0) return zeros(batch_shape(a), {.dtype = s.dtype(), .device = a.device()});
    return ord > 0 ? s.select(-1, 0) / s.select(-1, -1) : s.select(-1, -1) / s.select(-1, 0);
  }
  return cond_by_inverse(a, [&](const Tensor& x) { return matrix_norm(x, ord); });
}

Tensor cond(const Tensor& a, const std::string& p) {
  check_matrix("linalg.cond", a);
  if (p == "nuc") {
    check_square("linalg.cond", a);
    const Tensor s = svdvals(a);
    return s.sum(-1) * s.pow(-1.0).sum(-1);
  }
  return cond_by_inverse(a, [&](const Tensor& x) { return matrix_norm(x, p); });
}

}  // namespace kiln::linalg
