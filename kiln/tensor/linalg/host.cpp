#include "kiln/tensor/linalg/host.h"

#include <limits>

#include "kiln/core/guard_allocator.h"

namespace kiln::linalg::detail {

void check_matrix(const char* op, const Tensor& a) {
  if (!a.defined()) throw_error<ValueError>(op, ": the tensor is undefined");
  if (a.dim() < 2) {
    throw_error<ShapeError>(op, ": expected a matrix or a batch of them; got shape ", a.shape(),
                            "; expected at least 2 dims");
  }
  const DType parts = real_dtype(a.dtype());
  if (parts != f32 && parts != f64) {
    throw_error<DTypeError>(op, ": wrong dtype; got ", a.dtype(),
                            "; expected float32, float64, complex64 or complex128");
  }
}

void check_square(const char* op, const Tensor& a) {
  check_matrix(op, a);
  if (rows(a) != cols(a)) {
    throw_error<ShapeError>(op, ": the matrices must be square; got shape ", a.shape(),
                            "; expected [.., n, n]");
  }
}

void check_like(const char* op, const Tensor& a, const Tensor& b) {
  if (!b.defined()) throw_error<ValueError>(op, ": the tensor is undefined");
  if (a.dtype() != b.dtype()) {
    throw_error<DTypeError>(op, ": the operands differ in dtype; got ", a.dtype(), " and ",
                            b.dtype(), "; expected one dtype");
  }
  if (a.device() != b.device()) {
    throw_error<DeviceError>(op, ": the operands live on different devices; got ", a.device(),
                             " and ", b.device());
  }
}

int checked_size(const char* op, int64_t n) {
  if (n > std::numeric_limits<int>::max()) {
    throw_error<ShapeError>(op, ": a dim is too large for LAPACK; got ", n, "; expected at most ",
                            std::numeric_limits<int>::max());
  }
  return static_cast<int>(n);
}

Shape batch_shape(const Tensor& a) {
  Shape out;
  for (int i = 0; i + 2 < a.dim(); ++i) out.push_back(a.shape()[i]);
  return out;
}

Shape with_dims(const Shape& batch, std::initializer_list<int64_t> dims) {
  Shape out = batch;
  for (const int64_t d : dims) out.push_back(d);
  return out;
}

Tensor expand_batch(const Tensor& a, const Shape& batch) {
  if (batch_shape(a) == batch) return a;
  return a.expand(with_dims(batch, {rows(a), cols(a)}));
}

// OpenBLAS reads whole vectors, a few of them beyond a matrix's end, and does not use what it read
// there. With KILN_GUARD=1 a block ends where memory ends, so there the matrices have room behind.
Tensor host_empty(const Shape& shape, DType dtype) {
  constexpr int64_t kRoom = 256;
  const TensorOptions options{.dtype = dtype, .device = Device(kCpu)};
  if (!kiln::detail::guard_enabled()) return empty(shape, options);
  const int64_t n = shape.numel();
  return empty({n + kRoom}, options).narrow(0, 0, n).reshape(shape);
}

Tensor host_copy(const Tensor& a) {
  NoGradGuard no_grad;
  Tensor out = host_empty(a.shape(), a.dtype());
  out.copy_(a.detach());
  return out;
}

Tensor columns(const Tensor& a) { return host_copy(a.detach().transpose(-2, -1)); }

Tensor from_columns(const Tensor& a, Device device) {
  return to_device(a, device).transpose(-2, -1);
}

Tensor mT(const Tensor& a) { return a.transpose(-2, -1); }
Tensor mH(const Tensor& a) { return conj(a.transpose(-2, -1)); }

namespace {

// j - i for each place of the last two dims.
Tensor offset_of(const Tensor& a) {
  const TensorOptions options{.dtype = i64, .device = a.device()};
  return arange(Scalar(cols(a)), options).unsqueeze(0) -
         arange(Scalar(rows(a)), options).unsqueeze(1);
}

}  // namespace

Tensor lower(const Tensor& a, int64_t k) { return a.masked_fill(offset_of(a).gt(k), 0); }
Tensor upper(const Tensor& a, int64_t k) { return a.masked_fill(offset_of(a).lt(k), 0); }

Tensor diagonal_of(const Tensor& a) {
  const int64_t m = rows(a);
  const int64_t n = cols(a);
  const int64_t k = std::min(m, n);
  const Tensor square = a.narrow(-2, 0, k).narrow(-1, 0, k);
  const Shape batch = batch_shape(a);
  if (k == 0) return square.reshape(with_dims(batch, {0}));
  return square.reshape(with_dims(batch, {k * k})).slice(-1, 0, std::nullopt, k + 1);
}

Tensor diagonal_matrix(const Tensor& d) {
  const int64_t n = d.size(-1);
  const Tensor wide = d.unsqueeze(-1).expand(with_dims(d.shape(), {n}));
  const Tensor off = eye(n, {.dtype = bool_, .device = d.device()}).logical_not();
  return wide.masked_fill(off, 0);
}

Tensor identity_like(const Tensor& a, int64_t n) {
  return eye(n, {.dtype = a.dtype(), .device = a.device()});
}

void check_phase(const char* op, const Tensor& turn) {
  if (!is_complex(turn)) return;
  NoGradGuard guard;
  const Tensor phase = imag(diagonal_of(turn.detach()));
  if (phase.abs().le(1e-2).all().item<bool>()) return;
  throw_error<AutodiffError>(
      op,
      ": complex eigenvectors (singular vectors) are defined up to a phase e^(i phi), on which "
      "the function that is differentiated depends: it has no derivative");
}

Tensor abs_squared(const Tensor& x) {
  return is_complex(x) ? view_as_real(x).square().sum(-1) : x.square();
}

bool is_tracked(const Tensor& a) { return is_grad_enabled() && a.requires_grad(); }

}  // namespace kiln::linalg::detail
