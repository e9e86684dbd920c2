#include "kiln/distributions/support.h"

#include <limits>
#include <optional>

#include "kiln/tensor/creation.h"
#include "kiln/tensor/nn/activations.h"
#include "kiln/tensor/ops.h"
#include "kiln/tensor/shape/views.h"

namespace kiln::distributions {

namespace {

void check_dtype(std::string_view owner, std::string_view name, const Tensor& x) {
  if (!x.is_floating_point() && !is_integral(x.dtype()) && x.dtype() != bool_) {
    throw_error<DTypeError>(owner, ": parameter ", name, " must have real numbers; got ",
                            x.dtype());
  }
}

}  // namespace

void broadcast_parameters(std::string_view owner,
                          std::initializer_list<NamedParameter> parameters) {
  std::optional<DType> dtype;
  Device device = {};
  Shape shape;
  bool any_tensor = false;
  for (const auto& [name, given, result] : parameters) {
    if (!given.is_given()) throw_error<ValueError>(owner, ": parameter ", name, " was not given");
    if (!given.is_tensor()) continue;
    const Tensor& x = given.tensor();
    check_dtype(owner, name, x);
    if (!any_tensor) device = x.device();
    any_tensor = true;
    if (x.is_floating_point()) dtype = dtype ? promote_types(*dtype, x.dtype()) : x.dtype();
    try {
      shape = broadcast_shapes("parameters", shape, x.shape());
    } catch (const ShapeError&) {
      throw_error<ShapeError>(owner, ": parameter ", name,
                              " does not broadcast with those before it; got ", x.shape(), " and ",
                              shape);
    }
  }
  const DType common = dtype.value_or(default_dtype());
  for (const auto& [name, given, result] : parameters) {
    *result = given.is_tensor() ? expanded(given.tensor().to(common), shape)
                                : full(shape, given.number(), {common, device});
  }
}

Tensor tensor_parameter(std::string_view owner, std::string_view name, const Tensor& x, int dims) {
  if (!x.defined()) throw_error<ValueError>(owner, ": parameter ", name, " was not given");
  check_dtype(owner, name, x);
  if (x.dim() < dims) {
    throw_error<ShapeError>(owner, ": parameter ", name, " must have ", dims,
                            dims == 1 ? " dim or more; got shape " : " dims or more; got shape ",
                            x.shape());
  }
  return x.to(default_float(x));
}

DType default_float(const Tensor& x) { return x.is_floating_point() ? x.dtype() : default_dtype(); }

double smallest_of(DType dtype) {
  if (dtype == f64) return std::numeric_limits<double>::min();
  return dtype == f16 ? 0x1p-14 : 0x1p-126;
}

double epsilon_of(DType dtype) {
  if (dtype == f64) return 0x1p-52;
  if (dtype == f32) return 0x1p-23;
  return dtype == f16 ? 0x1p-10 : 0x1p-7;
}

std::string brief(const Tensor& x) {
  return x.numel() == 1 ? concat(x.item<double>()) : concat("bounds of shape ", x.shape());
}

Shape joined(const Shape& a, const Shape& b) {
  Shape result = a;
  for (const int64_t size : b) result.push_back(size);
  return result;
}

Shape joined(const Shape& a, const Shape& b, const Shape& c) { return joined(joined(a, b), c); }

Tensor expanded(const Tensor& x, const Shape& shape) {
  return x.shape() == shape ? x : x.expand(shape);
}

Tensor sum_rightmost(const Tensor& x, int dims) {
  if (dims == 0) return x;
  Dims last;
  for (int i = 1; i <= dims; ++i) last.push_back(-i);
  return x.sum(last);
}

Tensor diagonal_of_matrix(const Tensor& x) { return diagonal(x.contiguous(), 0, -2, -1); }

Tensor uniform_numbers(const Shape& shape, const Tensor& like) {
  const Tensor x = rand(shape, {like.dtype(), like.device()});
  // Rounding to 16 bits may give 1, whose quantiles are infinite.
  return size_of(x.dtype()) > 2 ? x : x.clamp({}, 1 - epsilon_of(x.dtype()) / 2);
}

Tensor normal_numbers(const Shape& shape, const Tensor& like) {
  return randn(shape, {like.dtype(), like.device()});
}

Tensor log1p_exp(const Tensor& x) { return -functional::logsigmoid(-x); }

Tensor enumerated(const Tensor& values, const Shape& batch_shape, const Shape& event_shape,
                  bool expand) {
  const int64_t count = values.size(0);
  const Shape ones = Shape::filled(batch_shape.rank(), 1);
  const Tensor result = values.reshape(joined({count}, ones, event_shape));
  return expand ? result.expand(joined({count}, batch_shape, event_shape)) : result;
}

}  // namespace kiln::distributions
