// Methods of Tensor that write random numbers over it.
#include "kiln/backend/random_fill.h"
#include "kiln/tensor/complex/complex_ops.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/ops.h"
#include "kiln/tensor/tensor_impl.h"

namespace kiln {

using namespace detail;

namespace {

// Draws in the tensor's dtype and writes the numbers over it.
Tensor& random_in_place(const char* op, Tensor& x, Distribution distribution) {
  check_writable(op, x, false);
  const Value& value = value_of(op, x);
  if (kind_of_value(value) != Kind::floating &&
      distribution.type != Distribution::Type::bernoulli) {
    throw_wrong_dtype(op, dtype_of_value(value), "a floating point tensor");
  }
  const Shape shape = shape_of(value);
  const DType dtype = dtype_of_value(value);
  const Device device = value.inner->device();
  const RandomStream stream = default_generator().reserve(host::random_words(shape.numel(), dtype));
  switch (kind_of(dtype)) {
    case Kind::floating:
      return x.copy_(wrap(AD::float_random(shape, distribution, stream, dtype, device)));
    case Kind::integer:
      return x.copy_(wrap(Dispatch::int_random(shape, distribution, stream, dtype, device)));
    default:
      return x.copy_(wrap(AD::float_random(shape, distribution, stream, f32, device)));
  }
}

}  // namespace

Tensor& Tensor::uniform_(double low, double high) {
  if (!(low <= high)) {
    throw_error<ValueError>("uniform_: expected low <= high; got ", low, " and ", high);
  }
  if (has_complex(*this)) [[unlikely]] {
    check_writable("uniform_", *this, false);
    return copy_(from_parts(parts_of(zeros_like(*this)).uniform_(low, high)));
  }
  return random_in_place("uniform_", *this, Distribution::uniform(low, high));
}

Tensor& Tensor::normal_(double mean, double std) {
  if (!(std >= 0)) throw_error<ValueError>("normal_: expected std >= 0; got ", std);
  if (has_complex(*this)) [[unlikely]] {
    check_writable("normal_", *this, false);
    return copy_(randn(shape(), {dtype(), device()}).mul(std).add(mean));
  }
  return random_in_place("normal_", *this, Distribution::normal(mean, std));
}

Tensor& Tensor::bernoulli_(double p) {
  if (!(p >= 0 && p <= 1)) throw_error<ValueError>("bernoulli_: expected 0 <= p <= 1; got ", p);
  return random_in_place("bernoulli_", *this, Distribution::bernoulli(p));
}

}  // namespace kiln
