// Layer and group normalization: kernels/norm.k, norm_backward.k and norm_channels.k.
#include "kiln/backend/gpu/columns.h"
#include "kiln/backend/gpu/norm_launch.h"

namespace kiln::gpu {
namespace {

// The struct of norm.k and norm_backward.k.
struct Rows {
  int64_t length = 1;
  int64_t weight_rows = 1;
  int64_t weight_row = 0;
  int64_t weight_run = 1;
  int64_t weight_step = 1;
};

Rows layer_rows(int64_t length) { return {.length = length}; }
Rows group_rows(const Shape& shape, int64_t groups) {
  const int64_t channels = shape[1] / groups;
  const int64_t space = space_of(shape);
  return {.length = channels * space,
          .weight_rows = groups,
          .weight_row = channels,
          .weight_run = positive(space)};
}

// Rows whose elements have a weight each: those of layer normalization.
HeldRow held_of(DType dtype, const Rows& r, int64_t count) {
  return r.weight_run == 1 ? HeldRow(dtype, r.length, count) : HeldRow();
}

// The result, and of each row the mean and 1 / standard deviation in `kept`.
Triple normalized_rows(const H& x_, const Rows& rows, int64_t count, const H* weight_,
                       const H* bias_, const Shape& kept, double eps) {
  const DType dtype = x_->dtype();
  H out = empty(x_->shape(), dtype, x_->device());
  H mean = empty(kept, dtype, x_->device());
  H spread = empty(kept, dtype, x_->device());
  if (count == 0) return {out, mean, spread};
  const H x = packed(x_);
  const H weight = operand_or_none(weight_, dtype);
  const H bias = operand_or_none(bias_, dtype);
  const ScalarArgument small(dtype, eps);
  std::vector<Argument> arguments = {Argument::bytes(rows), memory_of(out), memory_of(mean),
                                     memory_of(spread), memory_of(x)};
  if (weight) arguments.push_back(memory_of(weight));
  if (bias) arguments.push_back(memory_of(bias));
  arguments.push_back(small.argument());
  const NormFlags flags{.weight = static_cast<bool>(weight),
                        .bias = static_cast<bool>(bias),
                        .wide = is_wide(x),
                        .held = held_of(dtype, rows, count)};
  launch_norm({"norm", dtype, dtype}, x, flags, {static_cast<size_t>(count), 1, 1}, true,
              arguments);
  return {out, mean, spread};
}

// The gradient of x.
H rows_backward(const H& g_, const H& x_, const Rows& rows, int64_t count, const H* weight_,
                const H& mean_, const H& spread_) {
  const DType dtype = x_->dtype();
  H out = empty(x_->shape(), dtype, x_->device());
  if (count == 0) return out;
  const H g = operand(g_, dtype);
  const H x = packed(x_);
  const H mean = operand(mean_, dtype);
  const H spread = operand(spread_, dtype);
  const H weight = operand_or_none(weight_, dtype);
  std::vector<Argument> arguments = {Argument::bytes(rows), memory_of(out),  memory_of(g),
                                     memory_of(x),          memory_of(mean), memory_of(spread)};
  if (weight) arguments.push_back(memory_of(weight));
  const NormFlags flags{
      .weight = static_cast<bool>(weight), .wide = is_wide(x), .held = held_of(dtype, rows, count)};
  launch_norm({"norm_backward", dtype, dtype}, x, flags, {static_cast<size_t>(count), 1, 1}, true,
              arguments);
  return out;
}

}  // namespace

Pair channel_grads(const H& g, const H& x, const H& mean, const H& spread, Channels s,
                   const Shape& shape, double eps, bool variance, DType result) {
  const DType dtype = x->dtype();
  if (s.channels == 0 || s.n * s.space == 0) {
    H zeros = empty(shape, result, x->device());
    fill_into(zeros, 0.0);
    return {zeros, zeros};
  }
  const ScalarArgument small(dtype, eps);
  const auto sums = [&](int64_t chunks) {
    return empty(Shape{chunks, s.channels}, total_of(dtype), x->device());
  };
  const auto joined = [&](const H& each) {
    const H sum = reduce({"0", "x", "a + b"}, each, Dims{0}, false, result);
    return view(sum, shape, contiguous_strides(shape), 0);
  };
  if (s.space == 1) {
    // Channels of a pack share a row's statistics.
    const bool by_row = !variance;
    HeldRow held = by_packs(x, s.channels);
    if (by_row && s.per_stat % held.vector != 0) held.vector = 1;
    const Columns columns(s.n, s.channels, held.vector, kColumnGroups);
    const H by_unit = sums(columns.chunks);
    const H plain = sums(columns.chunks);
    launch_norm({"norm_columns_sums", dtype, mean->dtype(), "columns"}, x,
                {.wide = is_wide(x), .by_row = by_row, .held = held}, columns.extent(), true,
                {columns.argument(), memory_of(by_unit), memory_of(plain), memory_of(g),
                 memory_of(x), memory_of(mean), memory_of(spread), Argument::bytes(s.stat_step),
                 Argument::bytes(s.per_stat), small.argument()});
    return {joined(by_unit), joined(plain)};
  }
  s.chunk = samples_of(s.n, s.space);
  s.chunks = (s.n + s.chunk - 1) / s.chunk;
  const bool whole = s.chunks == 1;
  const DType out = whole ? result : total_of(dtype);
  const H by_unit = whole ? empty(shape, out, x->device()) : sums(s.chunks);
  const H plain = whole ? empty(shape, out, x->device()) : sums(s.chunks);
  launch_norm({"norm_channels", out, mean->dtype()}, x,
              {.variance = variance, .wide = is_wide(x), .held = by_packs(x, s.space)},
              {static_cast<size_t>(s.channels * s.chunks), 1, 1}, true,
              {Argument::bytes(s), memory_of(by_unit), memory_of(plain), memory_of(g), memory_of(x),
               memory_of(mean), memory_of(spread), small.argument()});
  if (whole) return {by_unit, plain};
  return {joined(by_unit), joined(plain)};
}

// ---- Layers

Triple layer_norm(const H& x, const H* weight, const H* bias, int n, double eps) {
  Shape kept = x->shape();
  int64_t length = 1;
  for (int d = kept.rank() - n; d < kept.rank(); ++d) {
    length *= kept[d];
    kept[d] = 1;
  }
  return normalized_rows(x, layer_rows(length), kept.numel(), weight, bias, kept, eps);
}

Triple layer_norm_backward(const H& g, const H& x, const H* weight, const H& mean, const H& rstd,
                           int n) {
  Shape normalized;
  const Shape& shape = x->shape();
  for (int d = shape.rank() - n; d < shape.rank(); ++d) normalized.push_back(shape[d]);
  const int64_t length = normalized.numel();
  const int64_t count = mean->numel();
  const H x_grad = rows_backward(g, x, layer_rows(length), count, weight, mean, rstd);
  const Channels channels{
      .n = count, .channels = length, .stat_step = 1, .per_stat = positive(length)};
  const DType dtype = x->dtype();
  auto [weight_grad, bias_grad] =
      channel_grads(operand(g, dtype), packed(x), operand(mean, dtype), operand(rstd, dtype),
                    channels, normalized, 0.0, false, dtype);
  return {x_grad, weight_grad, bias_grad};
}

// ---- Groups of channels

Triple group_norm(const H& x, const H* weight, const H* bias, int64_t groups, double eps) {
  const Shape kept{x->shape()[0], groups};
  return normalized_rows(x, gpu::group_rows(x->shape(), groups), kept.numel(), weight, bias, kept,
                         eps);
}

Triple group_norm_backward(const H& g, const H& x, const H* weight, const H& mean, const H& rstd,
                           int64_t groups) {
  const Shape& shape = x->shape();
  const H x_grad =
      rows_backward(g, x, gpu::group_rows(shape, groups), shape[0] * groups, weight, mean, rstd);
  const Channels channels{.n = shape[0],
                          .channels = shape[1],
                          .space = space_of(shape),
                          .stat_step = groups,
                          .per_stat = positive(shape[1] / groups)};
  const DType dtype = x->dtype();
  auto [weight_grad, bias_grad] =
      channel_grads(operand(g, dtype), packed(x), operand(mean, dtype), operand(rstd, dtype),
                    channels, Shape{shape[1]}, 0.0, false, dtype);
  return {x_grad, weight_grad, bias_grad};
}

}  // namespace kiln::gpu
