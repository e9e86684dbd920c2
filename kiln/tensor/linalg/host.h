// What the decompositions are written with: batches of matrices in host memory, in LAPACK's layout,
// worked on in Kiln's own parallel loop. Internal to kiln/tensor/linalg.
//
// Note [Host functions]. LAPACK works on host memory, so these functions are no backend ops: a
// tensor of another device is copied to the host, and what comes of it back. Their derivatives are
// custom functions whose backward is written with tensor ops, and so runs where the tensors are.
#pragma once

#include <algorithm>
#include <complex>
#include <utility>
#include <vector>

#include "kiln/core/parallel.h"
#include "kiln/tensor/autograd/custom_function.h"
#include "kiln/tensor/autograd/grad_mode.h"
#include "kiln/tensor/complex/complex.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/linalg/error.h"
#include "kiln/tensor/linalg/lapack.h"
#include "kiln/tensor/ops.h"

namespace kiln::linalg::detail {

// ---- Arguments

// Throws ValueError when undefined, DTypeError unless f32, f64, c64 or c128, ShapeError below 2
// dims.
void check_matrix(const char* op, const Tensor& a);
// Also ShapeError unless square.
void check_square(const char* op, const Tensor& a);
// Both of one dtype and on one device.
void check_like(const char* op, const Tensor& a, const Tensor& b);

inline int64_t rows(const Tensor& a) { return a.size(-2); }
inline int64_t cols(const Tensor& a) { return a.size(-1); }
// The dims before the matrix's two, and how many matrices they hold.
Shape batch_shape(const Tensor& a);
inline int64_t batch_count(const Tensor& a) { return batch_shape(a).numel(); }
// batch + {m, n}.
Shape with_dims(const Shape& batch, std::initializer_list<int64_t> dims);
// a with its batch dims expanded to `batch`.
Tensor expand_batch(const Tensor& a, const Shape& batch);

// n as LAPACK's integer. Throws ShapeError naming `op` beyond 2^31 - 1.
int checked_size(const char* op, int64_t n);

// ---- Matrices in memory

// A fresh host copy of `a` without history. Row-major; take columns(a) for LAPACK's layout.
Tensor host_copy(const Tensor& a);
// A fresh host copy of the transpose of `a`, [.., n, m]: as LAPACK sees memory, `a` itself.
Tensor columns(const Tensor& a);
// What columns() gave, as the matrix it is (a view), on `device`.
Tensor from_columns(const Tensor& a, Device device);
// The same without the transposition.
inline Tensor to_device(const Tensor& a, Device device) {
  return a.device() == device ? a : a.to(device);
}
// Uninitialized, on the host.
Tensor host_empty(const Shape& shape, DType dtype);

// f(T()) for the type that belongs to the dtype.
template <class F>
decltype(auto) by_type(DType dtype, F&& f) {
  switch (dtype) {
    case DType::f32:
      return f(float());
    case DType::c64:
      return f(std::complex<float>());
    case DType::c128:
      return f(std::complex<double>());
    default:
      return f(double());
  }
}

// f(i) for each of n matrices, in parallel; `work` is how many operations one takes, about.
template <class F>
void over_batch(int64_t n, int64_t work, F&& f) {
  const int64_t grain = std::max<int64_t>(1, 16384 / std::max<int64_t>(1, work));
  parallel_for(n, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) f(i);
  });
}

// Throws LinAlgError(op, message(info)) for the first matrix whose info is not zero, naming it in a
// batch.
template <class Message>
void check_info(const char* op, const Tensor& info, Message&& message) {
  const std::vector<int32_t> values = info.to_vector<int32_t>();
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i] == 0) continue;
    const std::string text = message(values[i]);
    if (info.dim() == 0) throw_error<LinAlgError>(op, ": ", text);
    throw_error<LinAlgError>(op, ": (batch element ", i, ") ", text);
  }
}

// ---- Matrices as tensors: all differentiable

Tensor mT(const Tensor& a);
// The conjugate transpose; of real matrices the transpose.
Tensor mH(const Tensor& a);
// The part on and below (above) diagonal k, zeros elsewhere.
Tensor lower(const Tensor& a, int64_t k = 0);
Tensor upper(const Tensor& a, int64_t k = 0);
Tensor diagonal_of(const Tensor& a);
Tensor diagonal_matrix(const Tensor& d);
// 1 in the tensor's dtype on the diagonal, [n, n].
Tensor identity_like(const Tensor& a, int64_t n);
// Complex eigenvectors v are defined up to a phase, so a function of them must not depend on it:
// the diagonal of v^H g, with g its gradient, is real. Throws AutodiffError where it is not, by
// more than 0.01.
void check_phase(const char* op, const Tensor& turn);
// |x|^2, real.
Tensor abs_squared(const Tensor& x);
// Whether gradients of it are wanted, while recording.
bool is_tracked(const Tensor& a);

}  // namespace kiln::linalg::detail
