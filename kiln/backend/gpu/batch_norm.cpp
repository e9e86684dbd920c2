// Batch normalization: kernels/norm_statistics.k, norm_channels.k and norm_apply.k where the
// elements of a channel lie side by side, kernels/norm_columns_*.k where the channels do.
#include <cmath>

#include "kiln/backend/gpu/columns.h"
#include "kiln/backend/gpu/norm_launch.h"

namespace kiln::gpu {
namespace {

// How x lies: as [samples, channels, space], or as [rows, channels].
struct Lay {
  explicit Lay(const H& x)
      : last(is_channels_last(*x)),
        columns(last || space_of(x->shape()) == 1),
        channels(x->shape()[1]),
        count(x->numel() / positive(channels)) {}
  bool last;
  bool columns;
  int64_t channels;
  int64_t count;  // elements of a channel
};

constexpr int64_t kApplyGroups = 8192;  // whose results nobody joins

HeldRow packs_of(const H& x, const Lay& lay) {
  return by_packs(x, lay.columns ? lay.channels : space_of(x->shape()));
}

// What norm_apply.k is told of the gradient through the statistics.
struct Sums {
  H g;
  H along;
  H plain;
};

// x is packed, all else of the dtype that sums have.
H apply_statistics(const H& x, const Lay& lay, const H& mean, const H& var, const H& weight,
                   const H& bias, double eps, bool is_backward, const Sums* sums = nullptr) {
  const DType dtype = x->dtype();
  H out = empty(x->shape(), dtype, x->device(), lay.last);
  const int64_t n = out->numel();
  if (n == 0) return out;
  const int64_t space = space_of(x->shape());
  const HeldRow held = packs_of(x, lay);
  const ScalarArgument small(dtype, eps);
  const ScalarArgument count(dtype, static_cast<double>(lay.count));
  std::vector<Argument> arguments = {memory_of(out), memory_of(x), memory_of(mean), memory_of(var)};
  if (weight) arguments.push_back(memory_of(weight));
  if (bias) arguments.push_back(memory_of(bias));
  if (sums != nullptr) {
    for (const H* each : {&sums->g, &sums->along, &sums->plain})
      arguments.push_back(memory_of(*each));
    arguments.push_back(count.argument());
  }
  const NormFlags flags{.weight = static_cast<bool>(weight),
                        .bias = static_cast<bool>(bias),
                        .backward = is_backward,
                        .wide = is_wide(x),
                        .whole = sums != nullptr,
                        .held = held};
  if (lay.columns) {
    const Columns columns(lay.count, lay.channels, held.vector, kApplyGroups);
    arguments.insert(arguments.begin(), columns.argument());
    arguments.push_back(small.argument());
    launch_norm({"norm_columns_apply", dtype, dtype, "columns"}, x, flags, columns.extent(), true,
                arguments);
    return out;
  }
  for (const int64_t* each : {&n, &lay.channels, &space}) {
    arguments.push_back(Argument::bytes(*each));
  }
  arguments.push_back(small.argument());
  launch_norm({"norm_apply", dtype, dtype}, x, flags, {static_cast<size_t>(n / held.vector), 1, 1},
              false, arguments);
  return out;
}

// Mean and variance of each channel.
Pair channel_statistics(const H& x, const Lay& lay) {
  const DType dtype = x->dtype();
  const DType total = total_of(dtype);
  H mean = empty(Shape{lay.channels}, total, x->device());
  H variance = empty(Shape{lay.channels}, total, x->device());
  if (lay.channels == 0) return {mean, variance};
  if (lay.count == 0) {
    fill_into(mean, NAN);
    fill_into(variance, NAN);
    return {mean, variance};
  }
  const HeldRow held = packs_of(x, lay);
  const NormFlags flags{.wide = is_wide(x), .held = held};
  const auto parts = [&](int64_t chunks) {
    return empty(Shape{chunks, lay.channels}, total, x->device());
  };
  H means;
  H squares;
  int64_t chunks = 1;
  int64_t each = 1;
  if (lay.columns) {
    const Columns columns(lay.count, lay.channels, held.vector, kColumnGroups);
    chunks = columns.chunks;
    each = columns.chunk;
    means = parts(chunks);
    squares = parts(chunks);
    launch_norm({"norm_columns_statistics", dtype, dtype, "columns"}, x, flags, columns.extent(),
                true, {columns.argument(), memory_of(means), memory_of(squares), memory_of(x)});
  } else {
    struct {
      int64_t n, channels, space, chunk, chunks;
    } s{x->shape()[0], lay.channels, space_of(x->shape()), 1, 1};
    s.chunk = samples_of(s.n, s.space);
    s.chunks = (s.n + s.chunk - 1) / s.chunk;
    chunks = s.chunks;
    each = s.chunk * s.space;
    means = parts(chunks);
    squares = parts(chunks);
    launch_norm({"norm_statistics", dtype, dtype}, x, flags,
                {static_cast<size_t>(s.channels * s.chunks), 1, 1}, true,
                {Argument::bytes(s), memory_of(means), memory_of(squares), memory_of(x)});
  }
  const int64_t rest = lay.count - (chunks - 1) * each;
  launch_norm({"norm_merge", dtype, dtype}, x, {}, {static_cast<size_t>(lay.channels), 1, 1}, true,
              {memory_of(mean), memory_of(variance), memory_of(means), memory_of(squares),
               Argument::bytes(lay.channels), Argument::bytes(chunks), Argument::bytes(each),
               Argument::bytes(rest)});
  return {mean, variance};
}

// What a gradient is computed from: packed as x lies, and of the dtype that sums have.
struct Backward {
  Backward(const H& g_, const H& x_, const H& mean_, const H& var_)
      : lay(x_),
        x(packed(x_, lay.last)),
        g(operand(g_, x->dtype(), lay.last)),
        mean(operand(mean_, total_of(x->dtype()))),
        var(operand(var_, total_of(x->dtype()))) {}

