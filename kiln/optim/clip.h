// Gradient clipping, between backward and the optimizer's step.
#pragma once

#include <initializer_list>
#include <limits>
#include <span>

#include "kiln/tensor/tensor.h"

namespace kiln::optim {

// The order of a vector norm that is the largest absolute value.
inline constexpr double kMaxNorm = std::numeric_limits<double>::infinity();

// Scales the parameters' gradients, seen as one vector, by max_norm / (norm + 1e-6) when that is
// below 1. Returns the norm before, 0-d. Parameters without a gradient do not count. Throws
// ValueError for a norm_type that is not positive and, with error_if_nonfinite, when the norm is
// not finite.
Tensor clip_grad_norm_(std::span<const Tensor> params, double max_norm, double norm_type = 2.0,
                       bool error_if_nonfinite = false);
inline Tensor clip_grad_norm_(std::initializer_list<Tensor> params, double max_norm,
                              double norm_type = 2.0, bool error_if_nonfinite = false) {
  return clip_grad_norm_(std::span(params.begin(), params.size()), max_norm, norm_type,
                         error_if_nonfinite);
}
// The same for the gradients that backward() returned.
Tensor clip_grad_norm_(Gradients& gradients, std::span<const Tensor> params, double max_norm,
                       double norm_type = 2.0, bool error_if_nonfinite = false);

// Clamps each element of the gradients to [-clip_value, clip_value].
void clip_grad_value_(std::span<const Tensor> params, double clip_value);
inline void clip_grad_value_(std::initializer_list<Tensor> params, double clip_value) {
  clip_grad_value_(std::span(params.begin(), params.size()), clip_value);
}
void clip_grad_value_(Gradients& gradients, std::span<const Tensor> params, double clip_value);

}  // namespace kiln::optim
