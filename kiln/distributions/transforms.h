// The transforms: exponential, affine, sigmoid, tanh, and chains of them.
#pragma once

#include <initializer_list>

#include "kiln/distributions/transform.h"

namespace kiln::distributions {

// y = exp(x).
class ExpTransform : public Transform {
 public:
  Tensor operator()(const Tensor& x) const override;
  Tensor inverse(const Tensor& y) const override;
  Tensor log_abs_det_jacobian(const Tensor& x, const Tensor& y) const override;
  Constraint codomain() const override { return constraints::positive(); }
  TensorOrNumber sign() const override { return 1; }
  bool equals(const Transform& other) const override;
};

// y = 1 / (1 + exp(-x)), moved inside of (0, 1), so that the inverse is finite.
class SigmoidTransform : public Transform {
 public:
  Tensor operator()(const Tensor& x) const override;
  Tensor inverse(const Tensor& y) const override;
  Tensor log_abs_det_jacobian(const Tensor& x, const Tensor& y) const override;
  Constraint codomain() const override { return constraints::unit_interval(); }
  TensorOrNumber sign() const override { return 1; }
  bool equals(const Transform& other) const override;
};

// y = tanh(x). The change of volume is computed from x, without the difference 1 - y^2, and is
// exact for every x. The inverse is not: near -1 and 1 tanh loses digits. So where a draw and its
// probability are needed, ask rsample_with_log_prob() for both.
class TanhTransform : public Transform {
 public:
  Tensor operator()(const Tensor& x) const override;
  Tensor inverse(const Tensor& y) const override;
  Tensor log_abs_det_jacobian(const Tensor& x, const Tensor& y) const override;
  Constraint codomain() const override { return constraints::interval(-1.0, 1.0); }
  TensorOrNumber sign() const override { return 1; }
  bool equals(const Transform& other) const override;
};

// y = loc + scale x, elementwise. The last event_dim dims are one event. Throws ValueError for a
// parameter that was not given, for a number scale of 0, and for a negative event_dim.
class AffineTransform : public Transform {
 public:
  AffineTransform(const TensorOrNumber& loc, const TensorOrNumber& scale, int event_dim = 0);
  const TensorOrNumber& loc() const { return loc_; }
  const TensorOrNumber& scale() const { return scale_; }

  Tensor operator()(const Tensor& x) const override;
  Tensor inverse(const Tensor& y) const override;
  Tensor log_abs_det_jacobian(const Tensor& x, const Tensor& y) const override;
  int event_dim() const override { return event_dim_; }
  Shape forward_shape(const Shape& shape) const override;
  Constraint codomain() const override;
  TensorOrNumber sign() const override;
  // Compares the values of tensors.
  bool equals(const Transform& other) const override;

 private:
  TensorOrNumber loc_, scale_;
  int event_dim_;
};

// One after another, the first one first: ComposeTransform({TanhTransform(), AffineTransform(0,
// 2)}).
class ComposeTransform : public Transform {
 public:
  explicit ComposeTransform(std::vector<Shared<Transform>> parts) : parts_(std::move(parts)) {}
  const std::vector<Shared<Transform>>& parts() const { return parts_; }

  Tensor operator()(const Tensor& x) const override;
  Tensor inverse(const Tensor& y) const override;
  Tensor log_abs_det_jacobian(const Tensor& x, const Tensor& y) const override;
  int event_dim() const override;
  Shape forward_shape(const Shape& shape) const override;
  Constraint codomain() const override;
  TensorOrNumber sign() const override;
  bool equals(const Transform& other) const override;

 private:
  std::vector<Shared<Transform>> parts_;
};

}  // namespace kiln::distributions
