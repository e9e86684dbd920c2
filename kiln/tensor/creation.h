// Functions that make tensors.
#pragma once

#include <initializer_list>
#include <vector>

#include "kiln/tensor/tensor.h"

namespace kiln {

// Nested braces of numbers, as tensor() takes them.
class NestedList {
 public:
  NestedList(Scalar value) : value_(value) {}
  template <class T>
    requires std::is_arithmetic_v<T>
  NestedList(T value) : value_(value) {}
  NestedList(std::initializer_list<NestedList> items) : items_(items), is_list_(true) {}

  bool is_list() const { return is_list_; }
  Scalar value() const { return value_; }
  const std::vector<NestedList>& items() const { return items_; }

 private:
  Scalar value_;
  std::vector<NestedList> items_;
  bool is_list_ = false;
};

// tensor({{1, 2}, {3, 4}}): i64 from integers, bool from bools, default_dtype() once one number is
// floating point. Throws ShapeError when the rows differ in length.
Tensor tensor(std::initializer_list<NestedList> values, TensorOptions options = {});
Tensor tensor(Scalar value, TensorOptions options = {});
template <class T>
  requires(!std::is_same_v<T, bool>)
Tensor tensor(const std::vector<T>& values, TensorOptions options = {});
// Values in row-major order with a shape.
template <class T>
  requires(!std::is_same_v<T, bool>)
Tensor from_vector(const std::vector<T>& values, const Shape& shape, TensorOptions options = {});
Tensor from_data(const TensorData& data, TensorOptions options = {});

Tensor empty(const Shape& shape, TensorOptions options = {});
Tensor zeros(const Shape& shape, TensorOptions options = {});
Tensor ones(const Shape& shape, TensorOptions options = {});
// The dtype is the value's kind when none is given: i64, bool or default_dtype().
Tensor full(const Shape& shape, Scalar value, TensorOptions options = {});
Tensor empty_like(const Tensor& x);
Tensor zeros_like(const Tensor& x);
Tensor ones_like(const Tensor& x);
Tensor full_like(const Tensor& x, Scalar value);
Tensor eye(int64_t n, TensorOptions options = {});

// start, start + step, ... below end (above, for a negative step). i64 when all three are integers.
Tensor arange(Scalar end, TensorOptions options = {});
Tensor arange(Scalar start, Scalar end, Scalar step = 1, TensorOptions options = {});
// `steps` evenly spaced numbers from start to end, both included.
Tensor linspace(double start, double end, int64_t steps, TensorOptions options = {});

// Random numbers, from the default generator unless one is given: uniform in [0, 1), standard
// normal, integers in [low, high), a permutation of 0..n-1, ones with probability p (a number, or
// each element of a tensor).
Tensor rand(const Shape& shape, TensorOptions options = {}, Generator* generator = nullptr);
Tensor randn(const Shape& shape, TensorOptions options = {}, Generator* generator = nullptr);
Tensor randint(int64_t low, int64_t high, const Shape& shape, TensorOptions options = {},
               Generator* generator = nullptr);
Tensor randperm(int64_t n, TensorOptions options = {}, Generator* generator = nullptr);
Tensor bernoulli(const Tensor& p, Generator* generator = nullptr);
Tensor rand_like(const Tensor& x);
Tensor randn_like(const Tensor& x);

// [..] -> [.., num_classes] of 0 and 1, i64. -1: one more than the largest value.
Tensor one_hot(const Tensor& x, int64_t num_classes = -1);

namespace detail {
Tensor from_values(const void* values, size_t count, DType dtype, const Shape& shape,
                   const TensorOptions& options);
}

template <class T>
  requires(!std::is_same_v<T, bool>)
Tensor tensor(const std::vector<T>& values, TensorOptions options) {
  return detail::from_values(values.data(), values.size(), dtype_of<T>,
                             Shape{static_cast<int64_t>(values.size())}, options);
}
template <class T>
  requires(!std::is_same_v<T, bool>)
Tensor from_vector(const std::vector<T>& values, const Shape& shape, TensorOptions options) {
  return detail::from_values(values.data(), values.size(), dtype_of<T>, shape, options);
}

}  // namespace kiln
