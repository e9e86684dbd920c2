// Initializers: fill a tensor in place, without recording, and return it. Random ones draw from the
// default generator.
#pragma once

#include <cstdint>
#include <utility>

#include "kiln/tensor/tensor.h"

namespace kiln::nn::init {

enum class FanMode : uint8_t { fan_in, fan_out };
enum class Nonlinearity : uint8_t { linear, sigmoid, tanh, relu, leaky_relu, selu };

// Inputs and outputs of one unit: for a weight [out, in, ...], in (resp. out) times the product of
// the other sizes. Throws ShapeError below two dims.
struct Fans {
  int64_t fan_in;
  int64_t fan_out;
};
Fans calculate_fan(const Shape& shape);

// By how much weights are scaled to make up for a nonlinearity: 1, 1, 5/3, sqrt 2, sqrt(2 / (1 +
// slope^2)), 3/4.
double calculate_gain(Nonlinearity nonlinearity, double negative_slope = 0.01);

Tensor& constant_(Tensor& x, Scalar value);
Tensor& zeros_(Tensor& x);
Tensor& ones_(Tensor& x);
// The identity matrix. Throws ShapeError unless x is a matrix.
Tensor& eye_(Tensor& x);
// Uniform in [low, high); normal.
Tensor& uniform_(Tensor& x, double low = 0.0, double high = 1.0);
Tensor& normal_(Tensor& x, double mean = 0.0, double std = 1.0);
// Glorot & Bengio, 2010: uniform within gain sqrt(6 / (fan_in + fan_out)); std gain sqrt(2 /
// (fan_in + fan_out)).
Tensor& xavier_uniform_(Tensor& x, double gain = 1.0);
Tensor& xavier_normal_(Tensor& x, double gain = 1.0);
// He et al., 2015: uniform within gain sqrt(3 / fan); std gain / sqrt(fan). `a` is the slope of
// leaky_relu.
Tensor& kaiming_uniform_(Tensor& x, double a = 0.0, FanMode mode = FanMode::fan_in,
                         Nonlinearity nonlinearity = Nonlinearity::leaky_relu);
Tensor& kaiming_normal_(Tensor& x, double a = 0.0, FanMode mode = FanMode::fan_in,
                        Nonlinearity nonlinearity = Nonlinearity::leaky_relu);

}  // namespace kiln::nn::init
