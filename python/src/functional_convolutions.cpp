// kiln.nn.functional: products, convolutions and windows as columns.
#include "functional.h"

namespace kiln::python {

namespace {

// 'same', 'valid', numbers, or a pair (before, after) for each spatial dim.
Padding padding_of(const char* op, const nb::object& padding) {
  if (PyUnicode_Check(padding.ptr())) return Padding(nb::cast<std::string>(padding));
  IntList list;
  if (try_value(padding, list)) return Padding(sizes_of(list));
  std::vector<std::pair<int64_t, int64_t>> sides;
  if (!try_value(padding, sides)) {
    throw nb::type_error(concat(op,
                                ": padding must be 'valid', 'same', an integer, integers or a "
                                "pair for each spatial dim")
                             .c_str());
  }
  Shape before, after;
  for (const auto& [first, second] : sides) {
    before.push_back(first);
    after.push_back(second);
  }
  return Padding::sides(Sizes(before), Sizes(after));
}

using Convolution = Tensor (*)(const Tensor&, const Tensor&, const Tensor&, const Sizes&,
                               const Padding&, const Sizes&, int64_t);
using Finished = Tensor (*)(const Tensor&, const Tensor&, const Tensor&, const Sizes&,
                            const Padding&, const Sizes&, int64_t, const F::ConvEpilogue&);
using Transposed = Tensor (*)(const Tensor&, const Tensor&, const Tensor&, const Sizes&,
                              const Sizes&, const Sizes&, int64_t, const Sizes&, Activation);

void def_convolution(nb::module_& m, const char* name, Convolution f, const char* doc) {
  m.def(
      name,
      [name, f](const Tensor& x, const Tensor& weight, const OptionalTensor& bias,
                const IntList& stride, const nb::object& padding, const IntList& dilation,
                int64_t groups) {
        const Padding sides = padding_of(name, padding);
        Unlocked lock(x, weight);
        return f(x, weight, bias, sizes_of(stride), sides, sizes_of(dilation), groups);
      },
      "input"_a, "weight"_a, optional_arg("bias"), "stride"_a = 1, "padding"_a = 0,
      "dilation"_a = 1, "groups"_a = 1, doc);
}

// With what may follow the convolution.
void def_finished(nb::module_& m, const char* name, Convolution f, Finished finished,
                  const char* doc) {
  m.def(
      name,
      [name, f, finished](const Tensor& x, const Tensor& weight, const OptionalTensor& bias,
                          const IntList& stride, const nb::object& padding, const IntList& dilation,
                          int64_t groups, const std::string& activation,
                          const OptionalTensor& residual) {
        const Padding sides = padding_of(name, padding);
        const F::ConvEpilogue end{activation_of(activation), residual};
        Unlocked lock(x, weight);
        if (end.activation == Activation::none && !end.residual.defined()) {
          return f(x, weight, bias, sizes_of(stride), sides, sizes_of(dilation), groups);
        }
        return finished(x, weight, bias, sizes_of(stride), sides, sizes_of(dilation), groups, end);
      },
      "input"_a, "weight"_a, optional_arg("bias"), "stride"_a = 1, "padding"_a = 0,
      "dilation"_a = 1, "groups"_a = 1, nb::kw_only(), "activation"_a = "none",
      optional_arg("residual"), doc);
}

void def_transposed(nb::module_& m, const char* name, Transposed f, const char* doc) {
  m.def(
      name,
      [f](const Tensor& x, const Tensor& weight, const OptionalTensor& bias, const IntList& stride,
          const IntList& padding, const IntList& output_padding, int64_t groups,
          const IntList& dilation, const std::string& activation) {
        const Activation end = activation_of(activation);
        Unlocked lock(x, weight);
        return f(x, weight, bias, sizes_of(stride), sizes_of(padding), sizes_of(output_padding),
                 groups, sizes_of(dilation), end);
      },
      "input"_a, "weight"_a, optional_arg("bias"), "stride"_a = 1, "padding"_a = 0,
      "output_padding"_a = 0, "groups"_a = 1, "dilation"_a = 1, nb::kw_only(),
      "activation"_a = "none", doc);
}

void def_separable(nb::module_& m) {
  m.def(
      "separable_conv2d",
      [](const Tensor& x, const Tensor& weight, const OptionalTensor& bias, const IntList& stride,
         const IntList& padding, const IntList& dilation, const std::string& activation,
         const OptionalTensor& expand_weight, const OptionalTensor& expand_bias,
         const std::string& expand_activation, const OptionalTensor& project_weight,
         const OptionalTensor& project_bias, const std::string& project_activation,
         const OptionalTensor& residual) {
        const F::SeparableConvOptions options{
            activation_of(activation),
            {expand_weight, expand_bias, activation_of(expand_activation)},
            {project_weight, project_bias, activation_of(project_activation)},
            residual};
        Unlocked lock(x, weight);
        return F::separable_conv2d(x, weight, bias, sizes_of(stride), sizes_of(padding),
                                   sizes_of(dilation), options);
      },
      "input"_a, "weight"_a, optional_arg("bias"), "stride"_a = 1, "padding"_a = 0,
      "dilation"_a = 1, nb::kw_only(), "activation"_a = "none", optional_arg("expand_weight"),
      optional_arg("expand_bias"), "expand_activation"_a = "none", optional_arg("project_weight"),
      optional_arg("project_bias"), "project_activation"_a = "none", optional_arg("residual"),
      "A depthwise convolution, [N, C, H, W] with weight [C, 1, KH, KW], between two of 1 x 1, "
      "which may both be absent: the block of a mobile network. A few rows are computed at a time, "
      "so that what lies between stays in the cache.");
}

}  // namespace

Activation activation_of(const std::string& name) {
  constexpr std::pair<const char*, Activation> kNames[] = {
      {"none", Activation::none},           {"relu", Activation::relu},
      {"gelu", Activation::gelu},           {"gelu_tanh", Activation::gelu_tanh},
      {"silu", Activation::silu},           {"tanh", Activation::tanh},
      {"sigmoid", Activation::sigmoid},     {"relu6", Activation::relu6},
      {"hardswish", Activation::hardswish}, {"hardsigmoid", Activation::hardsigmoid}};
  for (const auto& [known, activation] : kNames) {
    if (name == known) return activation;
  }
  throw_error<ValueError>("unknown activation '", name,
                          "'; expected none, relu, gelu, gelu_tanh, silu, tanh, sigmoid, relu6, "
                          "hardswish or hardsigmoid");
}

void bind_functional_convolutions(nb::module_& m) {
  m.def(
      "linear",
      [](const Tensor& x, const Tensor& weight, const OptionalTensor& bias,
         const std::string& activation, const OptionalTensor& residual) {
        const F::LinearOptions options{activation_of(activation), residual};
        Unlocked lock(x, weight);
        if (options.activation == Activation::none && !options.residual.defined()) {
          return F::linear(x, weight, bias);
        }
        return F::linear(x, weight, bias, options);
      },
      "input"_a, "weight"_a, optional_arg("bias"), nb::kw_only(), "activation"_a = "none",
      optional_arg("residual"),
      "x W^T + b: [.., in] with weight [out, in] -> [.., out]. activation (none, relu, gelu, "
      "gelu_tanh, silu, tanh, sigmoid, relu6, hardswish or hardsigmoid) is applied to it and "
      "residual, of the result's shape, "
      "added to that, while it is in the cache.");
  m.def(
      "bilinear",
      [](const Tensor& x1, const Tensor& x2, const Tensor& weight, const OptionalTensor& bias) {
        Unlocked lock(x1, x2, weight);
        return F::bilinear(x1, x2, weight, bias);
      },
      "input1"_a, "input2"_a, "weight"_a, optional_arg("bias"),
      "x1 W x2 + b: [.., in1] and [.., in2] with weight [out, in1, in2] -> [.., out].");
  def_finished(m, "conv1d", static_cast<Convolution>(&F::conv1d), static_cast<Finished>(&F::conv1d),
               "[N, C, L] with weight [O, C / groups, K]. padding: numbers, 'same', 'valid', or "
               "a pair (before, after) for each spatial dim. residual, of the result's shape, is "
               "added to it, and activation (see linear) applied to that, while it is in the "
               "cache.");
  def_finished(
      m, "conv2d",
      static_cast<Convolution>(
          [](const Tensor& x, const Tensor& w, const Tensor& b, const Sizes& stride,
             const Padding& padding, const Sizes& dilation,
             int64_t groups) { return F::conv2d(x, w, b, stride, padding, dilation, groups); }),
      static_cast<Finished>([](const Tensor& x, const Tensor& w, const Tensor& b,
                               const Sizes& stride, const Padding& padding, const Sizes& dilation,
                               int64_t groups, const F::ConvEpilogue& end) {
        return F::conv2d(x, w, b, stride, padding, dilation, groups, end);
      }),
      "[N, C, H, W] with weight [O, C / groups, KH, KW]. padding, activation, residual: see "
      "conv1d.");
  def_convolution(m, "conv3d", &F::conv3d,
                  "[N, C, D, H, W] with weight [O, C / groups, KD, KH, KW]. padding: see conv1d.");
  def_transposed(
      m, "conv_transpose1d", &F::conv_transpose1d,
      "The gradient of conv1d as a layer: weight [C, O / groups, K]. activation: see linear.");
  def_transposed(
      m, "conv_transpose2d", &F::conv_transpose2d,
      "The gradient of conv2d as a layer: weight [C, O / groups, KH, KW]. activation: see linear.");
  def_transposed(m, "conv_transpose3d", &F::conv_transpose3d,
                 "The gradient of conv3d as a layer: weight [C, O / groups, KD, KH, KW]. "
                 "activation: see linear.");
  def_separable(m);
  m.def(
      "deform_conv2d",
      [](const Tensor& x, const Tensor& offset, const Tensor& weight, const OptionalTensor& bias,
         const IntList& stride, const IntList& padding, const IntList& dilation,
         const OptionalTensor& mask) {
        Unlocked lock(x, weight);
        return F::deform_conv2d(x, offset, weight, bias, sizes_of(stride), sizes_of(padding),
                                sizes_of(dilation), mask);
      },
      "input"_a, "offset"_a, "weight"_a, optional_arg("bias"), "stride"_a = 1, "padding"_a = 0,
      "dilation"_a = 1, optional_arg("mask"),
      "A convolution whose kernel's elements are moved by offset [N, 2 G KH KW, OH, OW], as "
      "torchvision's.");
  m.def(
      "unfold",
      [](const Tensor& x, const IntList& kernel_size, const IntList& dilation,
         const IntList& padding, const IntList& stride) {
        Unlocked lock(x);
        return F::unfold(x, sizes_of(kernel_size), sizes_of(dilation), sizes_of(padding),
                         sizes_of(stride));
      },
      "input"_a, "kernel_size"_a, "dilation"_a = 1, "padding"_a = 0, "stride"_a = 1,
      "The windows of [N, C, H, W] as columns: [N, C KH KW, L].");
  m.def(
      "fold",
      [](const Tensor& x, const IntList& output_size, const IntList& kernel_size,
         const IntList& dilation, const IntList& padding, const IntList& stride) {
        Unlocked lock(x);
        return F::fold(x, sizes_of(output_size), sizes_of(kernel_size), sizes_of(dilation),
                       sizes_of(padding), sizes_of(stride));
      },
      "input"_a, "output_size"_a, "kernel_size"_a, "dilation"_a = 1, "padding"_a = 0,
      "stride"_a = 1, "The sums of columns [N, C KH KW, L] where their windows overlap.");
}

}  // namespace kiln::python
