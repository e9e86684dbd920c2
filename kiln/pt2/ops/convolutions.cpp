// Convolutions and transposed convolutions.
#include "kiln/pt2/ops/forms.h"
#include "kiln/tensor/nn/convolution.h"
#include "kiln/tensor/nn/folding.h"

namespace kiln::pt2 {

namespace {

Sizes sizes_of(Call& c, const char* name, int64_t otherwise) {
  const auto given = c.maybe_ints(name);
  return given && !given->empty() ? Sizes(*given) : Sizes(otherwise);
}

Tensor convolved(int dims, const Tensor& x, const Tensor& weight, const Tensor& bias,
                 const Sizes& stride, const Padding& padding, const Sizes& dilation,
                 int64_t groups) {
  switch (dims) {
    case 1:
      return functional::conv1d(x, weight, bias, stride, padding, dilation, groups);
    case 2:
      return functional::conv2d(x, weight, bias, stride, padding, dilation, groups);
    default:
      return functional::conv3d(x, weight, bias, stride, padding, dilation, groups);
  }
}
Tensor transposed(int dims, const Tensor& x, const Tensor& weight, const Tensor& bias,
                  const Sizes& stride, const Sizes& padding, const Sizes& more, int64_t groups,
                  const Sizes& dilation) {
  switch (dims) {
    case 1:
      return functional::conv_transpose1d(x, weight, bias, stride, padding, more, groups, dilation);
    case 2:
      return functional::conv_transpose2d(x, weight, bias, stride, padding, more, groups, dilation);
    default:
      return functional::conv_transpose3d(x, weight, bias, stride, padding, more, groups, dilation);
  }
}

template <int kDims>
void conv(Call& c) {
  const Padding padding = c.is_overload("padding") ? Padding(c.s("padding", "valid"))
                                                   : Padding(sizes_of(c, "padding", 0));
  c.out(convolved(kDims, c.t("input"), c.t("weight"), c.maybe("bias"), sizes_of(c, "stride", 1),
                  padding, sizes_of(c, "dilation", 1), c.i("groups", 1)));
}
template <int kDims>
void conv_transpose(Call& c) {
  c.out(transposed(kDims, c.t("input"), c.t("weight"), c.maybe("bias"), sizes_of(c, "stride", 1),
                   sizes_of(c, "padding", 0), sizes_of(c, "output_padding", 0), c.i("groups", 1),
                   sizes_of(c, "dilation", 1)));
}
// All of them in one.
void convolution(Call& c) {
  for (const char* one : {"benchmark", "deterministic", "cudnn_enabled", "allow_tf32"}) {
    c.ignore(one);
  }
  const Tensor x = c.t("input"), weight = c.t("weight"), bias = c.maybe("bias");
  const int dims = weight.dim() - 2;
  if (dims < 1 || dims > 3) c.fail(concat("a weight of ", weight.dim(), " dims"));
  const Sizes stride = sizes_of(c, "stride", 1), padding = sizes_of(c, "padding", 0);
  const Sizes dilation = sizes_of(c, "dilation", 1), more = sizes_of(c, "output_padding", 0);
  const int64_t groups = c.i("groups", 1);
  c.out(c.b("transposed", false)
            ? transposed(dims, x, weight, bias, stride, padding, more, groups, dilation)
            : convolved(dims, x, weight, bias, stride, padding, dilation, groups));
}
// x [time, batch, channels], weight [width, channels, outputs].
void conv_tbc(Call& c) {
  const Tensor y = functional::conv1d(c.x().permute({1, 2, 0}), c.t("weight").permute({2, 1, 0}),
                                      c.t("bias"), 1, c.i("pad", 0));
  c.out(y.permute({2, 0, 1}));
}
void im2col(Call& c) {
  c.out(functional::unfold(c.x(), sizes_of(c, "kernel_size", 1), sizes_of(c, "dilation", 1),
                           sizes_of(c, "padding", 0), sizes_of(c, "stride", 1)));
}
void col2im(Call& c) {
  c.out(functional::fold(c.x(), sizes_of(c, "output_size", 1), sizes_of(c, "kernel_size", 1),
                         sizes_of(c, "dilation", 1), sizes_of(c, "padding", 0),
                         sizes_of(c, "stride", 1)));
}

constexpr Operator kConvolutionsOperators[] = {
    {"conv1d", "default padding", conv<1>},
    {"conv2d", "default padding", conv<2>},
    {"conv3d", "default padding", conv<3>},
    {"conv_transpose1d", "default", conv_transpose<1>},
    {"conv_transpose2d", "input", conv_transpose<2>},
    {"conv_transpose3d", "input", conv_transpose<3>},
    {"convolution", "default", convolution},
    {"_convolution", "default deprecated", convolution},
    {"conv_tbc", "default", conv_tbc},
    {"im2col", "default", im2col},
    {"col2im", "default", col2im},
};

}  // namespace

std::span<const Operator> convolution_operators() { return kConvolutionsOperators; }

}  // namespace kiln::pt2
