// What Param needs to know of the type that it holds.
#pragma once

#include <concepts>
#include <optional>
#include <utility>

#include "kiln/core/dtype.h"
#include "kiln/core/shape.h"
#include "kiln/tensor/tensor.h"

namespace kiln::nn {

// Specialize it for a type whose members have other names than the next definition takes. Two more
// functions are optional: as_parameter, how a plain value becomes a parameter, and none, what a
// Param without a value reads as.
template <class T>
struct ParameterTraits;

template <class T>
  requires requires(const T& x, T y, bool flag) {
    x.device();
    x.shape();
    x.is_require_grad();
    std::move(y).set_require_grad(flag);
  }
struct ParameterTraits<T> {
  using Device = decltype(std::declval<const T&>().device());

  static Device device(const T& x) { return x.device(); }
  static Shape shape(const T& x) { return x.shape(); }
  static bool is_require_grad(const T& x) { return x.is_require_grad(); }
  static T set_require_grad(T x, bool value) { return std::move(x).set_require_grad(value); }
  // A value that shares nothing with x.
  static T clone(const T& x) { return x; }
  static T to_device(T x, const Device& device) { return std::move(x).to_device(device); }
};

// Tensors have no member is_require_grad, so that this cannot be ambiguous.
template <>
struct ParameterTraits<Tensor> {
  using Device = kiln::Device;

  static Device device(const Tensor& x) { return x.device(); }
  static Shape shape(const Tensor& x) { return x.shape(); }
  static bool is_require_grad(const Tensor& x) { return x.requires_grad(); }
  // Marks the tensor itself when it is a leaf; the result of recorded ops is detached first.
  static Tensor set_require_grad(Tensor x, bool value);
  // A leaf of its own, with the same requirement.
  static Tensor clone(const Tensor& x);
  static Tensor to_device(Tensor x, const Device& device);
  // A new leaf that shares x's memory and, when it is floating point, requires a gradient.
  static Tensor as_parameter(const Tensor& x);
  // The undefined tensor.
  static const Tensor& none();
  // Writes the values of `from` into x; the tensor stays what it is.
  static void take_values(Tensor& x, const Tensor& from);
  // Puts x in another dtype, with the same requirement.
  static void cast(Tensor& x, DType dtype);
};

namespace detail {

// While it lives, copies of parameters and buffers made by this thread share their values' memory
// instead of holding clones.
class ShareOnCopy {
 public:
  ShareOnCopy();
  ~ShareOnCopy();
  ShareOnCopy(const ShareOnCopy&) = delete;
  ShareOnCopy& operator=(const ShareOnCopy&) = delete;

  static bool active();

 private:
  bool before_;
};

}  // namespace detail

// A type that a Param can hold: copyable, on some device, of some shape, with a gradient or
// without.
template <class T>
concept Parameter = std::copyable<T> && requires(const T& x, T y, bool flag) {
  typename ParameterTraits<T>::Device;
  requires std::copyable<typename ParameterTraits<T>::Device>;
  { ParameterTraits<T>::device(x) } -> std::convertible_to<typename ParameterTraits<T>::Device>;
  { ParameterTraits<T>::shape(x) } -> std::convertible_to<Shape>;
  { ParameterTraits<T>::is_require_grad(x) } -> std::convertible_to<bool>;
  { ParameterTraits<T>::set_require_grad(std::move(y), flag) } -> std::convertible_to<T>;
  { ParameterTraits<T>::clone(x) } -> std::convertible_to<T>;
};

}  // namespace kiln::nn
