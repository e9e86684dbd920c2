// Convolution of volumes, f32 and f64, without a copy of each window: Note [Volumes].
#include "kiln/backend/cpu/conv/conv.h"
#include "kiln/backend/cpu/conv/winograd.h"
#include "kiln/backend/cpu/cpu.h"
#include "kiln/backend/cpu/operand.h"
#include "kiln/core/winograd_setting.h"

namespace kiln {
namespace {

using Composed = BackendDefaults<Cpu>;

// Whether there are kernels for it. Depthwise ones are sums of planes, and those of one tap are
// convolutions of larger planes.
bool has_kernel(DType dtype, const Shape& weight, const Conv3dOptions& options) {
  const bool depthwise = weight[1] == 1 && options.groups > 1;
  return !cpu::is_half(dtype) && !depthwise && weight.numel() != weight[0] * weight[1];
}

// Whether fewer products are worth the copies.
bool composed_pays(DType dtype, const cpu::ConvSizes& sizes) {
  return dtype == DType::f32 && sizes.batch > 0 && winograd_enabled() && cpu::winograd_pays(sizes);
}

}  // namespace

HostHandle CpuOps::float_conv3d(Arg<HostHandle> x, Arg<HostHandle> weight, const HostHandle* bias,
                                const Conv3dOptions& options) {
  const DType dtype = x.get()->dtype();
  const Shape& ws = weight.get()->shape();
  const cpu::ConvSizes sizes(x.get()->shape(), ws, options);
  if (!has_kernel(dtype, ws, options) || composed_pays(dtype, sizes)) {
    return Composed::float_conv3d(x, weight, bias, options);
  }
  const HostHandle in = cpu::contiguous(x.get());
  const HostHandle w = cpu::contiguous(weight.get());
  const cpu::OptionalOperand b(bias, cpu::contiguous);
  HostHandle out =
      host::empty(Shape{in->shape()[0], ws[0], sizes.depths.out, sizes.out_height, sizes.out_width},
                  dtype, in->device());
  cpu::visit_real(dtype, [&]<class T>() {
    cpu::conv_forward<T>(sizes, in->data_as<const T>(), {w->data_as<const T>(), w->storage().get()},
                         b.data<T>(), {}, out->data_as<T>());
  });
  return out;
}

HostHandle CpuOps::float_conv3d_input_grad(Arg<HostHandle> weight, Arg<HostHandle> g,
                                           const Shape& x_shape, const Conv3dOptions& options) {
  const DType dtype = g.get()->dtype();
  const Shape& ws = weight.get()->shape();
  const cpu::ConvSizes sizes(x_shape, ws, options);
  // There is a frame for each depth of x here, not of g.
  const bool is_deep = 8 * sizes.depths.size > 9 * sizes.depths.out;
  if (!has_kernel(dtype, ws, options) || options.stride != IntTriple{1, 1, 1} || is_deep ||
      g.get()->numel() == 0 || x_shape.contains(0) || composed_pays(dtype, sizes)) {
    return Composed::float_conv3d_input_grad(weight, g, x_shape, options);
  }
  const HostHandle w = cpu::contiguous(weight.get());
  const HostHandle grad = cpu::contiguous(g.get());
  HostHandle out = host::empty(x_shape, dtype, grad->device());
  cpu::visit_real(dtype, [&]<class T>() {
    cpu::conv_input_grad<T>(sizes, w->data_as<const T>(), grad->data_as<const T>(), nullptr, {},
                            out->data_as<T>());
  });
  return out;
}

HostHandle CpuOps::float_conv3d_weight_grad(Arg<HostHandle> x, Arg<HostHandle> g,
                                            const Shape& weight_shape,
                                            const Conv3dOptions& options) {
  const DType dtype = g.get()->dtype();
  if (!has_kernel(dtype, weight_shape, options)) {
    return Composed::float_conv3d_weight_grad(x, g, weight_shape, options);
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
