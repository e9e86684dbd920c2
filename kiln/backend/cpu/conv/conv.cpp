// The convolution ops: operands made ready, then conv_forward.cpp, conv_input_grad.cpp and
// conv_weight_grad.cpp.
#include "kiln/backend/cpu/conv/conv.h"

#include "kiln/backend/activated.h"
#include "kiln/backend/cpu/conv/conv_words.h"
#include "kiln/backend/cpu/cpu.h"
#include "kiln/backend/cpu/operand.h"

namespace kiln {

namespace cpu {

ConvSizes::ConvSizes(const Shape& x, const Shape& weight, const ConvOptions& o)
    : batch(x[0]),
      groups(o.groups),
      in(weight[1]),
      out(weight[0] / o.groups),
      height(x[2]),
      width(x[3]),
      out_height(conv_output_size(x[2], weight[2], o.stride[0], o.padding[0], o.dilation[0])),
      out_width(conv_output_size(x[3], weight[3], o.stride[1], o.padding[1], o.dilation[1])),
      geometry{height, width, out_width, {weight[2], weight[3]}, o.stride, o.padding, o.dilation} {}

ConvSizes::ConvSizes(const Shape& x, const Shape& weight, const Conv3dOptions& o)
    : ConvSizes(Shape{x[0], x[1], x[3], x[4]},
                Shape{weight[0], weight[1] * weight[2], weight[3], weight[4]}, o.planes()) {
  depths = {
      x[2],         conv_output_size(x[2], weight[2], o.stride[0], o.padding[0], o.dilation[0]),
      weight[2],    o.stride[0],
      o.padding[0], o.dilation[0]};
  batch *= depths.out;
}

}  // namespace cpu

namespace {

HostHandle convolution_of_words(const cpu::ConvSizes& sizes, const HostHandle& x,
                                const HostHandle& weight, const HostHandle* bias,
                                const HostHandle* residual, Activation activation) {
  const HostHandle in = cpu::contiguous(x);
  const HostHandle w = cpu::contiguous(weight);
  const cpu::OptionalOperand b(bias, cpu::widened);
  const cpu::OptionalOperand added(residual, cpu::contiguous);
  HostHandle out = host::empty(Shape{sizes.batch, w->shape()[0], sizes.out_height, sizes.out_width},
                               DType::bf16, in->device());
  const cpu::ActivationKernel last = cpu::activation_kernel(activation, DType::f32);
  const cpu::TileActivation<float> in_tile = last.in_tile<float>();
  cpu::conv_forward_of_words(sizes, in->data_as<const bfloat16>(), w->data_as<const bfloat16>(),
                             w->storage().get(), b.data<float>(), added.data<bfloat16>(),
                             last.fits_tiles ? &in_tile : nullptr, out->data_as<bfloat16>());
  return last.fits_tiles ? out : activated<CpuOps>(std::move(out), activation);
}

HostHandle input_grad_of_words(const cpu::ConvSizes& sizes, const HostHandle& weight,
                               const HostHandle& g, const Shape& x_shape) {
  const HostHandle w = cpu::contiguous(weight);
  const HostHandle grad = cpu::contiguous(g);
  HostHandle out = host::empty(x_shape, DType::bf16, grad->device());
  cpu::conv_input_grad_of_words(sizes, w->data_as<const bfloat16>(),
                                grad->data_as<const bfloat16>(), out->data_as<bfloat16>());
  return out;
}

}  // namespace

HostHandle CpuOps::float_conv2d(Arg<HostHandle> x, Arg<HostHandle> weight, const HostHandle* bias,
                                const ConvOptions& options) {
  return float_conv2d_activation(x, weight, bias, nullptr, Activation::none, options);
}

HostHandle CpuOps::float_conv2d_activation(Arg<HostHandle> x, Arg<HostHandle> weight,
                                           const HostHandle* bias, const HostHandle* residual,
                                           Activation activation, const ConvOptions& options) {
  const DType dtype = x.get()->dtype();
  if (cpu::is_half(dtype)) {
    const cpu::ConvSizes sizes(x.get()->shape(), weight.get()->shape(), options);
    if (dtype == DType::bf16 && cpu::convolves_words(sizes)) {
      return convolution_of_words(sizes, x.get(), weight.get(), bias, residual, activation);
    }
    const cpu::OptionalOperand wide(bias, cpu::widened);
    HostHandle out = cpu::narrowed(
        float_conv2d(cpu::widened(x), cpu::widened(weight), wide.get(), options), dtype);
    if (residual != nullptr) out = float_add(std::move(out), *residual);
    return activated<CpuOps>(std::move(out), activation);  // rounded between the steps
  }
  const HostHandle in = cpu::contiguous(x.get());
  const HostHandle w = cpu::contiguous(weight.get());
  const cpu::OptionalOperand b(bias, cpu::contiguous);
  const cpu::OptionalOperand added(residual, cpu::contiguous);
  const cpu::ConvSizes sizes(in->shape(), w->shape(), options);
  HostHandle out = host::empty(Shape{sizes.batch, w->shape()[0], sizes.out_height, sizes.out_width},
                               dtype, in->device());
  cpu::visit_real(dtype, [&]<class T>() {
    T* const y = out->data_as<T>();
    const cpu::Finish<T> finish(cpu::activation_kernel(activation, dtype), added.data<T>(), y);
    cpu::conv_forward<T>(sizes, in->data_as<const T>(), {w->data_as<const T>(), w->storage().get()},
                         b.data<T>(), finish, y);
  });
  return out;
}

HostHandle CpuOps::float_conv2d_input_grad(Arg<HostHandle> weight, Arg<HostHandle> g,
                                           const Shape& x_shape, const ConvOptions& options) {
  return float_conv_transpose2d(g, weight, nullptr, Activation::none, x_shape, options);
}

HostHandle CpuOps::float_conv_transpose2d(Arg<HostHandle> g, Arg<HostHandle> weight,
                                          const HostHandle* bias, Activation activation,
                                          const Shape& x_shape, const ConvOptions& options) {
  const DType dtype = g.get()->dtype();
  if (cpu::is_half(dtype)) {
    const cpu::ConvSizes sizes(x_shape, weight.get()->shape(), options);
    HostHandle out =
        dtype == DType::bf16 && cpu::has_input_grad_of_words(sizes)
            ? input_grad_of_words(sizes, weight.get(), g.get(), x_shape)
            : cpu::narrowed(float_conv_transpose2d(cpu::widened(g), cpu::widened(weight), nullptr,
                                                   Activation::none, x_shape, options),
                            dtype);  // rounded between the steps
    if (bias != nullptr) {
      out = float_add(std::move(out), float_reshape(*bias, Shape{1, x_shape[1], 1, 1}));
    }
    return activated<CpuOps>(std::move(out), activation);
  }
  const HostHandle w = cpu::contiguous(weight.get());
  const HostHandle grad = cpu::contiguous(g.get());
  const cpu::ConvSizes sizes(x_shape, w->shape(), options);
  const cpu::OptionalOperand b(bias, cpu::contiguous);
  HostHandle out = host::empty(x_shape, dtype, grad->device());
  cpu::visit_real(dtype, [&]<class T>() {
    const cpu::Finish<T> finish(cpu::activation_kernel(activation, dtype), nullptr,
                                out->data_as<T>());
    cpu::conv_input_grad<T>(sizes, w->data_as<const T>(), grad->data_as<const T>(), b.data<T>(),
                            finish, out->data_as<T>());
  });
  return out;
}

HostHandle CpuOps::float_conv2d_weight_grad(Arg<HostHandle> x, Arg<HostHandle> g,
                                            const Shape& weight_shape, const ConvOptions& options) {
  const DType dtype = g.get()->dtype();
  if (cpu::is_half(dtype)) {
    const cpu::ConvSizes sizes(x.get()->shape(), weight_shape, options);
    if (dtype == DType::bf16 && cpu::has_weight_grad_of_words(sizes)) {
      const HostHandle in = cpu::contiguous(x.get());
      const HostHandle grad = cpu::contiguous(g.get());
      HostHandle out = host::empty(weight_shape, DType::f32, grad->device());
      cpu::conv_weight_grad_of_words(sizes, in->data_as<const bfloat16>(),
                                     grad->data_as<const bfloat16>(), out->data_as<float>());
      return cpu::narrowed(std::move(out), dtype);
    }
    return cpu::narrowed(
        float_conv2d_weight_grad(cpu::widened(x), cpu::widened(g), weight_shape, options), dtype);
  }
  const HostHandle in = cpu::contiguous(x.get());
  const HostHandle grad = cpu::contiguous(g.get());
  const cpu::ConvSizes sizes(in->shape(), weight_shape, options);
  HostHandle out = host::empty(weight_shape, dtype, grad->device());
  cpu::visit_real(dtype, [&]<class T>() {
    cpu::conv_weight_grad<T>(sizes, in->data_as<const T>(), grad->data_as<const T>(),
                             out->data_as<T>());
  });
  return out;
}

}  // namespace kiln
