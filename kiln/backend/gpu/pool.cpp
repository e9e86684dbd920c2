// Pooling: kernels/pool.k, pool_scatter.k and window_argmax.k.
#include "kiln/backend/gpu/nn.h"

namespace kiln::gpu {
namespace {

// The struct of pool.k.
struct Windows {
  int64_t planes;
  int64_t in[2];
  int64_t out[2];
  int64_t kernel[2];
  int64_t stride[2];
  int64_t padding[2];
  int64_t dilation[2];
  int64_t with_padding;
};

Windows windows_of(const Shape& x, const PoolOptions& o, IntPair dilation) {
  Windows w{};
  w.planes = x[0] * x[1];
  for (int d = 0; d < 2; ++d) {
    const auto k = static_cast<size_t>(d);
    w.in[d] = x[2 + d];
    w.kernel[d] = o.kernel[k];
    w.stride[d] = o.stride[k];
    w.padding[d] = o.padding[k];
    w.dilation[d] = dilation[k];
    w.out[d] = pool_output_size(w.in[d], w.kernel[d], w.stride[d], w.padding[d], w.dilation[d],
                                o.ceil_mode);
  }
  w.with_padding = o.count_include_pad ? 1 : 0;
  return w;
}

enum PoolOp { kLargest, kMean, kMeanBackward };

void launch_pool(PoolOp op, const H& x, int64_t items, std::span<const Argument> arguments) {
  const bool wide = x->numel() >= (int64_t{1} << 31) || items >= (int64_t{1} << 31);
  const auto defines = [&] {
    return define("INDEX", index_type(wide)) + define("IN0", dialect_name(x->dtype())) +
           arithmetic(x->dtype()) + define("OP", std::to_string(op));
  };
  const Kernel kernel{.file = "pool", .choice = choice(x->dtype(), op, wide), .defines = defines};
  x->gpu().launch(kernel, static_cast<size_t>(items), arguments);
}

}  // namespace

Pair max_pool(const H& x_, const PoolOptions& options) {
  const Windows w = windows_of(x_->shape(), options, options.dilation);
  const Shape shape{x_->shape()[0], x_->shape()[1], w.out[0], w.out[1]};
  H to = empty(shape, x_->dtype(), x_->device());
  H places = empty(shape, DType::i64, x_->device());
  if (to->numel() == 0) return {to, places};
  const H x = packed(x_);
  const Argument arguments[] = {Argument::bytes(w), Argument::memory(to->storage()->memory()),
                                Argument::memory(places->storage()->memory()),
                                Argument::memory(x->storage()->memory())};
  launch_pool(kLargest, x, to->numel(), arguments);
  return {to, places};
}

H max_pool_backward(const H& g_, const H& places_, const Shape& shape) {
  const DType dtype = g_->dtype();
  const DType wide = dtype == DType::f64 ? dtype : DType::f32;
  H sum = empty(shape, wide, g_->device());
  if (sum->numel() == 0) return empty(shape, dtype, g_->device());
  fill_into(sum, 0.0);
  const int64_t planes = shape[0] * shape[1];
  const int64_t size = shape[2] * shape[3];
  const int64_t windows = g_->numel() / planes;
  if (windows > 0) {
    const H g = packed(g_);
    const H places = packed(places_);
    const auto defines = [&] {
      return define("IN0", dialect_name(dtype)) + define("OUT", dialect_name(wide)) +
             arithmetic(wide);
    };
    const Kernel kernel{.file = "pool_scatter", .choice = choice(dtype), .defines = defines};
    GpuDevice& gpu = g->gpu();
    const int32_t code = gpu.fault_code("max_pool2d", FaultKind::index);
    const Argument arguments[] = {Argument::memory(sum->storage()->memory()),
                                  Argument::memory(g->storage()->memory()),
                                  Argument::memory(places->storage()->memory()),
                                  Argument::bytes(planes),
                                  Argument::bytes(size),
                                  Argument::bytes(windows),
                                  Argument::memory(gpu.fault_word()),
                                  Argument::bytes(code)};
    gpu.launch(kernel, static_cast<size_t>(planes), arguments);
  }
  return dtype == wide ? sum : map("y = (ACC(OUT))x0;", dtype, {T(sum)});
}

H avg_pool(const H& x_, const PoolOptions& options) {
  const Windows w = windows_of(x_->shape(), options, {1, 1});
  H to =
      empty(Shape{x_->shape()[0], x_->shape()[1], w.out[0], w.out[1]}, x_->dtype(), x_->device());
  if (to->numel() == 0) return to;
  const H x = packed(x_);
  const Argument arguments[] = {Argument::bytes(w), Argument::memory(to->storage()->memory()),
                                Argument::memory(x->storage()->memory())};
  launch_pool(kMean, x, to->numel(), arguments);
  return to;
}

H avg_pool_backward(const H& g_, const Shape& shape, const PoolOptions& options) {
  const Windows w = windows_of(shape, options, {1, 1});
  H to = empty(shape, g_->dtype(), g_->device());
  if (to->numel() == 0) return to;
  const H g = packed(g_);
  const Argument arguments[] = {Argument::bytes(w), Argument::memory(to->storage()->memory()),
                                Argument::memory(g->storage()->memory())};
  launch_pool(kMeanBackward, g, to->numel(), arguments);
  return to;
}

H window_argmax(const H& x_, const H& starts_, const H& lengths_, const Shape& out) {
  struct {
    int64_t planes;
    int64_t row_step;
    int64_t in[3];
    int64_t out[3];
  } w{};
  const Shape& shape = x_->shape();
  H to = empty(Shape{shape[0], shape[1], out.numel()}, DType::i64, x_->device());
  if (to->numel() == 0) return to;
  w.planes = shape[0] * shape[1];
  w.row_step = starts_->shape()[0] == 1 ? 0 : out[0] + out[1] + out[2];
  for (int d = 0; d < 3; ++d) {
    w.in[d] = shape[2 + d];
    w.out[d] = out[d];
  }
  const H x = packed(x_);
  const H starts = packed(starts_);
  const H lengths = packed(lengths_);
  const auto defines = [&] {
    return define("IN0", dialect_name(x->dtype())) + arithmetic(x->dtype());
  };
  const Kernel kernel{.file = "window_argmax", .choice = choice(x->dtype()), .defines = defines};
  const Argument arguments[] = {Argument::bytes(w), Argument::memory(to->storage()->memory()),
                                Argument::memory(x->storage()->memory()),
                                Argument::memory(starts->storage()->memory()),
                                Argument::memory(lengths->storage()->memory())};
  x->gpu().launch(kernel, static_cast<size_t>(to->numel()), arguments);
  return to;
}

}  // namespace kiln::gpu
