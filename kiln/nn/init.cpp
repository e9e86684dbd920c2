#include "kiln/nn/init.h"

#include <cmath>

#include "kiln/core/error.h"
#include "kiln/tensor/autograd/grad_mode.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/elementwise/pointwise.h"
#include "kiln/tensor/linalg/linalg.h"

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

Tensor& trunc_normal_(Tensor& x, double mean, double std, double a, double b) {
  if (!(a < b) || !(std > 0.0)) {
    throw_error<ValueError>("trunc_normal_: expected a < b and a positive std; got a ", a, ", b ",
                            b, ", std ", std);
  }
  if (x.numel() == 0) return x;
  // The inverse of the distribution function of uniform numbers between its values at a and b.
  const auto below = [](double z) { return std::erf(z / std::sqrt(2.0)); };
  const double low = below((a - mean) / std), high = below((b - mean) / std);
  NoGradGuard no_grad;
  x.uniform_(low, high);
  const double most = 1.0 - 1e-7;
  return x.copy_((erfinv(x.clamp(-most, most)) * (std * std::sqrt(2.0)) + mean).clamp(a, b));
}

Tensor& orthogonal_(Tensor& x, double gain) {
  if (x.dim() < 2) {
    throw_error<ShapeError>("orthogonal_: expected at least 2 dims; got shape ", x.shape());
  }
  if (x.numel() == 0) return x;
  NoGradGuard no_grad;
  const int64_t rows = x.size(0), columns = x.numel() / rows;
  Tensor flat = randn({rows, columns}, {x.dtype(), x.device()});
  if (rows < columns) flat = flat.t();
  const auto [q, r] = linalg::qr(flat);
  // With the signs of r's diagonal every orthogonal matrix is as probable.
  Tensor out = q * linalg::diagonal(r).sign();
  if (rows < columns) out = out.t();
  return x.copy_(out.reshape(x.shape()) * gain);
}

Tensor& dirac_(Tensor& x, int64_t groups) {
  if (x.dim() < 3 || x.dim() > 5) {
    throw_error<ShapeError>("dirac_: expected 3, 4 or 5 dims; got shape ", x.shape());
  }
  if (groups < 1 || x.size(0) % groups != 0) {
    throw_error<ValueError>("dirac_: groups must divide the first size; got groups ", groups,
                            " for shape ", x.shape());
  }
  NoGradGuard no_grad;
  x.zero_();
  const int64_t each = x.size(0) / groups;
  for (int64_t group = 0; group < groups; ++group) {
    for (int64_t i = 0; i < each && i < x.size(1); ++i) {
      Tensor place = x.select(0, group * each + i).select(0, i);
      while (place.dim() > 0) place = place.select(0, place.size(0) / 2);
      place.fill_(1);
    }
  }
  return x;
}

Tensor& sparse_(Tensor& x, double sparsity, double std) {
  if (x.dim() != 2) throw_error<ShapeError>("sparse_: a matrix is needed; got shape ", x.shape());
  if (!(sparsity >= 0.0 && sparsity <= 1.0)) {
    throw_error<ValueError>("sparse_: sparsity must be between 0 and 1; got ", sparsity);
  }
  NoGradGuard no_grad;
  normal_(x, 0.0, std);
  const auto zeros = static_cast<int64_t>(std::ceil(sparsity * static_cast<double>(x.size(0))));
  for (int64_t column = 0; column < x.size(1) && zeros > 0; ++column) {
    Tensor part = x.select(1, column);
    part.masked_fill_(randperm(x.size(0)).to(x.device()).lt(zeros), 0);
  }
  return x;
}

}  // namespace kiln::nn::init
