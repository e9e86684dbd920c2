// How an op of autocast's lists reads its operands. Internal to kiln/tensor.
//
// An op of a list begins with one line that names the list, the function itself and its arguments:
//
//   Tensor matmul(TensorArg x, TensorArg y) {
//     KILN_AUTOCAST(lower, matmul, x, y);
//
// Outside of a region that reads one flag. Inside, the function is called again on cast operands,
// with the flag off: ops that it is made of do not cast anew. The cast is an op like another, so
// that autodiff casts the gradient back.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "kiln/tensor/tensor.h"

namespace kiln::amp::detail {

enum class List : uint8_t {
  lower,   // the region's dtype
  f32,     // f32
  widest,  // the region's dtype, or f32 where an operand has another
};

extern constinit thread_local bool casting;

class NoCasting {
 public:
  NoCasting() : before_(std::exchange(casting, false)) {}
  ~NoCasting() { casting = before_; }
  NoCasting(const NoCasting&) = delete;
  NoCasting& operator=(const NoCasting&) = delete;

 private:
  bool before_;
};

// Whether a region casts x: a defined tensor of f32, f16 or bf16.
bool may_cast(const Tensor& x);
// x in that dtype, from the cache where it is a parameter.
Tensor cast_operand(const Tensor& x, DType dtype);
// The dtype of the list `widest`, where x is one operand and `known` that of those before it.
DType wider(DType known, const Tensor& x);
DType lower_dtype();

template <class T>
concept OneTensor = std::is_same_v<std::remove_cvref_t<T>, Tensor> ||
                    std::is_same_v<std::remove_cvref_t<T>, TensorArg>;
template <class T>
concept ManyTensors = std::is_same_v<std::remove_cvref_t<T>, std::span<const Tensor>> ||
                      std::is_same_v<std::remove_cvref_t<T>, std::vector<Tensor>>;

template <class T>
void widen(DType& dtype, const T& x) {
  if constexpr (OneTensor<T>) {
    dtype = wider(dtype, x);
  } else if constexpr (ManyTensors<T>) {
    for (const Tensor& each : x) dtype = wider(dtype, each);
  }
}

template <class T>
decltype(auto) cast_argument(const T& x, DType dtype) {
  if constexpr (OneTensor<T>) {
    return cast_operand(x, dtype);
  } else if constexpr (ManyTensors<T>) {
    std::vector<Tensor> out;
    for (const Tensor& each : x) out.push_back(cast_operand(each, dtype));
    return out;
  } else {
    return (x);
  }
}

// Options of which one is a tensor.
template <class Options>
Options cast_member(Options options, Tensor Options::*member, DType dtype) {
  options.*member = cast_operand(options.*member, dtype);
  return options;
}

template <List list, class F, class... Args>
auto call(F&& f, const Args&... args) {
  DType dtype = list == List::f32 ? DType::f32 : lower_dtype();
  if constexpr (list == List::widest) (widen(dtype, args), ...);
  const NoCasting off;
  return f(cast_argument(args, dtype)...);
}

}  // namespace kiln::amp::detail

#define KILN_AUTOCAST(list, function, ...)                                                         \
  if (::kiln::amp::detail::casting) [[unlikely]]                                                   \
  return ::kiln::amp::detail::call<::kiln::amp::detail::List::list>(                               \
      [&](auto&&... operands) { return function(std::forward<decltype(operands)>(operands)...); }, \
      __VA_ARGS__)
