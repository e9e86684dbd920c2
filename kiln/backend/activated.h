// activated: an Activation by the ops of a backend.
#pragma once

#include <utility>

#include "kiln/backend/functions.h"
#include "kiln/backend/options.h"

namespace kiln {

// activation(x) by X's ops, which may take over x's memory.
template <class X, class FloatTensor>
FloatTensor activated(FloatTensor x, Activation activation) {
  switch (activation) {
    case Activation::none:
      break;
    case Activation::relu:
      return X::float_relu(std::move(x));
    case Activation::gelu:
      return X::float_gelu(std::move(x), false);
    case Activation::gelu_tanh:
      return X::float_gelu(std::move(x), true);
    case Activation::silu:
      return X::float_silu(std::move(x));
    case Activation::tanh:
      return X::float_tanh(std::move(x));
    case Activation::sigmoid:
      return X::float_sigmoid(std::move(x));
    case Activation::relu6:
      return X::float_unary(std::move(x), UnaryFunction{UnaryFunction::Type::hardtanh, 0.0, 6.0});
    case Activation::hardswish:
      return X::float_unary(std::move(x), UnaryFunction{UnaryFunction::Type::hardswish});
    case Activation::hardsigmoid:
      return X::float_unary(std::move(x), UnaryFunction{UnaryFunction::Type::hardsigmoid});
  }
  return x;
}

}  // namespace kiln
