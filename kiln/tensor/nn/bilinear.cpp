#include "kiln/tensor/nn/bilinear.h"

#include "kiln/tensor/complex/complex_impl.h"
#include "kiln/tensor/nn/functional_support.h"

namespace kiln::functional {

using namespace detail;

Tensor bilinear(const Tensor& input1, const Tensor& input2, const Tensor& weight,
                const Tensor& bias) {
  constexpr const char* op = "bilinear";
  const DType dtype = impl_of(op, input1).dtype();
  const bool complex = has_complex(input1) && impl_of(op, input2).dtype() == dtype &&
                       impl_of(op, weight).dtype() == dtype &&
                       (!bias.defined() || bias.dtype() == dtype);
  if (!complex) {
    require_alike(op, input1, input2, "input2");
    require_alike(op, input1, weight, "weight");
  }
  const Shape s1 = input1.shape(), s2 = input2.shape(), w = weight.shape();
  bool fits = w.rank() == 3 && s1.rank() == s2.rank() && s1.rank() > 0 && s1.back() == w[1] &&
              s2.back() == w[2];
  for (int i = 0; fits && i + 1 < s1.rank(); ++i) fits = s1[i] == s2[i];
  if (!fits) {
    throw_error<ShapeError>(op, ": the operands do not fit; got ", s1, ", ", s2, " and weight ", w,
                            "; expected [.., in1], [.., in2] and [out, in1, in2]");
  }
  if (!complex) {
    require_param(op, input1, bias, "bias", Shape{w[0]});
  } else if (bias.defined() && !(bias.shape() == Shape{w[0]})) {
    throw_error<ShapeError>(op, ": the bias has the wrong shape; got ", bias.shape(), "; expected ",
                            Shape{w[0]});
  }
  const int64_t rows = s1.back() == 0 ? 0 : s1.numel() / s1.back();
  const Tensor x1 = input1.reshape({rows, w[1]}), x2 = input2.reshape({rows, w[2], 1});
  // [rows, out, in2], and then each row's product with its x2.
  const Tensor half = x1.mm(weight.permute({1, 0, 2}).reshape({w[1], w[0] * w[2]}));
  Tensor y = half.reshape({rows, w[0], w[2]}).bmm(x2);
  Shape out = s1;
  out.back() = w[0];
  y = y.reshape(out);
  return bias.defined() ? y + bias : y;
}

}  // namespace kiln::functional
