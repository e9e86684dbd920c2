// TensorOrNumber: a parameter as a user gives it.
#pragma once

#include <concepts>

#include "kiln/tensor/tensor.h"

namespace kiln::distributions {

// A tensor, a number, or nothing. Nothing, or an undefined tensor, means: not given.
class TensorOrNumber {
 public:
  TensorOrNumber() = default;
  TensorOrNumber(const Tensor& x) : tensor_(x), given_(x.defined()) {}
  template <class T>
    requires(std::floating_point<T> || std::integral<T>) && (!std::same_as<T, bool>)
  TensorOrNumber(T x) : number_(static_cast<double>(x)), given_(true) {}

  bool is_given() const { return given_; }
  bool is_tensor() const { return tensor_.defined(); }
  const Tensor& tensor() const { return tensor_; }  // undefined for a number
  double number() const { return number_; }         // 0 for a tensor

 private:
  Tensor tensor_;
  double number_ = 0.0;
  bool given_ = false;
};

}  // namespace kiln::distributions
