#include "kiln/distributions/transforms.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "kiln/distributions/support.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/ops.h"

namespace kiln::distributions {

namespace {

// y, moved away from 0 and 1, so that both logs are finite.
Tensor inner_interval(const Tensor& y) {
  return y.clamp(smallest_of(y.dtype()), 1 - epsilon_of(y.dtype()));
}

Tensor times(const Tensor& x, const TensorOrNumber& y) {
  return y.is_tensor() ? x * y.tensor() : x * y.number();
}

bool same_values(const TensorOrNumber& a, const TensorOrNumber& b) {
  if (a.is_tensor() != b.is_tensor()) return false;
  if (!a.is_tensor()) return a.number() == b.number();
  return a.tensor().is_same(b.tensor()) || a.tensor().equal(b.tensor());
}

}  // namespace

TensorOrNumber Transform::sign() const {
  throw_error<NotImplementedError>("Transform: it has no sign(); cdf and icdf need one");
}

// ---- Exp

Tensor ExpTransform::operator()(const Tensor& x) const { return x.exp(); }
Tensor ExpTransform::inverse(const Tensor& y) const { return y.log(); }
Tensor ExpTransform::log_abs_det_jacobian(const Tensor& x, const Tensor&) const { return x; }
bool ExpTransform::equals(const Transform& other) const {
  return dynamic_cast<const ExpTransform*>(&other) != nullptr;
}

// ---- Sigmoid

Tensor SigmoidTransform::operator()(const Tensor& x) const { return inner_interval(x.sigmoid()); }

Tensor SigmoidTransform::inverse(const Tensor& y) const {
  const Tensor inner = inner_interval(y);
  return inner.log() - (-inner).log1p();
}

Tensor SigmoidTransform::log_abs_det_jacobian(const Tensor& x, const Tensor&) const {
  return -log1p_exp(-x) - log1p_exp(x);
}

bool SigmoidTransform::equals(const Transform& other) const {
  return dynamic_cast<const SigmoidTransform*>(&other) != nullptr;
}

// ---- Tanh

Tensor TanhTransform::operator()(const Tensor& x) const { return x.tanh(); }
Tensor TanhTransform::inverse(const Tensor& y) const { return y.atanh(); }

// log(1 - tanh(x)^2) = 2 (log 2 - x - log(1 + e^(-2 x))).
Tensor TanhTransform::log_abs_det_jacobian(const Tensor& x, const Tensor&) const {
  return 2 * (std::numbers::ln2 - x - log1p_exp(-2 * x));
}

bool TanhTransform::equals(const Transform& other) const {
  return dynamic_cast<const TanhTransform*>(&other) != nullptr;
}

// ---- Affine

AffineTransform::AffineTransform(const TensorOrNumber& loc, const TensorOrNumber& scale,
                                 int event_dim)
    : loc_(loc), scale_(scale), event_dim_(event_dim) {
  if (!loc.is_given() || !scale.is_given()) {
    throw_error<ValueError>("AffineTransform: parameter ", loc.is_given() ? "scale" : "loc",
                            " was not given");
  }
  if (!scale.is_tensor() && scale.number() == 0) {
    throw_error<ValueError>("AffineTransform: parameter scale must not be 0");
  }
  if (event_dim < 0) {
    throw_error<ValueError>("AffineTransform: event_dim must be >= 0; got ", event_dim);
  }
}

Tensor AffineTransform::operator()(const Tensor& x) const {
  const Tensor scaled = times(x, scale_);
  return loc_.is_tensor() ? scaled + loc_.tensor() : scaled + loc_.number();
}

Tensor AffineTransform::inverse(const Tensor& y) const {
  const Tensor moved = loc_.is_tensor() ? y - loc_.tensor() : y - loc_.number();
  return scale_.is_tensor() ? moved / scale_.tensor() : moved / scale_.number();
}

Tensor AffineTransform::log_abs_det_jacobian(const Tensor& x, const Tensor&) const {
  const Tensor change = scale_.is_tensor() ? scale_.tensor().abs().log()
                                           : full_like(x, std::log(std::abs(scale_.number())));
  const Shape shape = broadcast_shapes("AffineTransform", x.shape(), change.shape());
  return sum_rightmost(change.expand(shape), event_dim_);
}

Shape AffineTransform::forward_shape(const Shape& shape) const {
  Shape result = shape;
  for (const TensorOrNumber* x : {&loc_, &scale_}) {
    if (!x->is_tensor()) continue;
    result = broadcast_shapes("AffineTransform", result, x->tensor().shape());
  }
  return result;
}

Constraint AffineTransform::codomain() const {
  return constraints::independent(constraints::real(), event_dim_);
}

TensorOrNumber AffineTransform::sign() const {
  if (scale_.is_tensor()) return scale_.tensor().sign();
  return scale_.number() > 0 ? 1 : -1;
}

bool AffineTransform::equals(const Transform& other) const {
  const auto* const affine = dynamic_cast<const AffineTransform*>(&other);
  return affine && event_dim_ == affine->event_dim_ && same_values(loc_, affine->loc_) &&
         same_values(scale_, affine->scale_);
}

// ---- Compose

Tensor ComposeTransform::operator()(const Tensor& x) const {
  Tensor y = x;
  for (const Shared<Transform>& part : parts_) y = (*part)(y);
  return y;
}

Tensor ComposeTransform::inverse(const Tensor& y) const {
  Tensor x = y;
  for (size_t i = parts_.size(); i-- > 0;) x = parts_[i]->inverse(x);
  return x;
}

Tensor ComposeTransform::log_abs_det_jacobian(const Tensor& x, const Tensor&) const {
  const int dims = event_dim();
  Tensor now = x, total = sum_rightmost(zeros_like(x), dims);
  for (const Shared<Transform>& part : parts_) {
    const Tensor next = (*part)(now);
    total = total + sum_rightmost(part->log_abs_det_jacobian(now, next), dims - part->event_dim());
    now = next;
  }
  return total;
}

int ComposeTransform::event_dim() const {
  int most = 0;
  for (const Shared<Transform>& part : parts_) most = std::max(most, part->event_dim());
  return most;
}

Shape ComposeTransform::forward_shape(const Shape& shape) const {
  Shape result = shape;
  for (const Shared<Transform>& part : parts_) result = part->forward_shape(result);
  return result;
}

Constraint ComposeTransform::codomain() const {
  if (parts_.empty()) return constraints::real();
  const Constraint last = parts_.back()->codomain();
  return constraints::independent(last, event_dim() - last.event_dim());
}

TensorOrNumber ComposeTransform::sign() const {
  TensorOrNumber sign = 1;
  for (const Shared<Transform>& part : parts_) {
    const TensorOrNumber next = part->sign();
    if (next.is_tensor()) {
      sign = times(next.tensor(), sign);
    } else if (sign.is_tensor()) {
      sign = sign.tensor() * next.number();
    } else {
      sign = sign.number() * next.number();
    }
  }
  return sign;
}

bool ComposeTransform::equals(const Transform& other) const {
  const auto* const chain = dynamic_cast<const ComposeTransform*>(&other);
  if (!chain || chain->parts_.size() != parts_.size()) return false;
  for (size_t i = 0; i < parts_.size(); ++i) {
    if (!parts_[i]->equals(*chain->parts_[i])) return false;
  }
  return true;
}

}  // namespace kiln::distributions
