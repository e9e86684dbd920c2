// Norms of vectors and matrices, and the condition number.
#include <cmath>
#include <limits>

#include "kiln/tensor/amp/op_lists.h"
#include "kiln/tensor/linalg/host.h"
#include "kiln/tensor/linalg/linalg.h"
#include "kiln/tensor/reduce/reductions.h"
#include "kiln/tensor/tensor_impl.h"

namespace kiln::linalg {

using namespace detail;

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

// The operand in the dtype asked for. Throws DTypeError unless floating point or complex, and when
// a complex operand is to become real.
Tensor converted(const char* op, const Tensor& x, std::optional<DType> dtype) {
  if (!x.defined()) throw_error<ValueError>(op, ": the tensor is undefined");
  if (!x.is_floating_point() && !is_complex(x)) {
    throw_error<DTypeError>(op, ": wrong dtype; got ", x.dtype(),
                            "; expected a floating point or complex tensor");
  }
  if (!dtype) return x;
  if (is_complex(x) ? !kiln::is_complex(*dtype) : !kiln::is_floating_point(*dtype)) {
    throw_error<DTypeError>(op, ": wrong dtype argument; got ", *dtype, " for a tensor of ",
                            x.dtype(), "; expected a ",
                            is_complex(x) ? "complex" : "floating point", " dtype");
  }
  return x.to(*dtype);
}

}  // namespace

Tensor vector_norm(const Tensor& x, double ord, const Dims& dims, bool keepdim,
                   std::optional<DType> dtype) {
  constexpr const char* kOp = "linalg.vector_norm";
  const Tensor a = converted(kOp, x, dtype);
  return kiln::detail::naming<ShapeError>(kOp, [&] { return kiln::norm(a, ord, dims, keepdim); });
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
    if (s.size(-1) == 0 && ord > 0) return kept(s.sum(-1), over, keepdim);
    if (s.size(-1) == 0) check_not_empty(kOp, a, ord);
    return kept(ord > 0 ? s.amax(-1) : s.amin(-1), over, keepdim);
  }
  const Tensor sums = vector_norm(a, 1, {size == 1 ? -2 : -1});
  if (sums.size(-1) == 0 && ord > 0) return kept(sums.sum(-1), over, keepdim);
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
  KILN_AUTOCAST(f32, cond, a, p);
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
  KILN_AUTOCAST(f32, cond, a, p);
  check_matrix("linalg.cond", a);
  if (p == "nuc") {
    check_square("linalg.cond", a);
    const Tensor s = svdvals(a);
    return s.sum(-1) * s.pow(-1.0).sum(-1);
  }
  return cond_by_inverse(a, [&](const Tensor& x) { return matrix_norm(x, p); });
}

}  // namespace kiln::linalg
