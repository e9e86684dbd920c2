#include "kiln/tensor/nn/separable_conv2d.h"

#include "kiln/tensor/amp/op_lists.h"
#include "kiln/tensor/nn/functional_support.h"

namespace kiln::functional {

using namespace detail;

namespace {

constexpr const char* kOp = "separable_conv2d";

const Value* optional_value(const Tensor& x) { return x.defined() ? &value_of(kOp, x) : nullptr; }

// The channels behind a convolution of 1 x 1, if there is one, of `channels`.
int64_t checked(const Tensor& x, const PointwiseConv& conv, const char* weight, const char* bias,
                int64_t channels) {
  if (!conv.weight.defined()) {
    if (!conv.bias.defined() && conv.activation == Activation::none) return channels;
    throw_error<ValueError>(kOp, ": there is no ", weight, "; expected no ", bias,
                            " and no activation of it");
  }
  require_alike(kOp, x, conv.weight, weight);
  const Shape s = conv.weight.shape();
  if (s.rank() != 4 || s[1] != channels || s[2] != 1 || s[3] != 1) {
    throw_error<ShapeError>(kOp, ": ", weight, " does not fit; got ", s, "; expected [O, ",
                            channels, ", 1, 1]");
  }
  require_param(kOp, x, conv.bias, bias, Shape{s[0]});
  return s[0];
}

PointwiseConv cast(PointwiseConv conv, DType dtype) {
  conv.weight = amp::detail::cast_operand(conv.weight, dtype);
  conv.bias = amp::detail::cast_operand(conv.bias, dtype);
  return conv;
}

SeparableConvOptions cast(SeparableConvOptions options, DType dtype) {
  options.expand = cast(options.expand, dtype);
  options.project = cast(options.project, dtype);
  options.residual = amp::detail::cast_operand(options.residual, dtype);
  return options;
}

}  // namespace

Tensor separable_conv2d(TensorArg x, const Tensor& weight, const Tensor& bias, const Sizes& stride,
                        const Sizes& padding, const Sizes& dilation,
                        const SeparableConvOptions& options) {
  KILN_AUTOCAST(lower, separable_conv2d, x, weight, bias, stride, padding, dilation,
                cast(options, amp::detail::lower_dtype()));
  const Shape xs = impl_of(kOp, x.get()).shape();
  if (xs.rank() == 3) {
    SeparableConvOptions of_batch = options;
    if (options.residual.defined()) of_batch.residual = options.residual.unsqueeze(0);
    return separable_conv2d(x.get().unsqueeze(0), weight, bias, stride, padding, dilation, of_batch)
        .squeeze(0);
  }
  if (xs.rank() != 4) throw_wrong_rank(kOp, xs, 2);
  require_floating(kOp, x.get());
  const int64_t wide = checked(x.get(), options.expand, "expand.weight", "expand.bias", xs[1]);
  if (wide < 1) throw_error<ShapeError>(kOp, ": expected at least one channel; got input ", xs);
  require_alike(kOp, x.get(), weight, "weight");
  const Shape ws = weight.shape();
  if (ws.rank() != 4 || ws[0] != wide || ws[1] != 1) {
    throw_error<ShapeError>(kOp, ": the weight does not fit; got ", ws, "; expected [", wide,
                            ", 1, KH, KW] for ", wide, " channels");
  }
  require_param(kOp, x.get(), bias, "bias", Shape{wide});
  const int64_t channels =
      checked(x.get(), options.project, "project.weight", "project.bias", wide);
  const Triple strides = triple_of(kOp, "stride", stride, 2, 1, 1);
  const Triple sides = triple_of(kOp, "padding", padding, 2, 0, 0);
  const Triple dilations = triple_of(kOp, "dilation", dilation, 2, 1, 1);
  Shape out{xs[0], channels, 0, 0};
  for (int i = 2; i < 4; ++i) {
    const auto k = static_cast<size_t>(i - 1);
    const int64_t room = xs[i] + 2 * sides[k] - (dilations[k] * (ws[i] - 1) + 1);
    if (room < 0 || ws[i] < 1) {
      throw_error<ShapeError>(kOp, ": the kernel is larger than the padded input; got input ", xs,
                              ", weight ", ws, ", padding ", text_of(sides, 2), ", dilation ",
                              text_of(dilations, 2));
    }
    out[i] = room / strides[k] + 1;
  }
  if (options.residual.defined()) {
    if (!options.project.weight.defined()) {
      throw_error<ValueError>(kOp, ": a residual is added to project's result; got no project");
    }
    require_param(kOp, x.get(), options.residual, "residual", out);
  }
  const ConvOptions conv{
      {strides[1], strides[2]}, {sides[1], sides[2]}, {dilations[1], dilations[2]}, wide};
  return wrap(AD::float_separable_block(
      arg_of(kOp, x), optional_value(options.expand.weight), optional_value(options.expand.bias),
      options.expand.activation, value_of(kOp, weight), optional_value(bias), options.activation,
      optional_value(options.project.weight), optional_value(options.project.bias),
      optional_value(options.residual), options.project.activation, conv));
}

}  // namespace kiln::functional
