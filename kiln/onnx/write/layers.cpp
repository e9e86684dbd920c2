// Products, convolutions, pools, norms and attention as ONNX operators.
#include <algorithm>

#include "kiln/onnx/write/writer.h"
#include "kiln/tensor/creation.h"

namespace kiln::onnx {

namespace {

using Names = Writer::Names;

void matmul(Writer& w, const Node& n) { w.out(n, w.add("MatMul", {w.in(n, 0), w.in(n, 1)})); }

std::string linear_of(Writer& w, const Node& n) {
  const std::string x = w.in(n, 0), weight = w.in(n, 1);
  if (w.shape(n, 0).rank() == 2 && w.dtype(n, 0) != DType::bf16) {
    Names inputs{x, weight};
    if (w.has(n, 2)) inputs.push_back(w.in(n, 2));
    return w.add("Gemm", inputs, {{"transB", int64_t{1}}});
  }
  const std::string y = w.add("MatMul", {x, w.permuted(weight, {1, 0})});
  return w.has(n, 2) ? w.add("Add", {y, w.in(n, 2)}) : y;
}
void linear(Writer& w, const Node& n) { w.out(n, linear_of(w, n)); }
void linear_activation(Writer& w, const Node& n) {
  const std::string y = activated(w, linear_of(w, n), w.get<Activation>(n, 4), w.dtype(n, 0));
  w.out(n, w.has(n, 3) ? w.add("Add", {y, w.in(n, 3)}) : y);
}

template <size_t n>
std::vector<int64_t> all_of(const std::array<int64_t, n>& v) {
  return {v.begin(), v.end()};
}
template <size_t n>
std::vector<int64_t> pads_of(const std::array<int64_t, n>& v) {
  std::vector<int64_t> out = all_of(v);
  out.insert(out.end(), v.begin(), v.end());
  return out;
}
std::vector<int64_t> spatial(const Shape& s) { return {s.begin() + 2, s.end()}; }

template <class Options>
std::string convolved(Writer& w, Names inputs, const Shape& weight, const Options& o) {
  return w.add("Conv", std::move(inputs),
               {{"kernel_shape", spatial(weight)},
                {"strides", all_of(o.stride)},
                {"pads", pads_of(o.padding)},
                {"dilations", all_of(o.dilation)},
                {"group", o.groups}});
}
template <class Options>
std::string conv_of(Writer& w, const Node& n, size_t options) {
  Names inputs{w.in(n, 0), w.in(n, 1)};
  if (w.has(n, 2)) inputs.push_back(w.in(n, 2));
  return convolved(w, std::move(inputs), w.shape(n, 1), w.get<Options>(n, options));
}
void conv2d(Writer& w, const Node& n) { w.out(n, conv_of<ConvOptions>(w, n, 3)); }
void conv3d(Writer& w, const Node& n) { w.out(n, conv_of<Conv3dOptions>(w, n, 3)); }
void conv2d_activation(Writer& w, const Node& n) {
  std::string y = conv_of<ConvOptions>(w, n, 5);
  if (w.has(n, 3)) y = w.add("Add", {y, w.in(n, 3)});
  w.out(n, activated(w, y, w.get<Activation>(n, 4), w.dtype(n, 0)));
}
void separable_block(Writer& w, const Node& n) {
  std::string y = w.in(n, 0);
  const auto convolve = [&](size_t weight, const ConvOptions& options) {
    Names inputs{y, w.in(n, weight)};
    if (w.has(n, weight + 1)) inputs.push_back(w.in(n, weight + 1));
    y = convolved(w, std::move(inputs), w.shape(n, weight), options);
  };
  const auto activate = [&](size_t activation) {
    y = activated(w, y, w.get<Activation>(n, activation), w.dtype(n, 0));
  };
  if (w.has(n, 1)) {
    convolve(1, ConvOptions{});
    activate(3);
  }
  convolve(4, w.get<ConvOptions>(n, 11));
  activate(6);
  if (w.has(n, 7)) {
    convolve(7, ConvOptions{});
    if (w.has(n, 9)) y = w.add("Add", {y, w.in(n, 9)});
    activate(10);
  }
  w.out(n, y);
}
// The result of shape y of g.
template <class Options>
std::string transposed(Writer& w, Names inputs, const Shape& weight, const Shape& g, const Shape& y,
                       const Options& o) {
  std::vector<int64_t> more;
  for (size_t d = 0; d < o.stride.size(); ++d) {
    const int i = static_cast<int>(d) + 2;
    more.push_back(
        y[i] - ((g[i] - 1) * o.stride[d] - 2 * o.padding[d] + o.dilation[d] * (weight[i] - 1) + 1));
  }
  return w.add("ConvTranspose", std::move(inputs),
               {{"kernel_shape", spatial(weight)},
                {"strides", all_of(o.stride)},
                {"pads", pads_of(o.padding)},
                {"dilations", all_of(o.dilation)},
                {"output_padding", more},
                {"group", o.groups}});
}
void conv_transpose2d(Writer& w, const Node& n) {
  Names inputs{w.in(n, 0), w.in(n, 1)};
  if (w.has(n, 2)) inputs.push_back(w.in(n, 2));
  const std::string y = transposed(w, std::move(inputs), w.shape(n, 1), w.shape(n, 0),
                                   w.get<Shape>(n, 4), w.get<ConvOptions>(n, 5));
  w.out(n, activated(w, y, w.get<Activation>(n, 3), w.dtype(n, 0)));
}
// conv2d_input_grad and conv3d_input_grad(weight, g, shape of the result).
template <class Options>
void conv_input_grad(Writer& w, const Node& n) {
  w.out(n, transposed(w, {w.in(n, 1), w.in(n, 0)}, w.shape(n, 0), w.shape(n, 1), w.get<Shape>(n, 2),
                      w.get<Options>(n, 3)));
}

void max_pool2d_values(Writer& w, const Node& n) {
  const PoolOptions& o = w.get<PoolOptions>(n, 1);
  w.out(n, w.add("MaxPool", {w.in(n, 0)},
                 {{"kernel_shape", all_of(o.kernel)},
                  {"strides", all_of(o.stride)},
                  {"pads", pads_of(o.padding)},
                  {"dilations", all_of(o.dilation)},
                  {"ceil_mode", int64_t{o.ceil_mode}}}));
}
void max_pool2d(Writer& w, const Node& n) {
  max_pool2d_values(w, n);
  w.leave_out(n, 1, "it reads the places of a max pool, which ONNX counts otherwise");
}
void avg_pool2d(Writer& w, const Node& n) {
  const PoolOptions& o = w.get<PoolOptions>(n, 1);
  w.out(n, w.add("AveragePool", {w.in(n, 0)},
                 {{"kernel_shape", all_of(o.kernel)},
                  {"strides", all_of(o.stride)},
                  {"pads", pads_of(o.padding)},
                  {"ceil_mode", int64_t{o.ceil_mode}},
                  {"count_include_pad", int64_t{o.count_include_pad}}}));
}

template <bool kLog>
void softmax(Writer& w, const Node& n) {
  w.out(n, w.add(kLog ? "LogSoftmax" : "Softmax", {w.in(n, 0)},
                 {{"axis", int64_t{w.get<int>(n, 1)}}}));
}

// An optional weight or bias; ones or zeros where there is none.
std::string given_or(Writer& w, const Node& n, size_t argument, const Shape& shape, double value) {
  if (w.has(n, argument)) return w.in(n, argument);
  return w.zeros_or_ones(shape, w.dtype(n, 0), value);
}
void batch_norm_inference(Writer& w, const Node& n) {
  const Shape channels{w.shape(n, 0)[1]};
  // Scale and bias share a dtype, and so do the mean and the variance.
  const auto param = [&](size_t argument, size_t other, double otherwise) {
    const size_t given = w.has(n, argument) ? argument : w.has(n, other) ? other : size_t{0};
    const DType type = w.dtype(n, given);
    return w.has(n, argument) ? w.in(n, argument) : w.zeros_or_ones(channels, type, otherwise);
  };
  w.out(n, w.add("BatchNormalization",
                 {w.in(n, 0), param(3, 4, 1.0), param(4, 3, 0.0), w.in(n, 1), w.in(n, 2)},
                 {{"epsilon", static_cast<float>(w.get<double>(n, 5))}}));
}
// With the statistics of the batch: each channel by itself.
void batch_norm(Writer& w, const Node& n) {
  const Shape& shape = w.shape(n, 0);
  std::vector<int64_t> dims;
  Shape channel = Shape::filled(shape.rank() - 1, 1);
  channel[0] = shape[1];
  for (int d = 0; d < shape.rank(); ++d) {
    if (d != 1) dims.push_back(d);
  }
  const DType dtype = w.dtype(n, 0);
  const DType wide = size_of(dtype) == 2 ? DType::f32 : dtype;
  const auto cast = [&](const std::string& x, DType from, DType to) {
    return from == to ? x : w.add("Cast", {x}, {{"to", int64_t{data_type_of(to)}}});
  };
  const auto mean_of = [&](const std::string& x) {
    return w.add("ReduceMean", {x, w.ints(dims)}, {{"keepdims", int64_t{1}}});
  };
  const std::string x = cast(w.in(n, 0), dtype, wide);
  const std::string mean = mean_of(x);
  const std::string d = w.add("Sub", {x, mean});
  const std::string var = mean_of(w.add("Mul", {d, d}));
  const std::string eps = w.number(w.get<double>(n, 3), wide);
  std::string y = w.add("Div", {d, w.add("Sqrt", {w.add("Add", {var, eps})})});
  const auto param = [&](size_t argument) {
    return w.reshaped(cast(w.in(n, argument), w.dtype(n, argument), wide), channel);
  };
  if (w.has(n, 1)) y = w.add("Mul", {y, param(1)});
  if (w.has(n, 2)) y = w.add("Add", {y, param(2)});
  w.out(n, cast(y, wide, dtype), 0);
  w.out(n, w.reshaped(mean, {shape[1]}), 1);
  w.out(n, w.reshaped(var, {shape[1]}), 2);
}
void layer_norm(Writer& w, const Node& n) {
  const int dims = w.get<int>(n, 3), rank = w.shape(n, 0).rank();
  Shape last;
  for (int d = rank - dims; d < rank; ++d) last.push_back(w.shape(n, 0)[d]);
  Names inputs{w.in(n, 0), given_or(w, n, 1, last, 1.0)};
  if (w.has(n, 2)) inputs.push_back(w.in(n, 2));
  const Names all = w.add_many(
      "LayerNormalization", inputs,
      {{"axis", int64_t{-dims}}, {"epsilon", static_cast<float>(w.get<double>(n, 4))}}, 3);
  for (size_t i = 0; i < 3; ++i) w.out(n, all[i], i);
}
// Each group is a row: normalized without a weight, and then scaled by channel.
void group_norm(Writer& w, const Node& n) {
  const Shape& shape = w.shape(n, 0);
  const int64_t groups = w.get<int64_t>(n, 3);
  const int64_t size = shape.numel() / std::max<int64_t>(1, shape[0] * groups);
  std::string x = w.reshaped(w.in(n, 0), {shape[0], groups, size});
  x = w.add("LayerNormalization", {x, w.zeros_or_ones({size}, w.dtype(n, 0), 1.0)},
            {{"axis", int64_t{-1}}, {"epsilon", static_cast<float>(w.get<double>(n, 4))}});
  x = w.reshaped(x, shape);
  Shape channel = Shape::filled(shape.rank() - 1, 1);
  channel[0] = shape[1];
  if (w.has(n, 1)) x = w.add("Mul", {x, w.reshaped(w.in(n, 1), channel)});
  if (w.has(n, 2)) x = w.add("Add", {x, w.reshaped(w.in(n, 2), channel)});
  w.out(n, x);
  for (size_t i = 1; i < 3; ++i) w.leave_out(n, i, "it reads the statistics of a group norm");
}

// Keys and values of one head for several heads of queries.
std::string repeated(Writer& w, const std::string& x, const Shape& s, int64_t times) {
  if (times == 1) return x;
  const std::string each = w.reshaped(x, {s[0], s[1], 1, s[2], s[3]});
  const std::string all = w.add("Expand", {each, w.ints({s[0], s[1], times, s[2], s[3]})});
  return w.reshaped(all, {s[0], s[1] * times, s[2], s[3]});
}
void attention(Writer& w, const Node& n) {
  const AttentionOptions& o = w.get<AttentionOptions>(n, 4);
  if (o.dropout > 0.0) w.refuse(n, "it draws random numbers; expected a model in eval()");
  const Shape &q = w.shape(n, 0), &k = w.shape(n, 1), &v = w.shape(n, 2);
  const DType dtype = w.dtype(n, 0);
  const int64_t times = q[1] / k[1];
  const std::string keys = w.permuted(repeated(w, w.in(n, 1), k, times), {0, 1, 3, 2});
  std::string scores =
      w.add("MatMul", {w.add("Mul", {w.in(n, 0), w.number(o.scale, dtype)}), keys});
  if (w.has(n, 3)) scores = w.add("Add", {scores, w.in(n, 3)});
  if (o.causal && w.has_free_sizes()) {
    const std::string below = w.add("Expand", {w.number(-1.0 / 0.0, dtype), w.ints({q[2], k[2]})});
    const std::string from = w.scalar(Scalar(int64_t{1}), DType::i64);
    scores = w.add("Add", {scores, w.add("Trilu", {below, from}, {{"upper", int64_t{1}}})});
  } else if (o.causal) {
    std::vector<double> hidden;
    for (int64_t l = 0; l < q[2]; ++l) {
      for (int64_t s = 0; s < k[2]; ++s) hidden.push_back(s > l ? -1.0 / 0.0 : 0.0);
    }
    scores = w.add("Add", {scores, w.constant(TensorData(hidden, {q[2], k[2]}).cast(dtype))});
  }
  const std::string weights = w.add("Softmax", {scores}, {{"axis", int64_t{-1}}});
  w.out(n, w.add("MatMul", {weights, repeated(w, w.in(n, 2), v, times)}));
  w.leave_out(n, 1, "it reads the logarithms of the sums of an attention");
}

void cross_entropy(Writer& w, const Node& n) {
  const CrossEntropyOptions& o = w.get<CrossEntropyOptions>(n, 2);
  const DType dtype = w.dtype(n, 0);
  const auto integer = [&](int64_t v) { return w.scalar(Scalar(v), DType::i64); };
  const std::string x = w.in(n, 0), classes = w.in(n, 1), columns = w.ints({1});
  const std::string ignored = w.add("Equal", {classes, integer(o.ignore_index)});
  const std::string safe = w.add("Where", {ignored, integer(0), classes});
  const std::string logs = w.add("LogSoftmax", {x}, {{"axis", int64_t{1}}});
  const std::string picked =
      w.add("GatherElements", {logs, w.add("Unsqueeze", {safe, columns})}, {{"axis", int64_t{1}}});
  std::string loss = w.add("Neg", {w.add("Squeeze", {picked, columns})});
  if (o.label_smoothing > 0.0) {
    const std::string mean = w.add("ReduceMean", {logs, columns}, {{"keepdims", int64_t{0}}});
    loss = w.add("Sub", {w.add("Mul", {loss, w.number(1.0 - o.label_smoothing, dtype)}),
                         w.add("Mul", {mean, w.number(o.label_smoothing, dtype)})});
  }
  w.out(n, w.add("Where", {ignored, w.number(0.0, dtype), loss}));
  w.out(n, w.add("ReduceLogSumExp", {x, columns}, {{"keepdims", int64_t{0}}}), 1);
}

void nll_loss(Writer& w, const Node& n) {
  std::vector<std::string> in = {w.in(n, 0), w.in(n, 1)};
  if (w.has(n, 2)) in.push_back(w.in(n, 2));
  w.out(n, w.add("NegativeLogLikelihoodLoss", in,
                 {{"reduction", std::string("none")}, {"ignore_index", w.get<int64_t>(n, 3)}}));
}

// Every window's elements are gathered; shorter ones repeat their last.
void window_argmax(Writer& w, const Node& n) {
  const Shape &x = w.shape(n, 0), &out = w.get<Shape>(n, 3), &longest = w.get<Shape>(n, 4);
  const std::string starts = w.in(n, 1), lengths = w.in(n, 2);
  const auto integer = [&](int64_t v) { return w.scalar(Scalar(v), DType::i64); };
  const int64_t rows = w.shape(n, 1)[0], planes = x[0] * x[1];
  std::string places;  // [rows, OD, OH, OW, LD, LH, LW]
  int64_t begin = 0;
  for (int d = 0; d < 3; ++d) {
    Shape window = Shape::filled(7, 1), steps = window;
    window[d + 1] = out[d];
    steps[d + 4] = longest[d];
    const std::string sizes = w.reshaped(w.sliced(lengths, 0, begin, begin + out[d]), window);
    window[0] = rows;
    const std::string first = w.reshaped(w.sliced(starts, 1, begin, begin + out[d]), window);
    const std::string step = w.reshaped(w.counted(0, 1, longest[d], DType::i64), steps);
    const std::string within = w.add("Min", {step, w.add("Sub", {sizes, integer(1)})});
    const std::string at = w.add("Add", {first, within});
    places = d == 0 ? at : w.add("Add", {w.add("Mul", {places, integer(x[d + 2])}), at});
    begin += out[d];
  }
  const int64_t windows = out.numel(), size = longest.numel();
  const std::string index = w.add(
      "Expand", {w.reshaped(places, {rows, windows * size}), w.ints({planes, windows * size})});
  const std::string values =
      w.add("GatherElements", {w.reshaped(w.in(n, 0), {planes, x[2] * x[3] * x[4]}), index},
            {{"axis", int64_t{1}}});
  const std::string best = w.add("ArgMax", {w.reshaped(values, {planes, windows, size})},
                                 {{"axis", int64_t{2}}, {"keepdims", int64_t{1}}});
  const std::string found = w.add(
      "GatherElements", {w.reshaped(index, {planes, windows, size}), best}, {{"axis", int64_t{2}}});
  w.out(n, w.reshaped(found, {x[0], x[1], windows}));
}

void dropout(Writer& w, const Node& n) {
  w.refuse(n, "it draws random numbers; expected a model in eval()");
}

constexpr Translation kLayersRows[] = {
    {graph::kRow_float_matmul, matmul},
    {graph::kRow_int_matmul, matmul},
    {graph::kRow_float_linear, linear},
    {graph::kRow_float_linear_activation, linear_activation},
    {graph::kRow_float_conv2d, conv2d},
    {graph::kRow_float_conv2d_activation, conv2d_activation},
    {graph::kRow_float_separable_block, separable_block},
    {graph::kRow_float_conv_transpose2d, conv_transpose2d},
    {graph::kRow_float_conv2d_input_grad, conv_input_grad<ConvOptions>},
    {graph::kRow_float_conv3d, conv3d},
    {graph::kRow_float_conv3d_input_grad, conv_input_grad<Conv3dOptions>},
    {graph::kRow_float_max_pool2d, max_pool2d},
    {graph::kRow_float_max_pool2d_values, max_pool2d_values},
    {graph::kRow_float_avg_pool2d, avg_pool2d},
    {graph::kRow_float_softmax, softmax<false>},
    {graph::kRow_float_log_softmax, softmax<true>},
    {graph::kRow_float_batch_norm_inference, batch_norm_inference},
    {graph::kRow_float_batch_norm, batch_norm},
    {graph::kRow_float_layer_norm, layer_norm},
    {graph::kRow_float_group_norm, group_norm},
    {graph::kRow_float_attention, attention},
    {graph::kRow_float_cross_entropy, cross_entropy},
    {graph::kRow_float_nll_loss, nll_loss},
    {graph::kRow_float_window_argmax, window_argmax},
    {graph::kRow_float_dropout, dropout},
    {graph::kRow_float_random, dropout},
};

}  // namespace

std::span<const Translation> layer_translations() { return kLayersRows; }

}  // namespace kiln::onnx
