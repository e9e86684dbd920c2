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
// Normal, and drawn again where it is not within [a, b]. Throws ValueError unless a < b, and for a
// std that is not positive.
Tensor& trunc_normal_(Tensor& x, double mean = 0.0, double std = 1.0, double a = -2.0,
                      double b = 2.0);
// Rows that are orthonormal, or columns where there are more rows, times gain (Saxe et al., 2013);
// the dims after the first count as one. Throws ShapeError below two dims.
Tensor& orthogonal_(Tensor& x, double gain = 1.0);
// Convolution weights [O, C, K..] that hand as many channels on as they can, in each of `groups`.
// Throws ShapeError unless x has 3 to 5 dims, ValueError unless groups divides O.
Tensor& dirac_(Tensor& x, int64_t groups = 1);
// A matrix, normal with mean 0, of which the fraction `sparsity` of each column is 0. Throws
// ShapeError, ValueError for a fraction outside [0, 1].
Tensor& sparse_(Tensor& x, double sparsity, double std = 0.01);

}  // namespace kiln::nn::init