  // The sums over each channel of g u and of g. Channels that lie last are those of a matrix.
  Pair sums(double eps) const {
    const int64_t space = lay.columns ? 1 : space_of(x->shape());
    const Channels channels{
        .n = lay.count / positive(space), .channels = lay.channels, .space = space};
    return channel_grads(g, x, mean, var, channels, Shape{lay.channels}, eps, true, mean->dtype());
  }

  Lay lay;
  H x;
  H g;
  H mean;
  H var;
};

}  // namespace

Triple batch_norm(const H& x_, const H* weight, const H* bias, double eps) {
  const Lay lay(x_);
  const H x = packed(x_, lay.last);
  const DType total = total_of(x->dtype());
  auto [mean, variance] = channel_statistics(x, lay);
  return {apply_statistics(x, lay, mean, variance, operand_or_none(weight, total),
                           operand_or_none(bias, total), eps, false),
          mean, variance};
}

Triple batch_norm_backward(const H& g_, const H& x_, const H* weight, const H& mean_, const H& var_,
                           double eps) {
  const Backward b(g_, x_, mean_, var_);
  auto [along, plain] = b.sums(eps);
  const Sums sums{b.g, along, plain};
  const H scale = operand_or_none(weight, b.mean->dtype());
  return {apply_statistics(b.x, b.lay, b.mean, b.var, scale, H(), eps, true, &sums),
          operand(along, mean_->dtype()), operand(plain, mean_->dtype())};
}

H batch_norm_inference(const H& x_, const H& mean, const H& var, const H* weight, const H* bias,
                       double eps) {
  const Lay lay(x_);
  const DType total = total_of(x_->dtype());
  return apply_statistics(packed(x_, lay.last), lay, operand(mean, total), operand(var, total),
                          operand_or_none(weight, total), operand_or_none(bias, total), eps, false);
}

Triple batch_norm_inference_backward(const H& g_, const H& x_, const H& mean_, const H& var_,
                                     const H* weight, double eps) {
  const Backward b(g_, x_, mean_, var_);
  auto [along, plain] = b.sums(eps);
  const H scale = operand_or_none(weight, b.mean->dtype());
  return {apply_statistics(b.g, b.lay, b.mean, b.var, scale, H(), eps, true),
          operand(along, mean_->dtype()), operand(plain, mean_->dtype())};
}

}  // namespace kiln::gpu
