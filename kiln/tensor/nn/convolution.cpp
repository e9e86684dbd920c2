#include "kiln/tensor/nn/convolution.h"

#include "kiln/tensor/amp/op_lists.h"
#include "kiln/tensor/complex/complex_impl.h"
#include "kiln/tensor/nn/functional_support.h"

namespace kiln::functional {

using namespace detail;

namespace {

// A convolution's numbers, for three spatial dims.
struct Geometry {
  const char* op;
  int spatial;
  Triple stride, dilation, kernel;
  int64_t groups;

  Geometry(const char* name, int dims, const Sizes& strides, const Sizes& dilations, int64_t n)
      : op(name),
        spatial(dims),
        stride(triple_of(name, "stride", strides, dims, 1, 1)),
        dilation(triple_of(name, "dilation", dilations, dims, 1, 1)),
        kernel{1, 1, 1},
        groups(n) {
    if (groups < 1 || groups >= int64_t{1} << 31) {
      throw_error<ValueError>(op, ": expected groups >= 1; got ", groups);
    }
  }

  // Takes the kernel's sizes from a weight [A, B, K..].
  void see_weight(const Shape& s) {
    for (int i = 0; i < spatial; ++i) kernel[static_cast<size_t>(3 - spatial + i)] = s[2 + i];
  }
  int64_t extent(size_t i) const { return dilation[i] * (kernel[i] - 1) + 1; }
  bool is_flat() const { return spatial < 3; }
  IntPair last_two(const Triple& t) const { return {t[1], t[2]}; }
};

struct PaddingSides {
  Triple before{}, after{};
};

PaddingSides sides_of(const Geometry& g, const Padding& padding) {
  PaddingSides out;
  switch (padding.mode()) {
    case Padding::Mode::valid:
      break;
    case Padding::Mode::sizes:
      out.before = triple_of(g.op, "padding", padding.before(), g.spatial, 0, 0);
      out.after = triple_of(g.op, "padding", padding.after(), g.spatial, 0, 0);
      break;
    case Padding::Mode::same:
      for (size_t i = 0; i < 3; ++i) {
        if (g.stride[i] != 1) {
          throw_error<ValueError>(g.op, ": padding 'same' needs stride 1; got stride ",
                                  text_of(g.stride, g.spatial));
        }
        out.before[i] = (g.extent(i) - 1) / 2;
        out.after[i] = g.extent(i) - 1 - out.before[i];
      }
      break;
  }
  return out;
}

// What of a convolution's padding the op does itself: the same on both sides.
Triple common_padding(const PaddingSides& pad) {
  Triple out{};
  for (size_t i = 0; i < 3; ++i) out[i] = std::min(pad.before[i], pad.after[i]);
  return out;
}

Tensor finished(Tensor y, const ConvEpilogue& end) {
  if (end.residual.defined()) y = y + end.residual;
  return activate(std::move(y), end.activation);
}

Tensor convolution(Geometry g, const TensorArg& input, const Tensor& weight, const Tensor& bias,
                   const Padding& padding, const ConvEpilogue& end = {}) {
  const Shape xs = impl_of(g.op, input.get()).shape();
  const bool batched = xs.rank() == g.spatial + 2;
  if (!batched && xs.rank() != g.spatial + 1) throw_wrong_rank(g.op, xs, g.spatial);
  require_alike(g.op, input.get(), weight, "weight");
  const Shape ws = weight.shape();
  const int64_t channels = xs[batched ? 1 : 0];
  if (ws.rank() != g.spatial + 2 || ws[1] * g.groups != channels || ws[0] % g.groups != 0) {
    throw_error<ShapeError>(g.op, ": the weight does not fit the input; got input ", xs,
                            ", weight ", ws, ", groups ", g.groups,
                            "; expected weight [O, C / groups, ..] with O and C divisible by "
                            "groups");
  }
  g.see_weight(ws);
  require_param(g.op, input.get(), bias, "bias", Shape{ws[0]});
  const PaddingSides pad = sides_of(g, padding);
  const Triple common = common_padding(pad);
  Triple out{1, 1, 1};
  bool even = g.spatial == 2;  // whether the op can take the input as it is
  for (size_t i = static_cast<size_t>(3 - g.spatial); i < 3; ++i) {
    const int64_t size = xs[xs.rank() - 3 + static_cast<int>(i)];
    const int64_t room = size + pad.before[i] + pad.after[i] - g.extent(i);
    if (room < 0 || g.kernel[i] < 1) {
      throw_error<ShapeError>(g.op, ": the kernel is larger than the padded input; got input ", xs,
                              ", weight ", ws, ", padding ", text_of(pad.before, g.spatial),
                              ", dilation ", text_of(g.dilation, g.spatial));
    }
    out[i] = room / g.stride[i] + 1;
    even = even && pad.before[i] == common[i] && pad.after[i] == common[i];
  }
  const ConvOptions options{g.last_two(g.stride), g.last_two(common), g.last_two(g.dilation),
                            g.groups};
  const Value* b = bias.defined() ? &value_of(g.op, bias) : nullptr;
  const bool plain = end.activation == Activation::none && !end.residual.defined();
  if (end.residual.defined()) {
    Shape wanted;
    if (batched) wanted.push_back(xs[0]);
    wanted.push_back(ws[0]);
    for (size_t i = static_cast<size_t>(3 - g.spatial); i < 3; ++i) wanted.push_back(out[i]);
    require_param(g.op, input.get(), end.residual, "residual", wanted);
  }
  if (even && batched) {
    if (plain) {
      return wrap(AD::float_conv2d(arg_of(g.op, input), value_of(g.op, weight), b, options));
    }
    const Value* r = end.residual.defined() ? &value_of(g.op, end.residual) : nullptr;
    return wrap(AD::float_conv2d_activation(arg_of(g.op, input), value_of(g.op, weight), b, r,
                                            end.activation, options));
  }
  if (end.residual.defined()) return finished(convolution(g, input, weight, bias, padding), end);
  const Planes planes(g.op, input.get(), g.spatial);
  Tensor x = planes.x;
  for (int i = 0; i < 3; ++i) {
    const auto k = static_cast<size_t>(i);
    x = padded_dim(x, i + 2, pad.before[k] - common[k], pad.after[k] - common[k]);
  }
  if (!g.is_flat()) {
    const Conv3dOptions volume{g.stride, common, g.dilation, g.groups};
    return finished(planes.restored(wrap(
                        AD::float_conv3d(value_of(g.op, x), value_of(g.op, weight), b, volume))),
                    end);
  }
  const int64_t batch = x.size(0);
  x = x.reshape({batch, channels, x.size(3), x.size(4)});
  const Tensor w = weight.reshape({ws[0], ws[1], g.kernel[1], g.kernel[2]});
  const Tensor y = plain ? wrap(AD::float_conv2d(value_of(g.op, x), value_of(g.op, w), b, options))
                         : wrap(AD::float_conv2d_activation(value_of(g.op, x), value_of(g.op, w), b,
                                                            nullptr, end.activation, options));
  return planes.restored(y.reshape({batch, ws[0], 1, out[1], out[2]}));
}

Tensor transposed(Geometry g, const Tensor& input, const Tensor& weight, const Tensor& bias,
                  const Sizes& paddings, const Sizes& output_paddings, Activation activation) {
  const Shape xs = impl_of(g.op, input).shape();
  const bool batched = xs.rank() == g.spatial + 2;
  if (!batched && xs.rank() != g.spatial + 1) throw_wrong_rank(g.op, xs, g.spatial);
  require_alike(g.op, input, weight, "weight");
  const Shape ws = weight.shape();
  const int64_t channels = xs[batched ? 1 : 0];
  if (ws.rank() != g.spatial + 2 || ws[0] != channels || channels % g.groups != 0) {
    throw_error<ShapeError>(g.op, ": the weight does not fit the input; got input ", xs,
                            ", weight ", ws, ", groups ", g.groups,
                            "; expected weight [C, O / groups, ..] with C divisible by groups");
  }
  g.see_weight(ws);
  const int64_t out_channels = ws[1] * g.groups;
  require_param(g.op, input, bias, "bias", Shape{out_channels});
  const Triple padding = triple_of(g.op, "padding", paddings, g.spatial, 0, 0);
  const Triple extra = triple_of(g.op, "output_padding", output_paddings, g.spatial, 0, 0);
  Conv3dOptions options{g.stride, {}, g.dilation, g.groups};
  Triple out{}, computed{};
  bool crops[3] = {};
  for (size_t i = 0; i < 3; ++i) {
    const int added = 3 - g.spatial;  // dims of one element
    const int64_t size = static_cast<int>(i) < added ? 1 : xs[xs.rank() - 3 + static_cast<int>(i)];
    if (extra[i] > 0 && extra[i] >= g.stride[i] && extra[i] >= g.dilation[i]) {
      throw_error<ValueError>(
          g.op, ": output_padding must be smaller than stride or dilation; got ",
          text_of(extra, g.spatial), " with stride ", text_of(g.stride, g.spatial),
          " and dilation ", text_of(g.dilation, g.spatial));
    }
    const int64_t full_size = (size - 1) * g.stride[i] + g.extent(i);
    out[i] = full_size - 2 * padding[i] + extra[i];
    if (out[i] < 1 || g.kernel[i] < 1 || size < 1) {
      throw_error<ShapeError>(g.op, ": the output would be empty; got input ", xs, ", weight ", ws,
                              ", padding ", text_of(padding, g.spatial), "; expected less padding");
    }
    // More than a stride of output padding is no gradient of a convolution of that size.
    if (extra[i] >= g.stride[i]) crops[i] = true;
    computed[i] = crops[i] ? full_size : out[i];
    options.padding[i] = crops[i] ? 0 : padding[i];
  }
  const int64_t batch = batched ? xs[0] : 1;
  const Shape wanted{batch, out_channels, computed[0], computed[1], computed[2]};
  checked_numel(g.op, wanted);
  // Elements that are added at the ends have a bias, and are activated, too.
  const bool cropped = crops[0] || crops[1] || crops[2];
  const bool in_row = g.is_flat() && !cropped;  // whether the op does both
  const Value* b = bias.defined() && in_row ? &value_of(g.op, bias) : nullptr;
  const auto planar = [&](const Tensor& planes, const Tensor& kernels) {
    return wrap(AD::float_conv_transpose2d(
        value_of(g.op, planes), value_of(g.op, kernels), b, in_row ? activation : Activation::none,
        Shape{batch, out_channels, computed[1], computed[2]}, options.planes()));
  };
  if (g.spatial == 2 && batched && !cropped) return planar(input, weight);
  const Planes planes(g.op, input, g.spatial);
  const Tensor& x = planes.x;
  Tensor y;
  if (g.is_flat()) {
    y = planar(x.reshape({batch, channels, x.size(3), x.size(4)}),
               weight.reshape({channels, ws[1], g.kernel[1], g.kernel[2]}));
    y = y.reshape(wanted);
  } else {
    y = wrap(
        AD::float_conv3d_input_grad(value_of(g.op, weight), value_of(g.op, x), wanted, options));
  }
  for (size_t i = 0; i < 3; ++i) {
    if (!crops[i]) continue;
    const int dim = static_cast<int>(i) + 2;
    y = padded_dim(y, dim, -padding[i], out[i] - (computed[i] - padding[i]));
  }
  if (!in_row) {
    if (bias.defined()) y = y + bias.reshape({out_channels, 1, 1, 1});
    y = activate(std::move(y), activation);
  }
  return planes.restored(y.contiguous());
}

// A product of complex numbers is four of real ones: `f` of the parts, each with the other's.
template <class F>
Tensor of_complex(const char* op, const Tensor& x, const Tensor& weight, const Tensor& bias, F f) {
  if (x.dtype() != weight.dtype() || (bias.defined() && bias.dtype() != x.dtype())) {
    throw_error<DTypeError>(op, ": input, weight and bias must have one dtype; got ", x.dtype(),
                            " and ", weight.dtype(), "; try to(dtype)");
  }
  const Parts u = split_parts(x), v = split_parts(weight);
  const Parts b = bias.defined() ? split_parts(bias) : Parts{};
  return join_parts(f(u.re, v.re, b.re) - f(u.im, v.im, Tensor()),
                    f(u.re, v.im, b.im) + f(u.im, v.re, Tensor()));
}

Tensor any_convolution(const Geometry& g, const TensorArg& x, const Tensor& weight,
                       const Tensor& bias, const Padding& padding, const ConvEpilogue& end = {}) {
  if (!has_complex(x.get(), weight)) return convolution(g, x, weight, bias, padding, end);
  return finished(of_complex(g.op, x.get(), weight, bias,
                             [&](const Tensor& u, const Tensor& v, const Tensor& b) {
                               return convolution(g, u, v, b, padding);
                             }),
                  end);
}

Tensor any_transposed(const Geometry& g, const Tensor& x, const Tensor& weight, const Tensor& bias,
                      const Sizes& padding, const Sizes& output_padding, Activation activation) {
  if (!has_complex(x, weight)) {
    return transposed(g, x, weight, bias, padding, output_padding, activation);
  }
  return activate(of_complex(g.op, x, weight, bias,
                             [&](const Tensor& u, const Tensor& v, const Tensor& b) {
                               return transposed(g, u, v, b, padding, output_padding,
                                                 Activation::none);
                             }),
                  activation);
}

}  // namespace

Tensor conv1d(const Tensor& x, const Tensor& weight, const Tensor& bias, const Sizes& stride,
              const Padding& padding, const Sizes& dilation, int64_t groups) {
  KILN_AUTOCAST(lower, conv1d, x, weight, bias, stride, padding, dilation, groups);
  return any_convolution({"conv1d", 1, stride, dilation, groups}, x, weight, bias, padding);
}
Tensor conv2d(TensorArg x, const Tensor& weight, const Tensor& bias, const Sizes& stride,
              const Padding& padding, const Sizes& dilation, int64_t groups) {
  KILN_AUTOCAST(lower, conv2d, x, weight, bias, stride, padding, dilation, groups);
  return any_convolution({"conv2d", 2, stride, dilation, groups}, x, weight, bias, padding);
}
Tensor conv1d(const Tensor& x, const Tensor& weight, const Tensor& bias, const Sizes& stride,
              const Padding& padding, const Sizes& dilation, int64_t groups,
              const ConvEpilogue& epilogue) {
  KILN_AUTOCAST(
      lower, conv1d, x, weight, bias, stride, padding, dilation, groups,
      amp::detail::cast_member(epilogue, &ConvEpilogue::residual, amp::detail::lower_dtype()));
  return any_convolution({"conv1d", 1, stride, dilation, groups}, x, weight, bias, padding,
                         epilogue);
}
Tensor conv2d(TensorArg x, const Tensor& weight, const Tensor& bias, const Sizes& stride,
              const Padding& padding, const Sizes& dilation, int64_t groups,
              const ConvEpilogue& epilogue) {
  KILN_AUTOCAST(
      lower, conv2d, x, weight, bias, stride, padding, dilation, groups,
      amp::detail::cast_member(epilogue, &ConvEpilogue::residual, amp::detail::lower_dtype()));
  return any_convolution({"conv2d", 2, stride, dilation, groups}, x, weight, bias, padding,
                         epilogue);
}
Tensor conv3d(const Tensor& x, const Tensor& weight, const Tensor& bias, const Sizes& stride,
              const Padding& padding, const Sizes& dilation, int64_t groups) {
  KILN_AUTOCAST(lower, conv3d, x, weight, bias, stride, padding, dilation, groups);
  return any_convolution({"conv3d", 3, stride, dilation, groups}, x, weight, bias, padding);
}

Tensor conv_transpose1d(const Tensor& x, const Tensor& weight, const Tensor& bias,
                        const Sizes& stride, const Sizes& padding, const Sizes& output_padding,
                        int64_t groups, const Sizes& dilation, Activation activation) {
  KILN_AUTOCAST(lower, conv_transpose1d, x, weight, bias, stride, padding, output_padding, groups,
                dilation, activation);
  return any_transposed({"conv_transpose1d", 1, stride, dilation, groups}, x, weight, bias, padding,
                        output_padding, activation);
}
Tensor conv_transpose2d(const Tensor& x, const Tensor& weight, const Tensor& bias,
                        const Sizes& stride, const Sizes& padding, const Sizes& output_padding,
                        int64_t groups, const Sizes& dilation, Activation activation) {
  KILN_AUTOCAST(lower, conv_transpose2d, x, weight, bias, stride, padding, output_padding, groups,
                dilation, activation);
  return any_transposed({"conv_transpose2d", 2, stride, dilation, groups}, x, weight, bias, padding,
                        output_padding, activation);
}
Tensor conv_transpose3d(const Tensor& x, const Tensor& weight, const Tensor& bias,
                        const Sizes& stride, const Sizes& padding, const Sizes& output_padding,
                        int64_t groups, const Sizes& dilation, Activation activation) {
  KILN_AUTOCAST(lower, conv_transpose3d, x, weight, bias, stride, padding, output_padding, groups,
                dilation, activation);
  return any_transposed({"conv_transpose3d", 3, stride, dilation, groups}, x, weight, bias, padding,
                        output_padding, activation);
}

}  // namespace kiln::functional
