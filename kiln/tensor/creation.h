// Functions that make tensors.
#pragma once

#include <complex>
#include <concepts>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "kiln/tensor/tensor.h"

namespace kiln {

namespace detail {

// What begin() and end() go over; no tensor, and no text.
template <class R>
concept RangeOfNumbers = !std::same_as<R, Tensor> && requires(const R& range) {
  std::begin(range);
  std::end(range);
} && !std::convertible_to<R, std::string_view>;

}  // namespace detail

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
// From a range of numbers or of ranges: vector, array, span, a vector of vectors. The dtype is that
// of the numbers. Throws ShapeError when the rows differ in length.
template <detail::RangeOfNumbers R>
Tensor tensor(const R& values, TensorOptions options = {});
template <detail::RangeOfNumbers R>
Tensor tensor(const R& values, std::same_as<DType> auto dtype) {
  return tensor(values, TensorOptions{.dtype = dtype});
}
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
// Of the shape and dtype and on the device of x; they lie in memory as x does.
Tensor empty_like(const Tensor& x);
Tensor zeros_like(const Tensor& x);
Tensor ones_like(const Tensor& x);
Tensor full_like(const Tensor& x, Scalar value);
Tensor eye(int64_t n, TensorOptions options = {});

// start, start + step, ... below end (above, for a negative step). i64 when all three are integers.
// Throws ValueError for a step that leads away from the end.
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

// In short: zeros({2, 3}, i64), ones(3), rand(5, f64).
#define KILN_CREATION(name)                                          \
  Tensor name(const Shape& shape, std::same_as<DType> auto dtype) {  \
    return name(shape, TensorOptions{.dtype = dtype});               \
  }                                                                  \
  Tensor name(DimNumber auto size, TensorOptions options = {}) {     \
    return name(Shape{size}, options);                               \
  }                                                                  \
  Tensor name(DimNumber auto size, std::same_as<DType> auto dtype) { \
    return name(Shape{size}, TensorOptions{.dtype = dtype});         \
  }
KILN_CREATION(empty)
KILN_CREATION(zeros)
KILN_CREATION(ones)
KILN_CREATION(rand)
KILN_CREATION(randn)
#undef KILN_CREATION
Tensor full(const Shape& shape, Scalar value, std::same_as<DType> auto dtype) {
  return full(shape, value, TensorOptions{.dtype = dtype});
}
Tensor tensor(std::initializer_list<NestedList> values, std::same_as<DType> auto dtype) {
  return tensor(values, TensorOptions{.dtype = dtype});
}
Tensor tensor(Scalar value, std::same_as<DType> auto dtype) {
  return tensor(value, TensorOptions{.dtype = dtype});
}
Tensor arange(Scalar end, std::same_as<DType> auto dtype) {
  return arange(end, TensorOptions{.dtype = dtype});
}

// A tensor over memory that belongs to somebody else, who keeps it as long as the tensor and its
// views live, or until `release(data)` is called. `strides` are in elements; row-major without
// them. Throws ValueError for no memory, ShapeError for strides that do not fit the shape.
Tensor from_blob(void* data, const Shape& shape, TensorOptions options = {});
Tensor from_blob(void* data, const Shape& shape, const Strides& strides,
                 std::function<void(void*)> release = {}, TensorOptions options = {});
template <std::invocable<void*> F>
Tensor from_blob(void* data, const Shape& shape, F release, TensorOptions options = {}) {
  return from_blob(data, shape, contiguous_strides(shape), std::move(release), options);
}
Tensor from_blob(void* data, const Shape& shape, std::same_as<DType> auto dtype) {
  return from_blob(data, shape, TensorOptions{.dtype = dtype});
}

namespace detail {
template <class T>
constexpr void check_is_element() {
  static_assert(
      requires { DTypeOf<T>::value; },
      "tensor: no dtype holds this type; expected double, float, std::complex of these, "
      "float16, bfloat16, int64_t, int32_t, int16_t, int8_t or uint8_t");
}
Tensor from_values(const void* values, size_t count, DType dtype, const Shape& shape,
                   const TensorOptions& options);

// The type of the numbers in nested ranges.
template <class R>
struct NumberOf {
  using type = R;
};
template <RangeOfNumbers R>
struct NumberOf<R> {
  using Item = std::remove_cvref_t<decltype(*std::begin(std::declval<const R&>()))>;
  using Plain = std::conditional_t<std::same_as<Item, std::vector<bool>::reference>, bool, Item>;
  using type = typename NumberOf<Plain>::type;
};

[[noreturn]] void throw_rows_differ(int64_t got, int64_t expected);

// Fills in the sizes of nested ranges, from dim `depth` on.
template <RangeOfNumbers R>
void measure(const R& range, std::vector<int64_t>& sizes, size_t depth) {
  const auto size = static_cast<int64_t>(std::distance(std::begin(range), std::end(range)));
  if (depth == sizes.size()) {
    sizes.push_back(size);
  } else if (sizes[depth] != size) {
    throw_rows_differ(size, sizes[depth]);
  }
  for (const auto& item : range) {
    if constexpr (RangeOfNumbers<std::remove_cvref_t<decltype(item)>>) {
      measure(item, sizes, depth + 1);
    } else {
      break;
    }
  }
}

// Writes the numbers, and returns the end of them.
template <class R, class T>
T* flatten_into(const R& range, T* out) {
  for (const auto& item : range) {
    if constexpr (RangeOfNumbers<std::remove_cvref_t<decltype(item)>>) {
      out = flatten_into(item, out);
    } else {
      *out++ = item;
    }
  }
  return out;
}
}  // namespace detail

template <detail::RangeOfNumbers R>
Tensor tensor(const R& values, TensorOptions options) {
  using T = typename detail::NumberOf<R>::type;
  detail::check_is_element<T>();
  if constexpr (requires { DTypeOf<T>::value; }) {
    std::vector<int64_t> sizes;
    detail::measure(values, sizes, 0);
    size_t count = 1;
    for (const int64_t size : sizes) count *= static_cast<size_t>(size);
    const Shape shape(sizes);
    if constexpr (requires {
                    { std::data(values) } -> std::convertible_to<const T*>;
                  }) {
      return detail::from_values(std::data(values), count, dtype_of<T>, shape, options);
    } else {
      // Not a vector: one of bools has no bools.
      const auto flat = std::make_unique<T[]>(count);
      detail::flatten_into(values, flat.get());
      return detail::from_values(flat.get(), count, dtype_of<T>, shape, options);
    }
  }
}
template <class T>
  requires(!std::is_same_v<T, bool>)
Tensor from_vector(const std::vector<T>& values, const Shape& shape, TensorOptions options) {
  detail::check_is_element<T>();
  return detail::from_values(values.data(), values.size(), dtype_of<T>, shape, options);
}

}  // namespace kiln
