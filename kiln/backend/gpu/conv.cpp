// Convolution and its gradients as products that are never written down: kernels/conv.k.
#include <algorithm>
#include <span>

#include "kiln/backend/gpu/nn.h"
#include "kiln/backend/window_math.h"

namespace kiln::gpu {
namespace {

// The struct of conv.k.
struct ConvSizes {
  int64_t batch;
  int64_t in;  // channels of a group
  int64_t out;
  int64_t groups;
  int64_t height;
  int64_t width;
  int64_t rows;
  int64_t columns;
  int64_t kernel[2];
  int64_t stride[2];
  int64_t padding[2];
  int64_t dilation[2];
  int64_t n = 0;  // of the product: [n, depth] [depth, m]
  int64_t m = 0;
  int64_t depth = 0;
  int64_t chunk = 0;  // of the depth, which a group of work-items goes over
};

ConvSizes sizes_of(const Shape& x, const Shape& weight, const ConvOptions& o) {
  ConvSizes s{};
  s.batch = x[0];
  s.groups = o.groups;
  s.in = weight[1];
  s.out = weight[0] / o.groups;
  s.height = x[2];
  s.width = x[3];
  for (int d = 0; d < 2; ++d) {
    const auto k = static_cast<size_t>(d);
    s.kernel[d] = weight[2 + d];
    s.stride[d] = o.stride[k];
    s.padding[d] = o.padding[k];
    s.dilation[d] = o.dilation[k];
  }
  s.rows = conv_output_size(x[2], s.kernel[0], s.stride[0], s.padding[0], s.dilation[0]);
  s.columns = conv_output_size(x[3], s.kernel[1], s.stride[1], s.padding[1], s.dilation[1]);
  return s;
}

constexpr int64_t kTileSide = 16;
constexpr int64_t kLargestGrid = 65535;  // of CUDA, in y and z

// Writes the product into `to`; its chunks, one after another, if there are several.
void launch_conv(Literal mode, ConvSizes s, const H& to, const H& a, const H& b, const H* bias,
                 int64_t chunks) {
  const DType dtype = a->dtype();
  const bool large = s.n >= 64 && s.m >= 64;
  const int64_t tile = large ? 4 * kTileSide : kTileSide;
  const bool wide =
      std::max({a->numel(), b->numel(), to->numel(), s.depth, s.m}) >= (int64_t{1} << 31);
  const auto defines = [&] {
    return define("INDEX", index_type(wide)) + define("IN0", dialect_name(dtype)) +
           define("OUT", dialect_name(to->dtype())) + arithmetic(dtype) + define(mode.get(), "1") +
           define("PER", large ? "4" : "1") + (bias == nullptr ? "" : define("HAS_BIAS", "1"));
  };
  const Kernel kernel{.file = "conv",
                      .parts = {mode},
                      .choice = choice(wide, dtype, to->dtype(), large, bias != nullptr),
                      .defines = defines};
  const Argument arguments[] = {
      Argument::bytes(s), Argument::memory(to->storage()->memory()),
      Argument::memory(a->storage()->memory()), Argument::memory(b->storage()->memory()),
      Argument::memory(bias == nullptr ? Memory() : (*bias)->storage()->memory())};
  const Extent groups{static_cast<size_t>((s.m + tile - 1) / tile),
                      static_cast<size_t>((s.n + tile - 1) / tile),
                      static_cast<size_t>(s.groups * chunks)};
  a->gpu().launch_groups(kernel, groups, {kTileSide, kTileSide, 1},
                         std::span(arguments).first(bias == nullptr ? 4 : 5));
}

// A library's plan costs more than so few multiplications.
constexpr int64_t kFewest = int64_t{1} << 18;

// Whether a library of the runtime has enqueued it, with operands in that order; the result is
// packed so.
bool by_library(Convolution::Part part, const ConvSizes& s, bool last, const H& x_,
                const H& weight_, const H& y_) {
  const auto element = element_of(x_->dtype());
  const int64_t work = y_->numel() * s.in * s.kernel[0] * s.kernel[1];
  if (!element || work < kFewest || !x_->gpu().convolves()) return false;
  const H x = packed(x_, last);
  const H weight = packed(weight_, last);
  const H y = packed(y_, last);
  Convolution c;
  c.element = *element;
  c.part = part;
  c.channels_last = last;
  c.batch = s.batch;
  c.in = s.in * s.groups;
  c.height = s.height;
  c.width = s.width;
  c.out = s.out * s.groups;
  c.rows = s.rows;
  c.columns = s.columns;
  c.groups = s.groups;
  for (int d = 0; d < 2; ++d) {
    c.kernel[d] = s.kernel[d];
    c.stride[d] = s.stride[d];
    c.padding[d] = s.padding[d];
    c.dilation[d] = s.dilation[d];
  }
  c.x = x->storage()->memory();
  c.weight = weight->storage()->memory();
  c.y = y->storage()->memory();
  return x->gpu().convolve(c);
}

// The orders in which a library is asked for it: channels last first where an operand lies so.
std::span<const bool> orders(const GpuTensor& a, const GpuTensor& b) {
  static constexpr bool kOrders[] = {true, false};
  return std::span(kOrders).subspan(is_channels_last(a) || is_channels_last(b) ? 0 : 1);
}

H zeros(const Shape& shape, DType dtype, Device device) {
  H to = empty(shape, dtype, device);
  fill_into(to, 0.0);
  return to;
}

}  // namespace

H conv2d(const H& x_, const H& weight_, const H* bias_, const ConvOptions& options) {
  ConvSizes s = sizes_of(x_->shape(), weight_->shape(), options);
  const Shape shape{s.batch, s.groups * s.out, s.rows, s.columns};
  const DType dtype = x_->dtype();
  if (shape.contains(0)) return empty(shape, dtype, x_->device());
  s.n = s.out;
  s.m = s.batch * s.rows * s.columns;
  s.depth = s.in * s.kernel[0] * s.kernel[1];
  s.chunk = s.depth;
  H bias;
  if (bias_ != nullptr) bias = packed(*bias_);
  for (const bool last : orders(*x_, *weight_)) {
    H to = empty(shape, dtype, x_->device(), last);
    if (!by_library(Convolution::Part::forward, s, last, x_, weight_, to)) continue;
    if (bias) {
      const H each = view(bias, Shape{1, s.groups * s.out, 1, 1}, Strides{0, 1, 0, 0}, 0);
      map_into(to, "y = x0 + x1;", {to, window::expand(each, shape)});
    }
    return to;
  }
  H to = empty(shape, dtype, x_->device());
  launch_conv("FORWARD", s, to, packed(weight_), packed(x_), bias ? &bias : nullptr, 1);
  return to;
}

H conv2d_input_grad(const H& weight_, const H& g_, const Shape& shape, const ConvOptions& options) {
  ConvSizes s = sizes_of(shape, weight_->shape(), options);
  if (g_->numel() == 0 || shape.contains(0)) return zeros(shape, g_->dtype(), g_->device());
  s.n = s.in;
  s.m = s.batch * s.height * s.width;
  s.depth = s.out * s.kernel[0] * s.kernel[1];
  s.chunk = s.depth;
  for (const bool last : orders(*g_, *weight_)) {
    H to = empty(shape, g_->dtype(), g_->device(), last);
    if (by_library(Convolution::Part::input_grad, s, last, to, weight_, g_)) return to;
  }
  H to = empty(shape, g_->dtype(), g_->device());
  launch_conv("INPUT", s, to, packed(weight_), packed(g_), nullptr, 1);
  return to;
}

H conv2d_weight_grad(const H& x_, const H& g_, const Shape& shape, const ConvOptions& options) {
  ConvSizes s = sizes_of(x_->shape(), shape, options);
  const DType dtype = g_->dtype();
  if (g_->numel() == 0 || shape.contains(0)) return zeros(shape, dtype, g_->device());
  s.n = s.out;
  s.m = s.in * s.kernel[0] * s.kernel[1];
  s.depth = s.batch * s.rows * s.columns;
  for (const bool last : orders(*x_, *g_)) {
    H to = empty(shape, dtype, g_->device(), last);
    if (by_library(Convolution::Part::weight_grad, s, last, x_, to, g_)) return to;
  }
  // Few sums of many terms: they are cut, so that many groups have work.
  constexpr int64_t kShortestChunk = 512;
  const int64_t tiles = s.groups * ((s.n + 15) / 16) * ((s.m + 15) / 16);
  const int64_t wanted = std::max<int64_t>(1, 1024 / std::max<int64_t>(tiles, 1));
  const int64_t most = std::max<int64_t>(1, s.depth / kShortestChunk);
  const int64_t chunks = std::min({wanted, most, std::max<int64_t>(1, kLargestGrid / s.groups)});
  s.chunk = (s.depth + chunks - 1) / chunks;
  const H x = packed(x_);
  const H g = packed(g_);
  if (chunks == 1) {
    H to = empty(shape, dtype, g_->device());
    launch_conv("WEIGHT", s, to, g, x, nullptr, 1);
    return to;
  }
  const DType total = dtype == DType::f64 ? dtype : DType::f32;
  const int64_t count = shape.numel();
  const H parts = empty(Shape{chunks, count}, total, g_->device());
  launch_conv("WEIGHT", s, parts, g, x, nullptr, chunks);
  const H sum = reduce({"0", "x", "a + b"}, parts, Dims{0}, false, dtype);
  return view(sum, shape, contiguous_strides(shape), 0);
}

}  // namespace kiln::gpu
