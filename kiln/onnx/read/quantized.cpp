// Products and convolutions of integers, exact: sums of products of 8 bits fit a double.
#include "kiln/onnx/read/window.h"

namespace kiln::onnx {

namespace {

// Less its zero point, which is absent, one number, or one for each index of `dim`.
Tensor centered(Call& c, size_t x, size_t zero, int64_t dim) {
  Tensor y = c.in(x).to(DType::f64);
  if (!c.has(zero)) return y;
  Tensor z = c.in(zero).to(DType::f64);
  if (z.dim() == 1 && z.numel() > 1) {
    Shape shape = Shape::filled(static_cast<int>(y.dim()), 1);
    shape[static_cast<int>(c.axis(dim, y.dim()))] = z.numel();
    z = z.reshape(shape);
  }
  return y.sub(z);
}

// A scale of a result: one number, or one for each index of `dim`.
Tensor scale_of(Call& c, size_t i, const Tensor& y, int64_t dim) {
  Tensor s = c.in(i).to(DType::f64);
  if (s.dim() != 1 || s.numel() == 1) return s;
  Shape shape = Shape::filled(static_cast<int>(y.dim()), 1);
  shape[static_cast<int>(c.axis(dim, y.dim()))] = s.numel();
  return s.reshape(shape);
}

// y of real numbers as integers of the dtype of the zero point.
Tensor quantized(Call& c, const Tensor& y, size_t scale, size_t zero) {
  const Tensor point = c.in(zero);
  const bool is_signed = point.dtype() == DType::i8;
  if (!is_signed && point.dtype() != DType::u8) c.refuse("a zero point that is no 8-bit integer");
  return y.div(c.in(scale).to(DType::f64))
      .round()
      .add(point.to(DType::f64))
      .clamp(is_signed ? -128.0 : 0.0, is_signed ? 127.0 : 255.0)
      .to(point.dtype());
}

void matmul_integer(Call& c) {
  c.out(centered(c, 0, 2, -2).matmul(centered(c, 1, 3, -1)).to(DType::i32));
}
void conv_integer(Call& c) {
  c.out(convolve(c, centered(c, 0, 2, 1), centered(c, 1, 3, 0), {}).to(DType::i32));
}
void qlinear_matmul(Call& c) {
  const Tensor y = centered(c, 0, 2, -2).matmul(centered(c, 3, 5, -1));
  c.out(quantized(c, y.mul(scale_of(c, 1, y, -2)).mul(scale_of(c, 4, y, -1)), 6, 7));
}
// A bias has the scale of the products.
void qlinear_conv(Call& c) {
  const Tensor bias = c.has(8) ? c.in(8).to(DType::f64) : Tensor();
  const Tensor y = convolve(c, centered(c, 0, 2, 1), centered(c, 3, 5, 0), bias);
  c.out(quantized(c, y.mul(scale_of(c, 1, y, 1)).mul(scale_of(c, 4, y, 1)), 6, 7));
}

constexpr Operator kQuantizedOperators[] = {
    {"MatMulInteger", matmul_integer},
    {"ConvInteger", conv_integer},
    {"QLinearMatMul", qlinear_matmul},
    {"QLinearConv", qlinear_conv},
};

}  // namespace

std::span<const Operator> quantized_operators() { return kQuantizedOperators; }

}  // namespace kiln::onnx
