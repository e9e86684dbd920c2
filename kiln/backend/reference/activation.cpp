// Activations, softmax and their gradients.
#include "kiln/backend/reference/activation.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "kiln/backend/function_math.h"
#include "kiln/backend/reference/elements.h"

namespace kiln {

using reference::map;
using reference::map_rows;
using reference::Ops;
using reference::Tensor;

namespace {

// Each branch has an exponent that cannot overflow.
double sigmoid(double x) {
  return x >= 0.0 ? 1.0 / (1.0 + std::exp(-x)) : std::exp(x) / (1.0 + std::exp(x));
}

double silu_slope(double x) {
  const double s = sigmoid(x);
  return s * (1.0 + x * (1.0 - s));
}

constexpr double kGeluScale = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;  // sqrt(2 / pi)
constexpr double kGeluCube = 0.044715;

// Far out, where infinity would meet zero: there the limits.
double gelu(double x) {
  if (x < -1e3) return -0.0;
  return x * 0.5 * std::erfc(-x / std::numbers::sqrt2);
}
double gelu_slope(double x) {
  if (std::fabs(x) > 1e3) return x > 0 ? 1.0 : 0.0;
  const double density = std::exp(-0.5 * x * x) * std::numbers::inv_sqrtpi / std::numbers::sqrt2;
  return 0.5 * std::erfc(-x / std::numbers::sqrt2) + x * density;
}

double gelu_tanh(double x) {
  if (x < -1e3) return -0.0;
  return 0.5 * x * (1.0 + std::tanh(kGeluScale * (x + kGeluCube * x * x * x)));
}
double gelu_tanh_slope(double x) {
  if (std::fabs(x) > 1e3) return x > 0 ? 1.0 : 0.0;
  const double t = std::tanh(kGeluScale * (x + kGeluCube * x * x * x));
  const double inner_slope = kGeluScale * (1.0 + 3.0 * kGeluCube * x * x);
  return 0.5 * (1.0 + t) + 0.5 * x * (1.0 - t * t) * inner_slope;
}

double largest(std::span<const double> row) {
  double result = row[0];
  for (double x : row) {
    if (std::isnan(x) || x > result) result = x;
  }
  return result;
}

}  // namespace

double reference::activated(double x, Activation activation) {
  switch (activation) {
    case Activation::none:
      break;
    case Activation::relu:
      return x < 0.0 ? 0.0 : x;
    case Activation::gelu:
      return gelu(x);
    case Activation::gelu_tanh:
      return gelu_tanh(x);
    case Activation::silu:
      return x * sigmoid(x);
    case Activation::tanh:
      return std::tanh(x);
    case Activation::sigmoid:
      return sigmoid(x);
    case Activation::relu6:
      return x < 0.0 ? 0.0 : x > 6.0 ? 6.0 : x;
    case Activation::hardswish:
      return x * math::hardsigmoid(x);
    case Activation::hardsigmoid:
      return math::hardsigmoid(x);
  }
  return x;
}

#define KILN_UNARY(name, expression)                                        \
  HostHandle Ops::name(Tensor x) {                                          \
    return map<double>(x, x->dtype(), [](double a) { return expression; }); \
  }
KILN_UNARY(float_relu, a < 0.0 ? 0.0 : a)
KILN_UNARY(float_sigmoid, sigmoid(a))
KILN_UNARY(float_silu, a* sigmoid(a))
#undef KILN_UNARY

// y is the activation's output, or its input for silu and gelu.
#define KILN_BACKWARD(name, expression)                                                            \
  HostHandle Ops::name(Tensor grad, Tensor saved) {                                                \
    return map<double>(grad, saved, grad->dtype(), [](double g, double y) { return expression; }); \
  }
KILN_BACKWARD(float_relu_backward, y <= 0.0 ? 0.0 : g)
KILN_BACKWARD(float_sigmoid_backward, g* y * (1.0 - y))
KILN_BACKWARD(float_tanh_backward, g * (1.0 - y * y))
KILN_BACKWARD(float_silu_backward, g* silu_slope(y))
#undef KILN_BACKWARD

HostHandle Ops::float_gelu(Tensor x, bool approximate) {
  return map<double>(x, x->dtype(), approximate ? gelu_tanh : gelu);
}
HostHandle Ops::float_gelu_backward(Tensor g, Tensor x, bool approximate) {
  const auto slope = approximate ? gelu_tanh_slope : gelu_slope;
  return map<double>(g, x, g->dtype(), [=](double grad, double a) { return grad * slope(a); });
}

HostHandle Ops::float_softmax(Tensor x, int dim) {
  return map_rows<double>(x, Dims{dim}, [](std::span<double> row) {
    if (row.empty()) return;
    const double shift = largest(row);
    double sum = 0.0;
    for (double& a : row) {
      a = std::exp(a - shift);
      sum += a;
    }
    for (double& a : row) a /= sum;
  });
}

HostHandle Ops::float_softmax_backward(Tensor g, Tensor y, int dim) {
  return map_rows(g, y, Dims{dim}, [](std::span<double> grads, std::span<const double> ys) {
    double sum = 0.0;
    for (size_t i = 0; i < ys.size(); ++i) sum += grads[i] * ys[i];
    for (size_t i = 0; i < ys.size(); ++i) grads[i] = ys[i] * (grads[i] - sum);
  });
}

HostHandle Ops::float_log_softmax(Tensor x, int dim) {
  return map_rows<double>(x, Dims{dim}, [](std::span<double> row) {
    if (row.empty()) return;
    const double shift = largest(row);
    double sum = 0.0;
    for (double a : row) sum += std::exp(a - shift);
    for (double& a : row) a = a - shift - std::log(sum);
  });
}

HostHandle Ops::float_log_softmax_backward(Tensor g, Tensor y, int dim) {
  return map_rows(g, y, Dims{dim}, [](std::span<double> grads, std::span<const double> ys) {
    double sum = 0.0;
    for (double grad : grads) sum += grad;
    for (size_t i = 0; i < ys.size(); ++i) grads[i] -= std::exp(ys[i]) * sum;
  });
}

}  // namespace kiln
