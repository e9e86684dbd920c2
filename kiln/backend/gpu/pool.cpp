// Pooling: kernels/pool.k and window_argmax.k.
#include <algorithm>
#include <initializer_list>
#include <vector>

#include "kiln/backend/gpu/nn.h"

namespace kiln::gpu {
namespace {

// The struct of pool.k.
struct Windows {
  int64_t images;
  int64_t channels;
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
  w.images = x[0];
  w.channels = x[1];
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

enum PoolOp { kLargest, kMean, kMeanBackward, kLargestBackward };

Argument memory_of(const H& x) { return Argument::memory(x->storage()->memory()); }

// All lie alike: `last`, or row-major.
void launch_pool(PoolOp op, const Windows& w, bool last, const H& to,
                 std::initializer_list<H> rest) {
  const DType dtype = to->dtype();
  const int64_t planes = w.images * w.channels;
  const bool wide = planes * std::max(w.in[0] * w.in[1], w.out[0] * w.out[1]) >= (int64_t{1} << 31);
  const auto defines = [&] {
    return define("INDEX", index_type(wide)) + define("IN0", dialect_name(dtype)) +
           arithmetic(dtype) + define("OP", std::to_string(op)) + (last ? define("LAST", "1") : "");
  };
  const Kernel kernel{.file = "pool", .choice = choice(dtype, op, wide, last), .defines = defines};
  std::vector<Argument> arguments = {Argument::bytes(w), memory_of(to)};
  for (const H& each : rest) arguments.push_back(memory_of(each));
  to->gpu().launch(kernel, static_cast<size_t>(to->numel()), arguments);
}

}  // namespace

Pair max_pool(const H& x, const PoolOptions& options) {
  const Windows w = windows_of(x->shape(), options, options.dilation);
  const Shape shape{x->shape()[0], x->shape()[1], w.out[0], w.out[1]};
  const bool last = is_channels_last(*x);
  H to = empty(shape, x->dtype(), x->device(), last);
  H places = empty(shape, DType::i64, x->device(), last);
  if (to->numel() != 0) launch_pool(kLargest, w, last, to, {places, packed(x, last)});
  return {to, places};
}

H max_pool_backward(const H& g, const H& places, const Shape& shape, const PoolOptions& options) {
  const Windows w = windows_of(shape, options, options.dilation);
  const bool last = is_channels_last(*places) || is_channels_last(*g);
  H to = empty(shape, g->dtype(), g->device(), last);
  if (to->numel() != 0) {
    launch_pool(kLargestBackward, w, last, to, {packed(places, last), packed(g, last)});
  }
  return to;
}

H avg_pool(const H& x, const PoolOptions& options) {
  const Windows w = windows_of(x->shape(), options, {1, 1});
  const bool last = is_channels_last(*x);
  H to =
      empty(Shape{x->shape()[0], x->shape()[1], w.out[0], w.out[1]}, x->dtype(), x->device(), last);
  if (to->numel() != 0) launch_pool(kMean, w, last, to, {packed(x, last)});
  return to;
}

H avg_pool_backward(const H& g, const Shape& shape, const PoolOptions& options) {
  const Windows w = windows_of(shape, options, {1, 1});
  const bool last = is_channels_last(*g);
  H to = empty(shape, g->dtype(), g->device(), last);
  if (to->numel() != 0) launch_pool(kMeanBackward, w, last, to, {packed(g, last)});
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
