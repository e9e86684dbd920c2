// Layer, group and batch normalization: kernels/norm*.k.
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
};
std::string norm_defines(DType dtype, DType out, const Flags& f) {
  return define("INDEX", index_type(f.wide)) + define("IN0", dialect_name(dtype)) +
         define("OUT", dialect_name(out)) + define("SCALAR", scalar_type(dtype)) +
         arithmetic(dtype) + (f.weight ? define("HAS_WEIGHT", "1") : "") +
         (f.bias ? define("HAS_BIAS", "1") : "") + (f.variance ? define("VARIANCE", "1") : "") +
         (f.columns ? define("COLUMNS", "1") : "") + (f.backward ? define("BACKWARD", "1") : "");
}

void launch_norm(Literal file, const H& x, DType out, const Flags& f, size_t items, bool groups,
                 const std::vector<Argument>& arguments) {
  const auto defines = [&] { return norm_defines(x->dtype(), out, f); };
  const Kernel kernel{.file = file,
                      .choice = choice(x->dtype(), out, f.weight, f.bias, f.variance, f.columns,
                                       f.backward, f.wide),
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
                    .wide = is_wide(x)};
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
  const Flags flags{.weight = static_cast<bool>(weight), .variance = by_row, .wide = is_wide(x)};
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

// The sums over each channel of g u and of g, in `shape`.
Pair channel_grads(const H& g_, const H& x_, const H& mean_, const H& spread_, Channels s,
                   const Shape& shape, double eps, bool variance) {
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
  constexpr int64_t kChunk = 128;
  const bool columns = s.space == 1;
  s.chunk = columns ? kChunk : s.n;
  s.chunks = columns ? (s.n + kChunk - 1) / kChunk : 1;
  const DType total = dtype == DType::f64 ? dtype : DType::f32;
  const DType out = s.chunks == 1 ? dtype : total;
  const Shape parts = s.chunks == 1 ? shape : Shape{s.chunks, s.channels};
  const H by_unit = empty(parts, out, x->device());
  const H plain = empty(parts, out, x->device());
  const ScalarArgument small(dtype, eps);
  launch_norm("norm_channels", x, out,
              {.variance = variance, .columns = columns, .wide = is_wide(x)},
              static_cast<size_t>(columns ? s.channels * s.chunks : s.channels), !columns,
              {Argument::bytes(s), memory_of(by_unit), memory_of(plain), memory_of(g), memory_of(x),
               memory_of(mean), memory_of(spread), small.argument()});
  if (s.chunks == 1) return {by_unit, plain};
  const auto joined = [&](const H& each) {
    const H sum = reduce({"0", "x", "a + b"}, each, Dims{0}, false, dtype);
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

Triple batch_norm(const H& x, const H* weight, const H* bias, double eps) {
  const int64_t channels = x->shape()[1];
  return normalized_rows(x, batch_rows(x->shape()), channels, weight, bias, Shape{channels}, eps,
                         true);
}

Triple batch_norm_backward(const H& g, const H& x, const H* weight, const H& mean, const H& var,
                           double eps) {
  return rows_backward(g, x, batch_rows(x->shape()), x->shape()[1], weight, mean, var, eps, true);
}

namespace {

H apply_statistics(const H& x_, const H& mean_, const H& var_, const H* weight_, const H* bias_,
                   double eps, bool is_backward) {
  const DType dtype = x_->dtype();
  H out = empty(x_->shape(), dtype, x_->device());
  const int64_t n = out->numel();
  if (n == 0) return out;
  const H x = packed(x_);
  const H mean = operand(mean_, dtype);
  const H var = operand(var_, dtype);
  const H weight = operand_or_none(weight_, dtype);
  const H bias = operand_or_none(bias_, dtype);
  const int64_t channels = x->shape()[1];
  const int64_t space = space_of(x->shape());
  const ScalarArgument small(dtype, eps);
  std::vector<Argument> arguments = {memory_of(out), memory_of(x), memory_of(mean), memory_of(var)};
  if (weight) arguments.push_back(memory_of(weight));
  if (bias) arguments.push_back(memory_of(bias));
  for (const int64_t* each : {&n, &channels, &space}) arguments.push_back(Argument::bytes(*each));
  arguments.push_back(small.argument());
  const Flags flags{.weight = static_cast<bool>(weight),
                    .bias = static_cast<bool>(bias),
                    .backward = is_backward,
                    .wide = is_wide(x)};
  launch_norm("norm_apply", x, dtype, flags, static_cast<size_t>(n), false, arguments);
  return out;
}

}  // namespace

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
