#include "kiln/nn/init.h"

#include <cmath>

#include "kiln/core/error.h"
#include "kiln/tensor/autograd/grad_mode.h"
#include "kiln/tensor/creation.h"

namespace kiln::nn::init {
namespace {

// Standard deviations of the two families.
double xavier_std(const Tensor& x, double gain) {
  const Fans fans = calculate_fan(x.shape());
  return gain * std::sqrt(2.0 / static_cast<double>(fans.fan_in + fans.fan_out));
}

double kaiming_std(const Tensor& x, double a, FanMode mode, Nonlinearity nonlinearity) {
  const Fans fans = calculate_fan(x.shape());
  const int64_t fan = mode == FanMode::fan_in ? fans.fan_in : fans.fan_out;
  return calculate_gain(nonlinearity, a) / std::sqrt(static_cast<double>(fan));
}

}  // namespace

Fans calculate_fan(const Shape& shape) {
  if (shape.rank() < 2) {
    throw_error<ShapeError>("calculate_fan: fan in and fan out need at least 2 dims; got ", shape);
  }
  int64_t receptive_field = 1;
  for (int i = 2; i < shape.rank(); ++i) receptive_field *= shape[i];
  return {shape[1] * receptive_field, shape[0] * receptive_field};
}

double calculate_gain(Nonlinearity nonlinearity, double negative_slope) {
  switch (nonlinearity) {
    case Nonlinearity::tanh:
      return 5.0 / 3.0;
    case Nonlinearity::relu:
      return std::sqrt(2.0);
    case Nonlinearity::leaky_relu:
      return std::sqrt(2.0 / (1.0 + negative_slope * negative_slope));
    case Nonlinearity::selu:
      return 0.75;
    default:
      return 1.0;
  }
}

Tensor& constant_(Tensor& x, Scalar value) {
  NoGradGuard no_grad;
  return x.fill_(value);
}

Tensor& zeros_(Tensor& x) { return constant_(x, 0); }
Tensor& ones_(Tensor& x) { return constant_(x, 1); }

Tensor& eye_(Tensor& x) {
  if (x.dim() != 2) throw_error<ShapeError>("eye_: a matrix is needed; got shape ", x.shape());
  NoGradGuard no_grad;
  x.zero_();
  const Shape shape = x.shape();
  for (int64_t i = 0; i < shape[0] && i < shape[1]; ++i) x.select(0, i).select(0, i).fill_(1);
  return x;
}

Tensor& uniform_(Tensor& x, double low, double high) {
  NoGradGuard no_grad;
  return x.uniform_(low, high);
}

Tensor& normal_(Tensor& x, double mean, double std) {
  NoGradGuard no_grad;
  return x.normal_(mean, std);
}

Tensor& xavier_uniform_(Tensor& x, double gain) {
  const double bound = std::sqrt(3.0) * xavier_std(x, gain);
  return uniform_(x, -bound, bound);
}

Tensor& xavier_normal_(Tensor& x, double gain) { return normal_(x, 0.0, xavier_std(x, gain)); }

Tensor& kaiming_uniform_(Tensor& x, double a, FanMode mode, Nonlinearity nonlinearity) {
  if (x.numel() == 0) return x;  // fans may be zero
  const double bound = std::sqrt(3.0) * kaiming_std(x, a, mode, nonlinearity);
  return uniform_(x, -bound, bound);
}

Tensor& kaiming_normal_(Tensor& x, double a, FanMode mode, Nonlinearity nonlinearity) {
  if (x.numel() == 0) return x;
  return normal_(x, 0.0, kaiming_std(x, a, mode, nonlinearity));
}

}  // namespace kiln::nn::init
