// What the neural ops share. Internal to kiln/tensor.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "kiln/tensor/creation.h"
#include "kiln/tensor/nn/sizes.h"
#include "kiln/tensor/ops.h"
#include "kiln/tensor/tensor_impl.h"

namespace kiln::detail {

// Depth, height and width; ops over fewer spatial dims have 1 (or 0 of padding) in front.
using Triple = std::array<int64_t, 3>;

// `sizes` for the last `spatial` dims of three, `lead` for those before. Throws ValueError naming
// `op` and `what` unless there is one number, or `spatial` of them, in [least, 2^31): the upper
// bound keeps what is computed from them from overflowing.
Triple triple_of(const char* op, const char* what, const Sizes& sizes, int spatial, int64_t least,
                 int64_t lead);
// "[3, 3]": the sizes of the spatial dims.
std::string text_of(const Triple& sizes, int spatial);

// Throws DTypeError unless floating point.
void require_floating(const char* op, const Tensor& x);
// Throws DTypeError, DeviceError unless `other` has x's floating point dtype and its device.
void require_alike(const char* op, const Tensor& x, const Tensor& other, const char* what);
// The same, of a parameter that may be undefined, and must have this shape.
void require_param(const char* op, const Tensor& x, const Tensor& param, const char* what,
                   const Shape& expected);

// Throws ShapeError: the input of an op over windows has another number of dims.
[[noreturn]] void throw_wrong_rank(const char* op, const Shape& shape, int spatial);

// x [N, C, spatial..] as [N, C, D, H, W]; one without N becomes a batch of one. Throws ShapeError
// unless x has `spatial` + 2 dims, or one less.
struct Planes {
  Planes(const char* op, const Tensor& x, int spatial);
  // [N, C', D', H', W'] as the op was given its operand: without the dims that were added.
  Tensor restored(const Tensor& out) const;

  Tensor x;
  int spatial;
  bool batched;
};

// x with `before` and `after` elements of `value` at the ends of a dim; negative numbers drop some.
Tensor padded_dim(const Tensor& x, int64_t dim, int64_t before, int64_t after, double value = 0.0);

// x as it is reduced by a loss.
Tensor reduced_loss(const Tensor& loss, functional::Reduction reduction);

// In f32 at least.
inline DType wide_dtype(DType dtype) { return dtype == f16 || dtype == bf16 ? f32 : dtype; }

// Values as a tensor beside x.
inline Tensor beside(const Tensor& x, const std::vector<double>& values, const Shape& shape) {
  return from_vector(values, shape, {x.dtype(), x.device()});
}
inline Tensor beside(const Tensor& x, const std::vector<int64_t>& values) {
  return from_vector(values, {static_cast<int64_t>(values.size())}, {i64, x.device()});
}

// Ones in the rank of x, but `size` at `dim`.
inline Shape shape_along(int rank, int dim, int64_t size) {
  Shape shape = Shape::filled(rank, 1);
  shape[dim] = size;
  return shape;
}

// (sum |x|^p)^(1 / p) over dims, whose gradient is 0 where all of x is 0; p may be 0 or infinite.
Tensor p_norm(const Tensor& x, double p, const Dims& dims, bool keepdim);

// Throws ValueError unless p is in [0, 1].
void require_probability(const char* op, double p);

}  // namespace kiln::detail
