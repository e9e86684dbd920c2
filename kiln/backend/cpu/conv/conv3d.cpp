// Convolution of volumes, f32 and f64, without a copy of each window: Note [Volumes].
#include <algorithm>

#include "kiln/backend/cpu/conv/conv.h"
#include "kiln/backend/cpu/conv/depthwise.h"
#include "kiln/backend/cpu/conv/winograd.h"
#include "kiln/backend/cpu/cpu.h"
#include "kiln/backend/cpu/operand.h"
#include "kiln/backend/cpu/scratch.h"
#include "kiln/core/winograd_setting.h"

namespace kiln {
namespace {

using Composed = BackendDefaults<Cpu>;

// Whether there are kernels for it. Those of one tap are convolutions of larger planes.
bool has_kernel(DType dtype, const Shape& weight) {
  return !cpu::is_half(dtype) && weight.numel() != weight[0] * weight[1];
}

bool is_depthwise(const Shape& weight, const Conv3dOptions& options) {
  return weight[1] == 1 && options.groups > 1;
}

// With strides of 1 and one channel of results for each of x, the gradient of x is such a
// convolution too, of g with the window turned around. Its options; false where it is not.
bool turns_around(const Shape& weight, const Conv3dOptions& options, Conv3dOptions* turned) {
  *turned = options;
  bool fits = options.stride == IntTriple{1, 1, 1} && weight[0] == options.groups;
  for (int d = 0; d < 3; ++d) {
    const auto i = static_cast<size_t>(d);
    turned->padding[i] = options.dilation[i] * (weight[2 + d] - 1) - options.padding[i];
    fits = fits && turned->padding[i] >= 0;
  }
  return fits;
}

// Whether fewer products are worth the copies.
bool composed_pays(DType dtype, const cpu::ConvSizes& sizes) {
  return dtype == DType::f32 && sizes.batch > 0 && winograd_enabled() && cpu::winograd_pays(sizes);
}

// Convolves g with the window turned around.
HostHandle depthwise_input_grad(const HostHandle& weight, const HostHandle& g, const Shape& x_shape,
                                const Conv3dOptions& turned) {
  const Shape& ws = weight->shape();
  const cpu::ConvSizes sizes(g->shape(), ws, turned);
  HostHandle out = host::empty(x_shape, g->dtype(), g->device());
  const int64_t taps = ws[2] * ws[3] * ws[4];
  cpu::visit_real(g->dtype(), [&]<class T>() {
    const cpu::Scratch<T> window(ws.numel());
    const T* const w = weight->data_as<const T>();
    for (int64_t c = 0; c < ws[0]; ++c) {
      std::reverse_copy(w + c * taps, w + (c + 1) * taps, window.get() + c * taps);
    }
    cpu::depthwise_volume_forward<T>(sizes, g->data_as<const T>(), window.get(),
                                     static_cast<const T*>(nullptr), out->data_as<T>());
  });
  return out;
}

}  // namespace

HostHandle CpuOps::float_conv3d(Arg<HostHandle> x, Arg<HostHandle> weight, const HostHandle* bias,
                                const Conv3dOptions& options) {
  const DType dtype = x.get()->dtype();
  const Shape& ws = weight.get()->shape();
  const cpu::ConvSizes sizes(x.get()->shape(), ws, options);
  const bool depthwise = is_depthwise(ws, options);
  if (!has_kernel(dtype, ws) || (!depthwise && composed_pays(dtype, sizes))) {
    return Composed::float_conv3d(x, weight, bias, options);
  }
  const HostHandle in = cpu::contiguous(x.get());
  const HostHandle w = cpu::contiguous(weight.get());
  const cpu::OptionalOperand b(bias, cpu::contiguous);
  HostHandle out =
      host::empty(Shape{in->shape()[0], ws[0], sizes.depths.out, sizes.out_height, sizes.out_width},
                  dtype, in->device());
  if (out->numel() == 0) return out;
  cpu::visit_real(dtype, [&]<class T>() {
    if (depthwise) {
      return cpu::depthwise_volume_forward<T>(sizes, in->data_as<const T>(), w->data_as<const T>(),
                                              b.data<T>(), out->data_as<T>());
    }
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
  Conv3dOptions turned;
  if (has_kernel(dtype, ws) && is_depthwise(ws, options) && g.get()->numel() > 0 &&
      !x_shape.contains(0) && turns_around(ws, options, &turned)) {
    return depthwise_input_grad(cpu::contiguous(weight.get()), cpu::contiguous(g.get()), x_shape,
                                turned);
  }
  // There is a frame for each depth of x here, not of g.
  const bool is_deep = 8 * sizes.depths.size > 9 * sizes.depths.out;
  if (!has_kernel(dtype, ws) || is_depthwise(ws, options) || options.stride != IntTriple{1, 1, 1} ||
      is_deep || g.get()->numel() == 0 || x_shape.contains(0) || composed_pays(dtype, sizes)) {
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
  const bool depthwise = is_depthwise(weight_shape, options);
  if (!has_kernel(dtype, weight_shape) || (depthwise && g.get()->numel() == 0)) {
    return Composed::float_conv3d_weight_grad(x, g, weight_shape, options);
  }
  const HostHandle in = cpu::contiguous(x.get());
  const HostHandle grad = cpu::contiguous(g.get());
  const cpu::ConvSizes sizes(in->shape(), weight_shape, options);
  HostHandle out = host::empty(weight_shape, dtype, grad->device());
  cpu::visit_real(dtype, [&]<class T>() {
    if (depthwise) {
      return cpu::depthwise_volume_weight_grad<T>(sizes, in->data_as<const T>(),
                                                  grad->data_as<const T>(), out->data_as<T>());
    }
    cpu::conv_weight_grad<T>(sizes, in->data_as<const T>(), grad->data_as<const T>(),
                             out->data_as<T>());
  });
  return out;
}

}  // namespace kiln
