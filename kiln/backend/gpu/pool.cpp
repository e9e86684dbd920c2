// Pooling: kernels/pool.k and window_argmax.k.
#include <algorithm>
#include <initializer_list>
#include <vector>

#include "kiln/backend/gpu/nn.h"
#include "kiln/core/error.h"

namespace kiln::gpu {
namespace {

// The struct of pool.k.
struct Windows {
  int64_t images;
  int64_t channels;
  int32_t in[2];
  int32_t out[2];
  int32_t kernel[2];
  int32_t stride[2];
  int32_t padding[2];
  int32_t dilation[2];
  int64_t with_padding;
};

Windows windows_of(const Shape& x, const PoolOptions& o, IntPair dilation) {
  Windows w{};
  w.images = x[0];
  w.channels = x[1];
  // Places in planes are computed in 32 bits.
  constexpr int64_t kMost = int64_t{1} << 28;
  bool fits = true;
  const auto narrow = [&](int64_t n) {
    fits = fits && n <= kMost;
    return static_cast<int32_t>(std::min(n, kMost));
  };
  int64_t windows = 1;
  for (int d = 0; d < 2; ++d) {
    const auto k = static_cast<size_t>(d);
    const int64_t out = pool_output_size(x[2 + d], o.kernel[k], o.stride[k], o.padding[k],
                                         dilation[k], o.ceil_mode);
    windows *= out;
    w.in[d] = narrow(x[2 + d]);
    w.out[d] = narrow(out);
    w.kernel[d] = narrow(o.kernel[k]);
    w.padding[d] = narrow(o.padding[k]);
    w.dilation[d] = narrow(dilation[k]);
    narrow(static_cast<int64_t>(w.kernel[d]) * w.dilation[d]);
    if (out > 1) narrow(o.stride[k]);
    w.stride[d] = static_cast<int32_t>(std::min(o.stride[k], kMost));
  }
  if (!fits || std::max(x[2] * x[3], windows) >= int64_t{1} << 31) {
    throw_error<ShapeError>("pool: planes or windows are too large for a GPU; got ", x,
                            "; expected fewer than 2^31 elements in a plane");
  }
  w.with_padding = o.count_include_pad ? 1 : 0;
  return w;
}

enum PoolOp { kLargest, kMean, kMeanBackward, kLargestBackward };

// All lie alike: `last`, or row-major.
void launch_pool(PoolOp op, const Windows& w, bool last, const H& to,
                 std::initializer_list<H> rest) {
  const DType dtype = to->dtype();
  const int64_t planes = w.images * w.channels;
  const int64_t plane = std::max<int64_t>(int64_t{w.in[0]} * w.in[1], int64_t{w.out[0]} * w.out[1]);
  const bool wide = planes * plane >= (int64_t{1} << 31);
  const bool packs = last && w.channels % pack_of(dtype) == 0 && to->numel() >= kFewElements;
  const int64_t vector = packs ? pack_of(dtype) : 1;
  const auto defines = [&] {
    return define("INDEX", index_type(wide)) + define("IN0", dialect_name(dtype)) +
           arithmetic(dtype) + define("OP", std::to_string(op)) +
           (last ? define("LAST", "1") : "") + define("VECTOR", std::to_string(vector));
  };
  const Kernel kernel{
      .file = "pool", .choice = choice(dtype, op, wide, last, vector), .defines = defines};
  std::vector<Argument> arguments = {Argument::bytes(w), memory_of(to)};
  for (const H& each : rest) arguments.push_back(memory_of(each));
  to->gpu().launch(kernel, static_cast<size_t>(to->numel() / vector), arguments);
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
