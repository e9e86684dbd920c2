#include "kiln/tensor/amp/op_lists.h"
#include "kiln/tensor/complex/complex_ops.h"
#include "kiln/tensor/nn/activations.h"
#include "kiln/tensor/ops.h"
#include "kiln/tensor/tensor_impl.h"

namespace kiln {

using namespace detail;

namespace {

[[noreturn]] void throw_product(const char* op, const Shape& x, const Shape& y,
                                const char* expected) {
  throw_error<ShapeError>(op, ": the shapes do not multiply; got ", x, " and ", y, "; expected ",
                          expected);
}

Value reshaped(const ValueArg& x, const Shape& shape) {
  return kind_of_value(x) == Kind::floating ? AD::float_reshape(x, shape)
                                            : Value{Dispatch::int_reshape(x->inner, shape)};
}

// A product of operands of rank >= 2 in their common dtype.
Value product(const ValueArg& x, const ValueArg& y) {
  return kind_of_value(x) == Kind::floating ? AD::float_matmul(x, y)
                                            : Value{Dispatch::int_matmul(x->inner, y->inner)};
}

bool is_quantized(const ValueArg& x) { return kind_of_value(x) == Kind::quantized; }

Tensor dequantized(const ValueArg& x, DType dtype) {
  return wrap(AD::q_dequantize(x->inner, dtype));
}

// Both quantized; b [k, m] or, transposed, [m, k].
Tensor quantized_product(const char* op, const ValueArg& a, const ValueArg& b, bool transposed) {
  const Shape& xs = shape_of(a);
  const Shape& ys = shape_of(b);
  if (xs.rank() != 2 || ys.rank() != 2 || xs[1] != ys[transposed ? 1 : 0]) {
    throw_product(op, xs, ys,
                  transposed ? "two quantized matrices, [n, in] and [out, in]"
                             : "two quantized matrices, [n, k] and [k, m]");
  }
  return wrap(AD::q_matmul(a->inner, b->inner, transposed, DType::f32));
}

}  // namespace

Tensor matmul(TensorArg x, TensorArg y) {
  KILN_AUTOCAST(lower, matmul, x, y);
  if (has_complex(x, y)) [[unlikely]]
    return complex_ops::matmul(x, y);
  const ValueArg a = arg_of("matmul", x);
  const ValueArg b = arg_of("matmul", y);
  check_same_device("matmul", a, b);
  if (is_quantized(a) && is_quantized(b)) return quantized_product("matmul", a, b, false);
  if (is_quantized(a) && kind_of_value(b) == Kind::floating) {
    return matmul(dequantized(a, dtype_of_value(b)), y);
  }
  if (is_quantized(b) && kind_of_value(a) == Kind::floating) {
    return matmul(x, dequantized(b, dtype_of_value(a)));
  }
  const Shape xs = shape_of(a);
  const Shape ys = shape_of(b);
  if (xs.rank() == 0 || ys.rank() == 0) {
    throw_product("matmul", xs, ys, "at least 1 dim each; use * for a number");
  }
  const Kind kind = kind_of_value(a);
  if (dtype_of_value(a) != dtype_of_value(b) || (kind != Kind::floating && kind != Kind::integer)) {
    throw_error<DTypeError>(
        "matmul: expected two floating point or integer tensors of one dtype; "
        "got ",
        dtype_of_value(a), " and ", dtype_of_value(b));
  }
  const int64_t inner = ys.rank() == 1 ? ys[0] : ys[ys.rank() - 2];
  if (xs.back() != inner) {
    throw_product("matmul", xs, ys,
                  "the last size of the first to equal the second to last of "
                  "the second ([.., n, k] x [.., k, m])");
  }
  if (xs.rank() >= 2 && ys.rank() >= 2) {
    if (xs.rank() > 2 && ys.rank() == 2 && kind_of_value(a) == Kind::floating) {
      // One product of all rows.
      Shape out = xs;
      out.back() = ys[1];
      checked_numel("matmul", out);
      const Value flat = AD::float_reshape(
          a,
          Shape{xs.back() == 0 ? out.numel() / std::max<int64_t>(1, ys[1]) : xs.numel() / xs.back(),
                xs.back()});
      return wrap(AD::float_reshape(AD::float_matmul(flat, b), out));
    }
    Shape x_batch;
    Shape y_batch;
    for (int i = 0; i + 2 < xs.rank(); ++i) x_batch.push_back(xs[i]);
    for (int i = 0; i + 2 < ys.rank(); ++i) y_batch.push_back(ys[i]);
    Shape out = x_batch == y_batch ? x_batch : broadcast_shapes("matmul", x_batch, y_batch);
    out.push_back(xs[xs.rank() - 2]);
    out.push_back(ys.back());
    checked_numel("matmul", out);
    return wrap(product(a, b));
  }
  // A vector becomes a row (on the left) or a column (on the right), and that dim goes again.
  const Value left = xs.rank() == 1 ? reshaped(a, Shape{1, xs[0]}) : Value(a.get());
  const Value right = ys.rank() == 1 ? reshaped(b, Shape{ys[0], 1}) : Value(b.get());
  const Value out = product(left, right);
  Shape to = shape_of(out);
  if (ys.rank() == 1) to.erase(to.rank() - 1);
  if (xs.rank() == 1) to.erase(ys.rank() == 1 ? to.rank() - 1 : to.rank() - 2);
  return wrap(reshaped(out, to));
}

Tensor Tensor::matmul(const Tensor& other) const { return kiln::matmul(*this, other); }

Tensor Tensor::mm(const Tensor& other) const {
  const Shape& x = impl_of("mm", *this).shape();
  const Shape& y = impl_of("mm", other).shape();
  if (x.rank() != 2 || y.rank() != 2) {
    throw_product("mm", x, y, "two matrices; try matmul");
  }
  return kiln::matmul(*this, other);
}

Tensor Tensor::bmm(const Tensor& other) const {
  const Shape& x = impl_of("bmm", *this).shape();
  const Shape& y = impl_of("bmm", other).shape();
  if (x.rank() != 3 || y.rank() != 3 || x[0] != y[0]) {
    throw_product("bmm", x, y, "[b, n, k] and [b, k, m]; try matmul");
  }
  return kiln::matmul(*this, other);
}

Tensor Tensor::dot(const Tensor& other) const {
  const Shape& x = impl_of("dot", *this).shape();
  const Shape& y = impl_of("dot", other).shape();
  if (x.rank() != 1 || y.rank() != 1) {
    throw_product("dot", x, y, "two vectors; try matmul");
  }
  const amp::detail::NoCasting as_given;
  return kiln::matmul(*this, other);
}

namespace {

// Checks the operands of a linear layer that are floating point, or whose weight is quantized, and
// returns the bias, or null.
const Value* check_linear(const ValueArg& input, const Value& w, const Tensor& bias) {
  check_same_device("linear", input, w);
  const Shape& xs = shape_of(input);
  const Shape& ws = shape_of(w);
  if (ws.rank() != 2 || xs.rank() == 0 || xs.back() != ws[1]) {
    throw_error<ShapeError>("linear: the input does not fit the weight; got input ", xs,
                            " and weight ", ws, "; expected input [.., ",
                            ws.rank() == 2 ? ws[1] : -1, "] and weight [out, in]");
  }
  const bool quantized = kind_of_value(w) == Kind::quantized;
  if (quantized && is_quantized(input)) return nullptr;
  const DType dtype = dtype_of_value(input);
  if (kind_of_value(input) != Kind::floating || (!quantized && dtype != dtype_of_value(w))) {
    throw_error<DTypeError>("linear: input and weight must have one floating point dtype; got ",
                            dtype_of_value(input), " and ", dtype_of_value(w));
  }
  const Value* b = nullptr;
  if (bias.defined()) {
    b = &value_of("linear", bias);
    check_same_device("linear", input, *b);
    if (!(shape_of(*b) == Shape{ws[0]}) || dtype_of_value(*b) != dtype) {
      throw_error<ShapeError>("linear: the bias does not fit the weight; got bias ", shape_of(*b),
                              " ", dtype_of_value(*b), " and weight ", ws, "; expected [", ws[0],
                              "] ", dtype);
    }
  }
  return b;
}

void check_residual(const Tensor& residual, const ValueArg& input, const Shape& weight) {
  const Value& r = value_of("linear", residual);
  check_same_device("linear", input, r);
  Shape shape = shape_of(input);
  shape.back() = weight[0];
  if (!(shape_of(r) == shape)) {
    throw_error<ShapeError>("linear: the residual does not fit the result; got ", shape_of(r),
                            "; expected ", shape);
  }
  if (dtype_of_value(r) != dtype_of_value(input)) {
    throw_error<DTypeError>("linear: the residual must have the input's dtype; got ",
                            dtype_of_value(r), " and ", dtype_of_value(input));
  }
}

}  // namespace

namespace functional {

Tensor activate(TensorArg x, Activation activation) {
  switch (activation) {
    case Activation::none:
      break;
    case Activation::relu:
      return relu(std::move(x));
    case Activation::gelu:
      return gelu(std::move(x));
    case Activation::gelu_tanh:
      return gelu(std::move(x), "tanh");
    case Activation::silu:
      return silu(std::move(x));
    case Activation::tanh:
      return tanh(std::move(x));
    case Activation::sigmoid:
      return sigmoid(std::move(x));
    case Activation::relu6:
      return relu6(x.get());
    case Activation::hardswish:
      return hardswish(x.get());
    case Activation::hardsigmoid:
      return hardsigmoid(x.get());
  }
  return Tensor(x);
}

Tensor linear(TensorArg x, const Tensor& weight, const Tensor& bias) {
  KILN_AUTOCAST(lower, linear, x, weight, bias);
  if (has_complex(x, weight)) [[unlikely]] {
    if (weight.dim() == 1 && !bias.defined()) return kiln::matmul(x, weight);
    const Tensor out = kiln::matmul(x, weight.t());
    return bias.defined() ? out + bias : out;
  }
  const ValueArg input = arg_of("linear", x);
  const Value& w = value_of("linear", weight);
  if (shape_of(w).rank() == 1 && !bias.defined()) return kiln::matmul(x, weight);
  const Value* b = check_linear(input, w, bias);
  if (kind_of_value(w) == Kind::quantized) [[unlikely]] {
    if (!is_quantized(input)) return wrap(AD::float_linear_quantized(input, w.inner, b));
    const Tensor out = quantized_product("linear", input, w, true);
    return bias.defined() ? out + bias : out;
  }
  return wrap(AD::float_linear(input, w, b));
}

Tensor linear(TensorArg x, const Tensor& weight, const Tensor& bias, const LinearOptions& options) {
  KILN_AUTOCAST(
      lower, linear, x, weight, bias,
      amp::detail::cast_member(options, &LinearOptions::residual, amp::detail::lower_dtype()));
  const Tensor& residual = options.residual;
  if (has_complex(x, weight) || kind_of_value(value_of("linear", weight)) == Kind::quantized)
      [[unlikely]] {
    const Tensor out = activate(linear(std::move(x), weight, bias), options.activation);
    return residual.defined() ? out + residual : out;
  }
  const ValueArg input = arg_of("linear", x);
  const Value& w = value_of("linear", weight);
  const Value* b = check_linear(input, w, bias);
  const Value* r = nullptr;
  if (residual.defined()) {
    check_residual(residual, input, shape_of(w));
    r = &value_of("linear", residual);
  }
  return wrap(AD::float_linear_activation(input, w, b, r, options.activation));
}

}  // namespace functional
}  // namespace kiln
