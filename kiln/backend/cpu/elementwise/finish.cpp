#include "kiln/backend/cpu/elementwise/finish.h"

#include <limits>

#include "kiln/backend/cpu/elementwise/binary_kernels.h"
#include "kiln/backend/cpu/elementwise/unary_kernels.h"
#include "kiln/backend/cpu/math/function_kernels.h"

namespace kiln::cpu {

ActivationKernel activation_kernel(Activation activation, DType dtype) {
  using Type = UnaryFunction::Type;
  static constexpr UnaryFunction kRelu6{Type::hardtanh, 0.0, 6.0};
  static constexpr UnaryFunction kHardswish{Type::hardswish};
  static constexpr UnaryFunction kHardsigmoid{Type::hardsigmoid};
  const auto plain = [&](UnaryOp op) { return ActivationKernel{unary_kernel(op, dtype)}; };
  const auto function = [&](const UnaryFunction& f) {
    return ActivationKernel{function_kernel(f.type, dtype == DType::f64), &f};
  };
  switch (activation) {
    case Activation::none:
      break;
    case Activation::relu:
      return {unary_kernel(UnaryOp::relu, dtype), nullptr, true, 0.0,
              std::numeric_limits<double>::infinity()};
    case Activation::gelu:
      return plain(UnaryOp::gelu);
    case Activation::gelu_tanh:
      return plain(UnaryOp::gelu_tanh);
    case Activation::silu:
      return plain(UnaryOp::silu);
    case Activation::tanh:
      return plain(UnaryOp::tanh);
    case Activation::sigmoid:
      return plain(UnaryOp::sigmoid);
    case Activation::relu6:
      return {function_kernel(kRelu6.type, dtype == DType::f64), &kRelu6, true, 0.0, 6.0};
    case Activation::hardswish:
      return {
          function_kernel(kHardswish.type, dtype == DType::f64), &kHardswish, true, 0.0, 0.0, true};
    case Activation::hardsigmoid:
      return function(kHardsigmoid);
  }
  return {};
}

template <class T>
void Finish<T>::operator()(T* at, int64_t n) const {
  if (residual_ != nullptr) {
    binary_kernels().kernels[index_of(BinaryOp::add)][column_of(dtype_of<T>)](
        {.in = {at, residual_ + (at - y_)}, .out = at, .n = n});
  }
  if (activation_.kernel != nullptr) {
    activation_.kernel({.in = {at}, .out = at, .n = n, .params = activation_.params});
  }
}

template class Finish<float>;
template class Finish<double>;

}  // namespace kiln::cpu
