// Example: the tensors that one sample consists of; and Batch, the same for several samples.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <span>
#include <utility>
#include <vector>

#include "kiln/tensor/tensor.h"

namespace kiln::data {

// Usually the input of a model and what it should answer, in this order:
//   for (const auto& [images, labels] : loader) ...
// That form takes the first two tensors; others are reached by index. An index out of range is an
// IndexError.
class Example {
 public:
  Example() = default;
  Example(std::initializer_list<Tensor> tensors) : tensors_(tensors) {}
  explicit Example(std::vector<Tensor> tensors) : tensors_(std::move(tensors)) {}

  size_t size() const { return tensors_.size(); }
  bool empty() const { return tensors_.empty(); }
  const Tensor& operator[](size_t i) const { return tensors_[checked(i)]; }
  Tensor& operator[](size_t i) { return tensors_[checked(i)]; }
  const Tensor& input() const { return (*this)[0]; }
  const Tensor& target() const { return (*this)[1]; }

  auto begin() const { return tensors_.begin(); }
  auto end() const { return tensors_.end(); }
  auto begin() { return tensors_.begin(); }
  auto end() { return tensors_.end(); }

  // For structured bindings.
  template <size_t I>
  const Tensor& get() const& {
    return (*this)[I];
  }
  template <size_t I>
  Tensor& get() & {
    return (*this)[I];
  }
  template <size_t I>
  Tensor&& get() && {
    return std::move((*this)[I]);
  }

 private:
  size_t checked(size_t i) const {
    if (i >= tensors_.size()) throw_out_of_range(i);
    return i;
  }
  [[noreturn]] void throw_out_of_range(size_t i) const;

  std::vector<Tensor> tensors_;
};

// Examples with a new first dim that counts them.
using Batch = Example;

// Stacks each tensor of the examples: shapes [..] -> [N, ..]. The values are copied. Throws
// ValueError for no examples or a different number of tensors, ShapeError, DTypeError or
// DeviceError where tensors at the same place differ.
Batch collate(std::span<const Example> examples);

}  // namespace kiln::data

template <>
struct std::tuple_size<kiln::data::Example> : std::integral_constant<size_t, 2> {};
template <size_t I>
struct std::tuple_element<I, kiln::data::Example> {
  using type = kiln::Tensor;
};
