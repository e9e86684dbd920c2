// Ops as free functions. An operand given as an rvalue (a temporary, or std::move) may lend its
// memory to the result.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "kiln/backend/options.h"
#include "kiln/core/choice.h"
#include "kiln/tensor/tensor.h"

namespace kiln {

Tensor add(TensorArg x, TensorArg y);
Tensor add(TensorArg x, Scalar y);
Tensor sub(TensorArg x, TensorArg y);
Tensor sub(TensorArg x, Scalar y);
Tensor sub(Scalar x, TensorArg y);
Tensor mul(TensorArg x, TensorArg y);
Tensor mul(TensorArg x, Scalar y);
Tensor div(TensorArg x, TensorArg y);
Tensor div(TensorArg x, Scalar y);
Tensor div(Scalar x, TensorArg y);
Tensor remainder(TensorArg x, TensorArg y);
Tensor remainder(TensorArg x, Scalar y);
Tensor floor_divide(TensorArg x, TensorArg y);
Tensor floor_divide(TensorArg x, Scalar y);
Tensor pow(TensorArg x, TensorArg y);
Tensor pow(TensorArg x, Scalar y);
Tensor pow(Scalar x, TensorArg y);
Tensor atan2(TensorArg y, TensorArg x);
Tensor maximum(TensorArg x, TensorArg y);
Tensor minimum(TensorArg x, TensorArg y);
Tensor clamp(TensorArg x, std::optional<Scalar> min, std::optional<Scalar> max = {});

#define KILN_UNARY(name, promotes, doc) Tensor name(TensorArg x);
#include "kiln/backend/functions.def"
Tensor gelu(TensorArg x, const std::string& approximate = "none");

inline Tensor operator+(TensorArg x, TensorArg y) { return add(x, y); }
inline Tensor operator+(TensorArg x, Scalar y) { return add(x, y); }
inline Tensor operator+(Scalar x, TensorArg y) { return add(y, x); }
inline Tensor operator-(TensorArg x, TensorArg y) { return sub(x, y); }
inline Tensor operator-(TensorArg x, Scalar y) { return sub(x, y); }
inline Tensor operator-(Scalar x, TensorArg y) { return sub(x, y); }
inline Tensor operator*(TensorArg x, TensorArg y) { return mul(x, y); }
inline Tensor operator*(TensorArg x, Scalar y) { return mul(x, y); }
inline Tensor operator*(Scalar x, TensorArg y) { return mul(y, x); }
inline Tensor operator/(TensorArg x, TensorArg y) { return div(x, y); }
inline Tensor operator/(TensorArg x, Scalar y) { return div(x, y); }
inline Tensor operator/(Scalar x, TensorArg y) { return div(x, y); }
inline Tensor operator%(TensorArg x, TensorArg y) { return remainder(x, y); }
inline Tensor operator%(TensorArg x, Scalar y) { return remainder(x, y); }
inline Tensor operator-(TensorArg x) { return neg(x); }

inline Tensor operator==(const Tensor& x, const Tensor& y) { return x.eq(y); }
inline Tensor operator==(const Tensor& x, Scalar y) { return x.eq(y); }
inline Tensor operator!=(const Tensor& x, const Tensor& y) { return x.ne(y); }
inline Tensor operator!=(const Tensor& x, Scalar y) { return x.ne(y); }
inline Tensor operator>(const Tensor& x, const Tensor& y) { return x.gt(y); }
inline Tensor operator>(const Tensor& x, Scalar y) { return x.gt(y); }
inline Tensor operator>=(const Tensor& x, const Tensor& y) { return x.ge(y); }
inline Tensor operator>=(const Tensor& x, Scalar y) { return x.ge(y); }
inline Tensor operator<(const Tensor& x, const Tensor& y) { return x.lt(y); }
inline Tensor operator<(const Tensor& x, Scalar y) { return x.lt(y); }
inline Tensor operator<=(const Tensor& x, const Tensor& y) { return x.le(y); }
inline Tensor operator<=(const Tensor& x, Scalar y) { return x.le(y); }
inline Tensor operator!(const Tensor& x) { return x.logical_not(); }
inline Tensor operator&(const Tensor& x, const Tensor& y) { return x.bitwise_and(y); }
inline Tensor operator|(const Tensor& x, const Tensor& y) { return x.bitwise_or(y); }
inline Tensor operator^(const Tensor& x, const Tensor& y) { return x.bitwise_xor(y); }

// x where the condition holds, else y; the three broadcast.
Tensor where(const Tensor& condition, const Tensor& x, const Tensor& y);
Tensor where(const Tensor& condition, const Tensor& x, Scalar y);
Tensor where(const Tensor& condition, Scalar x, const Tensor& y);

Tensor cat(std::span<const Tensor> tensors, int64_t dim = 0);
inline Tensor cat(std::initializer_list<Tensor> tensors, int64_t dim = 0) {
  return cat(std::span<const Tensor>(tensors.begin(), tensors.size()), dim);
}
Tensor stack(std::span<const Tensor> tensors, int64_t dim = 0);
inline Tensor stack(std::initializer_list<Tensor> tensors, int64_t dim = 0) {
  return stack(std::span<const Tensor>(tensors.begin(), tensors.size()), dim);
}

// The product of two quantized matrices is computed on their integers and given in f32; of a
// quantized and a floating point one, in the latter's dtype, with gradients to it.
Tensor matmul(TensorArg x, TensorArg y);
Tensor softmax(TensorArg x, int64_t dim);
Tensor log_softmax(TensorArg x, int64_t dim);

// Integers of 8 or 4 bits with scales; see QuantScheme. `dequantize` gives f32 unless told
// otherwise. quantize_dynamic takes every scale from x itself, by default one for each row.
Tensor quantize(const Tensor& x, const QuantScheme& scheme = {});
Tensor quantize_dynamic(const Tensor& x,
                        const QuantScheme& scheme = {.level = QuantLevel::channel});
Tensor dequantize(const Tensor& x, DType dtype = DType::f32);
// What a quantized tensor consists of (QuantLayout has shapes and dtypes), and one made of such
// parts, whose memory it shares. Throws DTypeError, ShapeError, ValueError for a scheme that makes
// no sense.
QuantScheme quant_scheme(const Tensor& x);
Tensor quantized_values(const Tensor& x);
Tensor quantized_scales(const Tensor& x);
Tensor make_quantized(const Tensor& values, const Tensor& scales, const QuantScheme& scheme,
                      const Shape& shape);

namespace functional {

// y = x W^T + b: x [.., in], weight [out, in], bias [out] or undefined -> [.., out]. The weight may
// be quantized; gradients then flow to x and the bias. So may both, as in matmul, x of two dims.
Tensor linear(TensorArg x, const Tensor& weight, const Tensor& bias = {});

Tensor activate(TensorArg x, Activation activation);

// activate(linear(x, weight, bias)) + residual, without a pass over memory of its own for either
// (of the activations that need what they were given for their gradient, gelu, gelu_tanh and silu,
// when nothing is recorded). residual: the result's shape and dtype, or undefined. The same numbers
// as of the ops one after another.
struct LinearOptions {
  Activation activation = Activation::none;
  Tensor residual = {};
};
Tensor linear(TensorArg x, const Tensor& weight, const Tensor& bias, const LinearOptions& options);

// Normalizes over every dim but 1. With `training`, by the batch's own statistics, and the running
// ones (when defined) are moved towards them by `momentum`; otherwise by the running ones.
Tensor batch_norm(TensorArg x, const Tensor& running_mean, const Tensor& running_var,
                  const Tensor& weight = {}, const Tensor& bias = {}, bool training = false,
                  double momentum = 0.1, double eps = 1e-5);
// Normalizes over the last dims, whose sizes are `normalized_shape`.
Tensor layer_norm(TensorArg x, const Shape& normalized_shape, const Tensor& weight = {},
                  const Tensor& bias = {}, double eps = 1e-5);

// With `training`, zeroes each element with probability p and scales the others by 1 / (1 - p).
Tensor dropout(TensorArg x, double p = 0.5, bool training = true);

Tensor threshold(const Tensor& x, double threshold, double value);
// weight [1], or [C] for dim 1 of x.
Tensor prelu(const Tensor& x, const Tensor& weight);

// What becomes of the losses of a batch: Reduction::sum, or "sum".
class Reduction {
  KILN_CHOICE(Reduction, none, mean, sum)
};

struct CrossEntropyLossOptions {
  Tensor weight = {};           // [C] or undefined
  int64_t ignore_index = -100;  // class indices only
  Reduction reduction = Reduction::mean;
  double label_smoothing = 0.0;
};
// logits [N, C] or [C] or [N, C, d1, ..]; targets are class indices ([N], [], [N, d1, ..]) or
// probabilities in the shape of the logits.
Tensor cross_entropy(TensorArg logits, const Tensor& target,
                     const CrossEntropyLossOptions& options = {});

}  // namespace functional
}  // namespace kiln
