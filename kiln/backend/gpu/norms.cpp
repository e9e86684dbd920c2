// Layer, group and batch normalization: kernels/norm*.k.
#include <algorithm>
#include <optional>
#include <vector>

#include "kiln/backend/gpu/nn.h"

namespace kiln::gpu {
namespace {

// The struct of norm.k and norm_backward.k.
struct Rows {
  int64_t length = 1;
  int64_t row_step = 0;
  int64_t run = 1;
  int64_t run_step = 0;
  int64_t weight_rows = 1;
  int64_t weight_row = 0;
  int64_t weight_run = 1;
  int64_t weight_step = 0;
};

// Elements of each channel of a sample.
int64_t space_of(const Shape& shape) {
  int64_t space = 1;
  for (int d = 2; d < shape.rank(); ++d) space *= shape[d];
  return space;
}
int64_t positive(int64_t n) { return n > 0 ? n : 1; }

Rows layer_rows(int64_t length) {
  return {.length = length,
          .row_step = length,
          .run = positive(length),
          .weight_run = 1,
          .weight_step = 1};
}
Rows group_rows(const Shape& shape, int64_t groups) {
  const int64_t channels = shape[1] / groups;
  const int64_t space = space_of(shape);
  return {.length = channels * space,
          .row_step = channels * space,
          .run = positive(channels * space),
          .weight_rows = groups,
          .weight_row = channels,
          .weight_run = positive(space),
          .weight_step = 1};
}
Rows batch_rows(const Shape& shape) {
  const int64_t space = space_of(shape);
  return {.length = shape[0] * space,
          .row_step = space,
          .run = positive(space),
          .run_step = shape[1] * space,
          .weight_rows = positive(shape[1]),
          .weight_row = 1,
          .weight_run = positive(shape[0] * space)};
}

// What all these kernels hang on.
struct Flags {
  bool weight = false;
  bool bias = false;
  bool variance = false;
  bool columns = false;
  bool backward = false;
  bool wide = false;
  bool whole = false;
  HeldRow held = {};
};
// Rows whose elements have a weight each: those of layer normalization.
HeldRow held_of(DType dtype, const Rows& r, int64_t count) {
  return r.weight_run == 1 && r.run == r.length ? HeldRow(dtype, r.length, count) : HeldRow();
}
std::string norm_defines(DType dtype, DType out, const Flags& f) {
  return define("INDEX", index_type(f.wide)) + define("IN0", dialect_name(dtype)) +
         define("OUT", dialect_name(out)) + define("SCALAR", scalar_type(dtype)) +
         arithmetic(dtype) + (f.weight ? define("HAS_WEIGHT", "1") : "") +
         (f.bias ? define("HAS_BIAS", "1") : "") + (f.variance ? define("VARIANCE", "1") : "") +
         (f.columns ? define("COLUMNS", "1") : "") + (f.backward ? define("BACKWARD", "1") : "") +
         (f.whole ? define("WHOLE", "1") : "") + f.held.defines();
}

void launch_norm(Literal file, const H& x, DType out, const Flags& f, size_t items, bool groups,
                 const std::vector<Argument>& arguments) {
  const auto defines = [&] { return norm_defines(x->dtype(), out, f); };
  const Kernel kernel{
      .file = file,
      .choice = choice(x->dtype(), out, f.weight, f.bias, f.variance, f.columns, f.backward, f.wide,
                       f.held.packs * 2 + (f.whole ? 1 : 0), f.held.vector),
      .defines = defines};
  if (groups) {
    x->gpu().launch_groups(kernel, {items, 1, 1}, {kGroup, 1, 1}, arguments);
  } else {
    x->gpu().launch(kernel, items, arguments);
  }
}

bool is_wide(const H& x) { return x->numel() >= (int64_t{1} << 31); }
Argument memory_of(const H& x) { return Argument::memory(x->storage()->memory()); }
// A row-major copy where it needs one, in x's dtype.
H operand(const H& x, DType dtype) {
  if (x->dtype() == dtype) return packed(x);
  return map("y = (ACC(OUT))x0;", dtype, {T(x)});
}
H operand_or_none(const H* x, DType dtype) { return x == nullptr ? H() : operand(*x, dtype); }

// The result, and of each row the mean and the spread in `kept`.
Triple normalized_rows(const H& x_, const Rows& rows, int64_t count, const H* weight_,
                       const H* bias_, const Shape& kept, double eps, bool variance) {
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
  const Flags flags{.weight = static_cast<bool>(weight),
                    .bias = static_cast<bool>(bias),
                    .variance = variance,
                    .wide = is_wide(x),
                    .held = held_of(dtype, rows, count)};
  launch_norm("norm", x, dtype, flags, static_cast<size_t>(count), true, arguments);
  return {out, mean, spread};
}

// The gradient of x; of the weight and the bias too where a row has one weight (`by_row`).
Triple rows_backward(const H& g_, const H& x_, const Rows& rows, int64_t count, const H* weight_,
                     const H& mean_, const H& spread_, double eps, bool by_row) {
  const DType dtype = x_->dtype();
  H out = empty(x_->shape(), dtype, x_->device());
  const Shape grads = by_row ? Shape{count} : Shape{0};
  H weight_grad = empty(grads, dtype, x_->device());
  H bias_grad = empty(grads, dtype, x_->device());
  if (count == 0) return {out, weight_grad, bias_grad};
  const H g = operand(g_, dtype);
  const H x = packed(x_);
  const H mean = operand(mean_, dtype);
  const H spread = operand(spread_, dtype);
  const H weight = operand_or_none(weight_, dtype);
  const ScalarArgument small(dtype, eps);
  std::vector<Argument> arguments = {Argument::bytes(rows), memory_of(out),  memory_of(g),
                                     memory_of(x),          memory_of(mean), memory_of(spread)};
  if (weight) arguments.push_back(memory_of(weight));
  if (by_row) {
    arguments.push_back(memory_of(weight_grad));
    arguments.push_back(memory_of(bias_grad));
  }
  arguments.push_back(small.argument());
  const Flags flags{.weight = static_cast<bool>(weight),
                    .variance = by_row,
                    .wide = is_wide(x),
                    .held = held_of(dtype, rows, count)};
  launch_norm("norm_backward", x, dtype, flags, static_cast<size_t>(count), true, arguments);
  return {out, weight_grad, bias_grad};
}

// The struct of norm_channels.k.
struct Channels {
  int64_t n = 1;
  int64_t channels = 1;
  int64_t space = 1;
  int64_t stat_step = 0;
  int64_t per_stat = 1;
  int64_t chunk = 1;
  int64_t chunks = 1;
};

// Elements of a channel that are read at once.
HeldRow by_packs(const H& x, int64_t space) {
  HeldRow row;
  const DType dtype = x->dtype();
  if (space % pack_of(dtype) == 0 && x->numel() >= kFewElements) row.vector = pack_of(dtype);
  return row;
}
// Samples of a channel that a group takes.
int64_t samples_of(int64_t n, int64_t space) {
  constexpr int64_t kElements = 8192;
  return std::clamp<int64_t>(kElements / space, 1, std::max<int64_t>(n, 1));
}

// The sums over each channel of g u and of g, in `shape`; of dtype `to`, or x's.
Pair channel_grads(const H& g_, const H& x_, const H& mean_, const H& spread_, Channels s,
                   const Shape& shape, double eps, bool variance,
                   std::optional<DType> to = std::nullopt) {
  const DType dtype = x_->dtype();
  if (s.channels == 0 || s.n * s.space == 0) {
    H zeros = empty(shape, dtype, x_->device());
    fill_into(zeros, 0.0);
    return {zeros, zeros};
  }
  const H g = operand(g_, dtype);
  const H x = packed(x_);
  const H mean = operand(mean_, dtype);
  const H spread = operand(spread_, dtype);
  const bool columns = s.space == 1;
  constexpr int64_t kChunk = 128;
  const HeldRow held = by_packs(x, s.space);  // of no use to columns
  s.chunk = columns ? kChunk : samples_of(s.n, s.space);
  s.chunks = (s.n + s.chunk - 1) / s.chunk;
  const DType total = dtype == DType::f64 ? dtype : DType::f32;
  const DType result = to.value_or(dtype);
  const DType out = s.chunks == 1 ? result : total;
  const Shape parts = s.chunks == 1 ? shape : Shape{s.chunks, s.channels};
  const H by_unit = empty(parts, out, x->device());
  const H plain = empty(parts, out, x->device());
  const ScalarArgument small(dtype, eps);
  launch_norm("norm_channels", x, out,
              {.variance = variance, .columns = columns, .wide = is_wide(x), .held = held},
              static_cast<size_t>(s.channels * s.chunks), !columns,
              {Argument::bytes(s), memory_of(by_unit), memory_of(plain), memory_of(g), memory_of(x),
               memory_of(mean), memory_of(spread), small.argument()});
  if (s.chunks == 1) return {by_unit, plain};
  const auto joined = [&](const H& each) {
    const H sum = reduce({"0", "x", "a + b"}, each, Dims{0}, false, result);
    return view(sum, shape, contiguous_strides(shape), 0);
  };
  return {joined(by_unit), joined(plain)};
}

}  // namespace

// ---- Layers

Triple layer_norm(const H& x, const H* weight, const H* bias, int n, double eps) {
  Shape kept = x->shape();
  int64_t length = 1;
  for (int d = kept.rank() - n; d < kept.rank(); ++d) {
    length *= kept[d];
    kept[d] = 1;
  }
  return normalized_rows(x, layer_rows(length), kept.numel(), weight, bias, kept, eps, false);
}

Triple layer_norm_backward(const H& g, const H& x, const H* weight, const H& mean, const H& rstd,
                           int n) {
  Shape normalized;
  const Shape& shape = x->shape();
  for (int d = shape.rank() - n; d < shape.rank(); ++d) normalized.push_back(shape[d]);
  const int64_t length = normalized.numel();
  const int64_t count = mean->numel();
  auto [x_grad, none, neither] =
      rows_backward(g, x, layer_rows(length), count, weight, mean, rstd, 0.0, false);
  const Channels channels{
      .n = count, .channels = length, .stat_step = 1, .per_stat = positive(length)};
  auto [weight_grad, bias_grad] = channel_grads(g, x, mean, rstd, channels, normalized, 0.0, false);
  return {x_grad, weight_grad, bias_grad};
}

// ---- Groups of channels

Triple group_norm(const H& x, const H* weight, const H* bias, int64_t groups, double eps) {
  const Shape kept{x->shape()[0], groups};
  return normalized_rows(x, gpu::group_rows(x->shape(), groups), kept.numel(), weight, bias, kept,
                         eps, false);
}

Triple group_norm_backward(const H& g, const H& x, const H* weight, const H& mean, const H& rstd,
                           int64_t groups) {
  const Shape& shape = x->shape();
  auto [x_grad, none, neither] = rows_backward(g, x, gpu::group_rows(shape, groups),
                                               shape[0] * groups, weight, mean, rstd, 0.0, false);
  const Channels channels{.n = shape[0],
                          .channels = shape[1],
                          .space = space_of(shape),
                          .stat_step = groups,
                          .per_stat = positive(shape[1] / groups)};
  auto [weight_grad, bias_grad] =
      channel_grads(g, x, mean, rstd, channels, Shape{shape[1]}, 0.0, false);
  return {x_grad, weight_grad, bias_grad};
}

// ---- Batches

namespace {

// What norm_apply.k is told of the gradient through the statistics.
struct Sums {
  H g;
  H along;
  H plain;
  double count = 1.0;
};

H apply_statistics(const H& x_, const H& mean_, const H& var_, const H* weight_, const H* bias_,
                   double eps, bool is_backward, const Sums* sums = nullptr) {
  const DType dtype = x_->dtype();
  H out = empty(x_->shape(), dtype, x_->device());
  const int64_t n = out->numel();
  if (n == 0) return out;
  const H x = packed(x_);
  // Wider statistics than x stay what they are.
  const DType wide = dtype == DType::f64 ? dtype : DType::f32;
  const DType stat = mean_->dtype() == wide && var_->dtype() == wide ? wide : dtype;
  const H mean = operand(mean_, stat);
  const H var = operand(var_, stat);
  const H weight = operand_or_none(weight_, dtype);
  const H bias = operand_or_none(bias_, dtype);
  const int64_t channels = x->shape()[1];
  const int64_t space = space_of(x->shape());
  const HeldRow held = by_packs(x, space);
  const ScalarArgument small(dtype, eps);
  const ScalarArgument count(dtype, sums == nullptr ? 1.0 : sums->count);
  std::vector<Argument> arguments = {memory_of(out), memory_of(x), memory_of(mean), memory_of(var)};
  if (weight) arguments.push_back(memory_of(weight));
  if (bias) arguments.push_back(memory_of(bias));
  if (sums != nullptr) {
    for (const H* each : {&sums->g, &sums->along, &sums->plain})
      arguments.push_back(memory_of(*each));
    arguments.push_back(count.argument());
  }
  for (const int64_t* each : {&n, &channels, &space}) arguments.push_back(Argument::bytes(*each));
  arguments.push_back(small.argument());
  const Flags flags{.weight = static_cast<bool>(weight),
                    .bias = static_cast<bool>(bias),
                    .backward = is_backward,
                    .wide = is_wide(x),
                    .whole = sums != nullptr,
                    .held = held};
  launch_norm("norm_apply", x, stat, flags, static_cast<size_t>(n / held.vector), false, arguments);
  return out;
}

// Where a channel of a sample is this long, groups take chunks of samples of a channel, and results
// are computed element by element; else a group computes a whole channel.
constexpr int64_t kLongSpace = 16;
bool has_long_space(const H& x) { return x->numel() != 0 && space_of(x->shape()) >= kLongSpace; }

// Mean and variance of each channel, of the dtype that sums have.
Pair channel_statistics(const H& x) {
  const DType dtype = x->dtype();
  const DType total = dtype == DType::f64 ? dtype : DType::f32;
  struct {
    int64_t n, channels, space, chunk, chunks;
  } s{x->shape()[0], x->shape()[1], space_of(x->shape()), 1, 1};
  s.chunk = samples_of(s.n, s.space);
  s.chunks = (s.n + s.chunk - 1) / s.chunk;
  const Shape parts{s.chunks, s.channels};
  const H means = empty(parts, total, x->device());
  const H squares = empty(parts, total, x->device());
  H mean = empty(Shape{s.channels}, total, x->device());
  H variance = empty(Shape{s.channels}, total, x->device());
  launch_norm("norm_statistics", x, dtype, {.wide = is_wide(x), .held = by_packs(x, s.space)},
              static_cast<size_t>(s.channels * s.chunks), true,
              {Argument::bytes(s), memory_of(means), memory_of(squares), memory_of(x)});
  const int64_t each = s.chunk * s.space;
  const int64_t rest = (s.n - (s.chunks - 1) * s.chunk) * s.space;
  launch_norm("norm_merge", x, dtype, {.wide = is_wide(x)}, static_cast<size_t>(s.channels), false,
              {memory_of(mean), memory_of(variance), memory_of(means), memory_of(squares),
               Argument::bytes(s.channels), Argument::bytes(s.chunks), Argument::bytes(each),
               Argument::bytes(rest)});
  return {mean, variance};
}

}  // namespace

Triple batch_norm(const H& x_, const H* weight, const H* bias, double eps) {
  const int64_t channels = x_->shape()[1];
  if (has_long_space(x_)) {
    const H x = packed(x_);
    auto [mean, variance] = channel_statistics(x);
    return {apply_statistics(x, mean, variance, weight, bias, eps, false),
            operand(mean, x->dtype()), operand(variance, x->dtype())};
  }
  return normalized_rows(x_, batch_rows(x_->shape()), channels, weight, bias, Shape{channels}, eps,
                         true);
}

Triple batch_norm_backward(const H& g_, const H& x_, const H* weight, const H& mean, const H& var,
                           double eps) {
  const Shape& shape = x_->shape();
  if (has_long_space(x_)) {
    const DType dtype = x_->dtype();
    const H g = operand(g_, dtype);
    const H x = packed(x_);
    const Channels channels{.n = shape[0],
                            .channels = shape[1],
                            .space = space_of(shape),
                            .stat_step = 0,
                            .per_stat = 1};
    const DType total = dtype == DType::f64 ? dtype : DType::f32;
    auto [along, plain] =
        channel_grads(g, x, mean, var, channels, Shape{shape[1]}, eps, true, total);
    const Sums sums{g, along, plain, static_cast<double>(shape[0] * space_of(shape))};
    return {apply_statistics(x, mean, var, weight, nullptr, eps, true, &sums),
            operand(along, dtype), operand(plain, dtype)};
  }
  return rows_backward(g_, x_, batch_rows(shape), shape[1], weight, mean, var, eps, true);
}

H batch_norm_inference(const H& x, const H& mean, const H& var, const H* weight, const H* bias,
                       double eps) {
  return apply_statistics(x, mean, var, weight, bias, eps, false);
}

Triple batch_norm_inference_backward(const H& g, const H& x, const H& mean, const H& var,
                                     const H* weight, double eps) {
  const Shape& shape = x->shape();
  const Channels channels{
      .n = shape[0], .channels = shape[1], .space = space_of(shape), .stat_step = 0, .per_stat = 1};
  auto [weight_grad, bias_grad] =
      channel_grads(g, x, mean, var, channels, Shape{shape[1]}, eps, true);
  return {apply_statistics(g, mean, var, weight, nullptr, eps, true), weight_grad, bias_grad};
}

}  // namespace kiln::gpu
