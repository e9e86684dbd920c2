// Transform: a differentiable function with an inverse, for distributions of functions of draws.
#pragma once

#include <vector>

#include "kiln/distributions/constraint.h"
#include "kiln/distributions/shared.h"
#include "kiln/distributions/tensor_or_number.h"
#include "kiln/tensor/tensor.h"

namespace kiln::distributions {

// y = f(x), its inverse, and the log of its change of volume. Objects do not change.
class Transform {
 public:
  virtual ~Transform() = default;

  virtual Tensor operator()(const Tensor& x) const = 0;
  virtual Tensor inverse(const Tensor& y) const = 0;
  // log |det dy/dx| for y = f(x), without the last event_dim() dims.
  virtual Tensor log_abs_det_jacobian(const Tensor& x, const Tensor& y) const = 0;

  // How many dims on the right the function takes together; the same for x and y.
  virtual int event_dim() const { return 0; }
  // The shape of y for an x of this shape: parameters may make it larger.
  virtual Shape forward_shape(const Shape& shape) const { return shape; }
  // The values of y.
  virtual Constraint codomain() const = 0;
  // +1 where the function grows, -1 where it falls. Throws NotImplementedError unless f is a
  // function of one number that does one of the two.
  virtual TensorOrNumber sign() const;
  // Whether the other is the same function; needed for divergences.
  virtual bool equals(const Transform& other) const { return this == &other; }

 protected:
  Transform() = default;
  Transform(const Transform&) = default;
  Transform(Transform&&) = default;
  Transform& operator=(const Transform&) = default;
  Transform& operator=(Transform&&) = default;
};

}  // namespace kiln::distributions
