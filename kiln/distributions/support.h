// What distributions share: parameters of one shape, limits of dtypes, sums over events.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include "kiln/distributions/tensor_or_number.h"

namespace kiln::distributions {

inline constexpr double kEulerGamma = 0.57721566490153286061;

// A parameter with its name, and where its tensor goes.
struct NamedParameter {
  std::string_view name;
  const TensorOrNumber& given;
  Tensor* result;
};
// Makes the parameters tensors of one shape, dtype and device. Numbers and tensors of integers get
// the dtype of the tensors of floats (the default dtype without such). A tensor that fits already
// stays the same leaf. Throws ValueError for what was not given, DTypeError for complex and
// quantized tensors, ShapeError for shapes that do not broadcast; each names `owner` and the
// parameter.
void broadcast_parameters(std::string_view owner, std::initializer_list<NamedParameter> parameters);

// A parameter that is a tensor of `dims` dims or more; integers become the default dtype. Throws
// ValueError for an undefined one, DTypeError for complex and quantized ones, ShapeError for fewer
// dims.
Tensor tensor_parameter(std::string_view owner, std::string_view name, const Tensor& x, int dims);

// x's dtype if it has floats, else the default dtype.
DType default_float(const Tensor& x);
double smallest_of(DType dtype);  // the smallest normal number > 0
double epsilon_of(DType dtype);   // the distance of 1 to the next number

// "3" for one number, "[2, 4]-shaped bounds" for many.
std::string brief(const Tensor& x);
Shape joined(const Shape& a, const Shape& b);
Shape joined(const Shape& a, const Shape& b, const Shape& c);
// x; itself if it has the shape, so that it stays a leaf.
Tensor expanded(const Tensor& x, const Shape& shape);
// The sums over the last `dims` dims.
Tensor sum_rightmost(const Tensor& x, int dims);
// The diagonals of matrices [.., n, n], also of those that were expanded: [.., n].
Tensor diagonal_of_matrix(const Tensor& x);

// Uniform numbers of [0, 1) and normal ones, with the dtype and device of `like`.
Tensor uniform_numbers(const Shape& shape, const Tensor& like);
Tensor normal_numbers(const Shape& shape, const Tensor& like);
// log(1 + e^x), exact in every dtype.
Tensor log1p_exp(const Tensor& x);

// The values 0, .., count - 1 along a new first dim of a batch; with `expand` for each of its
// elements, else with dims of size 1.
Tensor enumerated(const Tensor& values, const Shape& batch_shape, const Shape& event_shape,
                  bool expand);

}  // namespace kiln::distributions
