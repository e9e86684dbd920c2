// Activations, convolution, pooling, normalization.
#include "kiln/backend/conformance/cases.h"

namespace kiln::conformance {
namespace {

const Shape kShapes[] = {{}, {0}, {1}, {3, 4}, {67}};
const Shape kLargeLayer = {130, 257};

// Ops of one tensor, and with `backward` their gradients of (g, saved).
void add_elementwise(CaseList& list, DType dtype) {
  const Tolerance close = {8, 4};
  for (const char* op : {"float_relu", "float_sigmoid", "float_silu"}) {
    for (const Shape& shape : kShapes) {
      list.add(op, {list.uniform(shape, dtype, -6, 6)}, close).expandable = true;
    }
    list.add(op, {values({0, -0.0, kInf, kNan, 100, 200}, dtype)}, close);
    if (dtype == f32) list.add(op, {list.uniform(kLargeLayer, dtype, -6, 6)}, close);
  }
  // Far below 0 the sigmoid keeps its relative accuracy, and nothing overflows.
  list.add("float_sigmoid", {values({-kInf, -200, -90, -40, -20, -5}, dtype)}, {64, 0.01});
  list.add("float_relu", {values({-kInf, -1e-3, 1e-3}, dtype)});
  struct Backward {
    const char* op;
    double low, high;
  };
  for (const Backward& op :
       {Backward{"float_relu_backward", -2, 2}, Backward{"float_sigmoid_backward", 0, 1},
        Backward{"float_tanh_backward", -1, 1}, Backward{"float_silu_backward", -6, 6}}) {
    for (const Shape& shape : kShapes) {
      list.add(op.op, {list.uniform(shape, dtype), list.uniform(shape, dtype, op.low, op.high)},
               close)
          .expandable = true;
    }
    if (dtype == f32) {
      list.add(
          op.op,
          {list.uniform(kLargeLayer, dtype), list.uniform(kLargeLayer, dtype, op.low, op.high)},
          close);
    }
  }
  list.add("float_relu_backward",
           {values({1, 2, 3, kNan, kNan}, dtype), values({0, kNan, kInf, 0, 1}, dtype)});
  for (bool approximate : {false, true}) {
    for (const Shape& shape : kShapes) {
      list.add("float_gelu", {list.uniform(shape, dtype, -6, 6), approximate}, close).expandable =
          true;
      list.add("float_gelu_backward",
               {list.uniform(shape, dtype), list.uniform(shape, dtype, -6, 6), approximate},
               {16, 64})
          .expandable = true;
    }
    list.add("float_gelu", {values({0, kInf, kNan, 30, -30}, dtype), approximate}, close);
    if (dtype != f32) continue;
    list.add("float_gelu", {list.uniform(kLargeLayer, dtype, -6, 6), approximate}, close);
    list.add(
        "float_gelu_backward",
        {list.uniform(kLargeLayer, dtype), list.uniform(kLargeLayer, dtype, -6, 6), approximate},
        {16, 64});
  }
}

void add_softmax(CaseList& list, DType dtype) {
  const std::pair<Shape, int> forms[] = {{{5}, 0},        {{1}, 0},       {{3, 4}, 0}, {{3, 4}, 1},
                                         {{3, 4, 5}, 1},  {{0, 3}, 1},    {{3, 0}, 1}, {{2, 67}, 1},
                                         {{130, 257}, 1}, {{130, 257}, 0}};
  const auto add = [&](const char* op, std::vector<Argument> arguments, Tolerance tolerance) {
    Case& c = list.add(op, std::move(arguments), tolerance);
    c.elementwise = false;
    c.expandable = true;
  };
  for (const auto& [shape, dim] : forms) {
    if (shape.numel() > 10000 && dtype != f32) continue;
    add("float_softmax", {list.uniform(shape, dtype, -5, 5), dim}, {16, 1});
    add("float_log_softmax", {list.uniform(shape, dtype, -5, 5), dim}, {16, 64});
    add("float_softmax_backward",
        {list.uniform(shape, dtype), list.uniform(shape, dtype, 0, 1), dim}, {16, 64});
    add("float_log_softmax_backward",
        {list.uniform(shape, dtype), list.uniform(shape, dtype, -3, 0), dim}, {16, 256});
  }
  const Operand odd =
      values({100, 200, 300, -kInf, 0, 1, kNan, 1, 2, -1000, 1000, 0}, {4, 3}, dtype);
  const Operand all_infinite = values({-kInf, -kInf, 1, kInf, 2, 3}, {3, 2}, dtype);
  for (const Operand& x : {odd, all_infinite}) {
    add("float_softmax", {x, 1}, {16, 1});
    add("float_log_softmax", {x, 1}, {16, 16});
  }
}

struct Convolution {
  Shape x, weight;
  ConvOptions options;
};

void add_convolution(CaseList& list, DType dtype) {
  std::vector<Convolution> forms = {
      {{1, 1, 1, 1}, {1, 1, 1, 1}, {}},
      {{2, 3, 5, 6}, {4, 3, 3, 2}, {}},
      {{2, 3, 8, 7}, {4, 3, 1, 1}, {}},
      {{2, 3, 8, 7}, {4, 3, 1, 1}, {.stride = {2, 3}}},
      {{2, 3, 7, 8}, {4, 3, 3, 3}, {.stride = {2, 1}, .padding = {1, 2}}},
      {{2, 3, 9, 9}, {4, 3, 3, 2}, {.stride = {2, 2}, .padding = {2, 1}, .dilation = {2, 3}}},
      {{2, 4, 6, 6}, {6, 2, 3, 3}, {.padding = {1, 1}, .groups = 2}},
      {{2, 4, 6, 6}, {8, 1, 3, 3}, {.stride = {2, 2}, .padding = {1, 1}, .groups = 4}},
      // A stride that never meets the last row; a kernel that covers everything; padding only on
      // one side in effect.
      {{1, 2, 6, 6}, {3, 2, 3, 3}, {.stride = {2, 2}}},
      {{1, 2, 4, 5}, {3, 2, 4, 5}, {}},
      {{1, 2, 2, 2}, {3, 2, 3, 3}, {.padding = {1, 1}}},
      {{1, 2, 3, 3}, {3, 2, 2, 2}, {.stride = {4, 4}, .padding = {1, 1}}},
      {{0, 3, 5, 5}, {4, 3, 3, 3}, {}},
      // One row or one column, as conv1d runs.
      {{2, 3, 1, 9}, {4, 3, 1, 3}, {.padding = {0, 1}}},
  };
  if (dtype == f32 || dtype == bf16) {
    forms.push_back({{8, 8, 14, 14}, {16, 8, 3, 3}, {.padding = {1, 1}}});
    forms.push_back({{16, 3, 12, 12}, {32, 3, 5, 5}, {.stride = {2, 2}, .padding = {2, 2}}});
  }
  for (const auto& [x, weight, o] : forms) {
    const Shape out = {x[0], weight[0],
                       conv_output_size(x[2], weight[2], o.stride[0], o.padding[0], o.dilation[0]),
                       conv_output_size(x[3], weight[3], o.stride[1], o.padding[1], o.dilation[1])};
    const double terms = static_cast<double>(weight[1] * weight[2] * weight[3]);
    const double positions = static_cast<double>(x[0] * out[2] * out[3]);
    const auto add = [&](const char* op, std::vector<Argument> arguments, double absolute) {
      Case& c = list.add(op, std::move(arguments), {8, 8 + absolute});
      c.elementwise = false;
      c.expandable = true;
    };
    add("float_conv2d", {list.uniform(x, dtype), list.uniform(weight, dtype), Absent(), o}, terms);
    add("float_conv2d",
        {list.uniform(x, dtype), list.uniform(weight, dtype), list.uniform(Shape{weight[0]}, dtype),
         o},
        terms);
    using enum Activation;
    for (const Activation activation : {none, relu, gelu, silu, tanh, sigmoid, relu6, hardswish}) {
      const bool bare = activation == gelu || activation == relu6;
      const auto bias = bare ? Argument(Absent()) : Argument(list.uniform(Shape{weight[0]}, dtype));
      const auto residual = bare ? Argument(Absent()) : Argument(list.uniform(out, dtype));
      add("float_conv2d_activation",
          {list.uniform(x, dtype), list.uniform(weight, dtype), bias, residual, activation, o},
          terms + 8);
    }
    const double met = terms * static_cast<double>(weight[0]) / static_cast<double>(weight[1]);
    add("float_conv2d_input_grad", {list.uniform(weight, dtype), list.uniform(out, dtype), x, o},
        met);
    for (const Activation activation : {none, relu, gelu, sigmoid}) {
      const bool bare = activation == gelu;
      add("float_conv_transpose2d",
          {list.uniform(out, dtype), list.uniform(weight, dtype),
           bare ? Argument(Absent()) : Argument(list.uniform(Shape{x[1]}, dtype)), activation, x,
           o},
          met + 8);
    }
    add("float_conv2d_weight_grad", {list.uniform(x, dtype), list.uniform(out, dtype), weight, o},
        positions);
  }
}

void add_separable_blocks(CaseList& list, DType dtype) {
  struct Form {
    Shape x;
    int64_t channels, side;
    ConvOptions options;
  };
  const std::vector<Form> forms = {
      {{2, 3, 5, 6}, 4, 3, {.padding = {1, 1}, .groups = 4}},
      {{1, 2, 7, 7}, 6, 2, {.stride = {2, 1}, .dilation = {1, 2}, .groups = 6}},
      {{0, 3, 5, 5}, 4, 3, {.padding = {1, 1}, .groups = 4}},
  };
  const auto size_of = [](const Shape& s, int64_t channels, int64_t side, const ConvOptions& o) {
    const auto along = [&](int d) {
      const auto i = static_cast<size_t>(d - 2);
      return conv_output_size(s[d], side, o.stride[i], o.padding[i], o.dilation[i]);
    };
    return Shape{s[0], channels, along(2), along(3)};
  };
  using enum Activation;
  for (const auto& [x, channels, side, o] : forms) {
    for (const Activation activation : {none, relu6, silu}) {
      const auto uniform = [&](const Shape& shape) { return list.uniform(shape, dtype); };
      const auto maybe = [&](bool there, const Shape& shape) {
        return there ? Argument(uniform(shape)) : Argument(Absent());
      };
      const bool bare = activation == none;
      const auto add = [&](bool expands, bool projects) {
        const Shape wide = {x[0], channels, x[2], x[3]};
        const Shape out = size_of(wide, 5, side, o);
        Case& c =
            list.add("float_separable_block",
                     {uniform(expands ? x : wide), maybe(expands, Shape{channels, x[1], 1, 1}),
                      maybe(expands && !bare, Shape{channels}), activation,
                      uniform(Shape{channels, 1, side, side}), maybe(!bare, Shape{channels}),
                      activation == silu ? hardswish : activation,
                      maybe(projects, Shape{5, channels, 1, 1}), maybe(projects && !bare, Shape{5}),
                      maybe(projects && activation == relu6, out), projects ? activation : none, o},
                     {32, 32.0 + 4.0 * static_cast<double>(side * side * x[1] * channels)});
        c.elementwise = false;
        c.expandable = true;
      };
      add(true, false);
      add(false, true);
      add(true, true);
    }
  }
}

void add_volume_convolution(CaseList& list, DType dtype) {
  struct Form {
    Shape x, weight;
    Conv3dOptions options;
  };
  std::vector<Form> forms = {
      {{1, 1, 1, 1, 1}, {1, 1, 1, 1, 1}, {}},
      {{2, 3, 4, 5, 6}, {4, 3, 2, 3, 2}, {}},
      {{2, 3, 2, 4, 3}, {4, 3, 1, 1, 1}, {}},
      {{2, 3, 2, 4, 3}, {4, 3, 1, 1, 1}, {.stride = {2, 1, 2}}},
      {{2, 3, 2, 4, 5}, {4, 3, 1, 3, 3}, {.padding = {0, 1, 1}}},
      {{1, 2, 5, 4, 4}, {3, 2, 3, 3, 3}, {.padding = {1, 1, 1}}},
      {{1, 2, 5, 4, 4}, {3, 2, 3, 3, 3}, {.stride = {2, 1, 2}, .padding = {2, 1, 0}}},
      {{1, 2, 7, 5, 6},
       {4, 2, 3, 2, 2},
       {.stride = {1, 2, 1}, .padding = {3, 0, 1}, .dilation = {3, 1, 2}}},
      {{1, 2, 5, 4, 4}, {3, 2, 2, 1, 1}, {.dilation = {2, 1, 1}}},
      {{1, 4, 3, 4, 5}, {6, 2, 2, 3, 3}, {.padding = {1, 1, 1}, .groups = 2}},
      {{2, 3, 4, 4, 3}, {6, 1, 3, 2, 3}, {.stride = {1, 2, 1}, .padding = {1, 0, 1}, .groups = 3}},
      {{1, 2, 6, 3, 3},
       {2, 1, 2, 3, 3},
       {.stride = {2, 1, 1}, .padding = {1, 1, 1}, .dilation = {3, 1, 1}, .groups = 2}},
      {{1, 2, 3, 3, 3}, {2, 2, 3, 3, 3}, {}},
      {{0, 3, 3, 3, 3}, {4, 3, 2, 2, 2}, {}},
  };
  if (dtype == f32 || dtype == f64) {
    forms.push_back({{2, 3, 6, 12, 19}, {8, 3, 3, 3, 3}, {.padding = {1, 1, 1}}});
    forms.push_back({{1, 16, 5, 9, 17}, {20, 16, 3, 3, 3}, {.padding = {1, 1, 1}}});
    forms.push_back(
        {{1, 4, 6, 20, 20}, {8, 4, 3, 5, 5}, {.stride = {1, 2, 2}, .padding = {1, 2, 2}}});
  }
  for (const auto& [x, weight, o] : forms) {
    Shape out = {x[0], weight[0]};
    for (size_t i = 0; i < 3; ++i) {
      const int d = static_cast<int>(i) + 2;
      out.push_back(conv_output_size(x[d], weight[d], o.stride[i], o.padding[i], o.dilation[i]));
    }
    const double terms = static_cast<double>(weight[1] * weight[2] * weight[3] * weight[4]);
    const auto add = [&](const char* op, std::vector<Argument> arguments, double absolute) {
      list.add(op, std::move(arguments), {8, 8 + absolute}).elementwise = false;
    };
    add("float_conv3d", {list.uniform(x, dtype), list.uniform(weight, dtype), Absent(), o}, terms);
    add("float_conv3d",
        {list.uniform(x, dtype), list.uniform(weight, dtype), list.uniform(Shape{weight[0]}, dtype),
         o},
        terms);
    add("float_conv3d_input_grad", {list.uniform(weight, dtype), list.uniform(out, dtype), x, o},
        terms * static_cast<double>(weight[0]) / static_cast<double>(weight[1]));
    add("float_conv3d_weight_grad", {list.uniform(x, dtype), list.uniform(out, dtype), weight, o},
        static_cast<double>(x[0] * out[2] * out[3] * out[4]));
  }
}

// For each window one of its places in the plane, -1 where it has none.
Operand places_in_windows(const Shape& x, const Shape& out, const PoolOptions& o) {
  std::vector<int64_t> places;
  places.reserve(static_cast<size_t>(out.numel()));
  const int64_t size = o.kernel[0] * o.kernel[1];
  for (int64_t i = 0; i < out.numel(); ++i) {
    int64_t place = -1;
    for (int64_t k = 0; k < size && place < 0; ++k) {
      const int64_t tap = (i * 7 + k) % size;
      const int64_t row =
          i / out[3] % out[2] * o.stride[0] - o.padding[0] + tap / o.kernel[1] * o.dilation[0];
      const int64_t column =
          i % out[3] * o.stride[1] - o.padding[1] + tap % o.kernel[1] * o.dilation[1];
      if (row >= 0 && row < x[2] && column >= 0 && column < x[3]) place = row * x[3] + column;
    }
    places.push_back(place);
  }
  return int_values(places, out);
}

void add_pooling(CaseList& list, DType dtype) {
  struct Pooling {
    Shape x;
    PoolOptions options;
    bool max_only = false;
  };
  const Pooling forms[] = {
      {{2, 3, 4, 6}, {}},
      {{1, 1, 1, 1}, {.kernel = {1, 1}, .stride = {1, 1}}},
      {{2, 3, 7, 8}, {.kernel = {3, 2}, .stride = {2, 3}}},
      {{2, 3, 7, 8}, {.kernel = {3, 3}, .stride = {1, 1}, .padding = {1, 1}}},
      {{2, 3, 7, 8},
       {.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}, .count_include_pad = false}},
      {{2, 3, 7, 8}, {.kernel = {2, 2}, .stride = {2, 2}, .ceil_mode = true}},
      {{2, 3, 8, 8}, {.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}, .ceil_mode = true}},
      {{2, 3, 8, 8},
       {.kernel = {3, 3},
        .stride = {3, 2},
        .padding = {1, 1},
        .ceil_mode = true,
        .count_include_pad = false}},
      {{1, 2, 6, 5}, {.kernel = {6, 5}, .stride = {1, 1}}},
      {{2, 2, 9, 9},
       {.kernel = {3, 2}, .stride = {2, 2}, .padding = {1, 0}, .dilation = {2, 3}},
       true},
      {{0, 3, 4, 4}, {}},
      {{16, 8, 26, 26}, {}},
      {{4, 20, 28, 28}, {.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}}},
  };
  for (const auto& [x, o, max_only] : forms) {
    if (x.numel() > 10000 && dtype != f32) continue;
    const auto size = [&, &o_ = o, &x_ = x](size_t i, int64_t dilation) {
      return pool_output_size(x_[2 + static_cast<int>(i)], o_.kernel[i], o_.stride[i],
                              o_.padding[i], dilation, o_.ceil_mode);
    };
    list.add("float_max_pool2d", {list.uniform(x, dtype), o}).expandable = true;
    // Ties go to the first.
    list.add("float_max_pool2d", {list.integers(x, dtype, -2, 2), o});
    const Shape max_out = {x[0], x[1], size(0, o.dilation[0]), size(1, o.dilation[1])};
    list.add("float_max_pool2d_backward",
             {list.uniform(max_out, dtype), places_in_windows(x, max_out, o), x, o}, {8, 8})
        .elementwise = false;
    if (max_only) continue;
    const Shape out = {x[0], x[1], size(0, 1), size(1, 1)};
    list.add("float_avg_pool2d", {list.uniform(x, dtype), o}, {8, 4}).elementwise = false;
    list.add("float_avg_pool2d_backward", {list.uniform(out, dtype), x, o}, {8, 4}).elementwise =
        false;
  }
  const Operand odd = values({1, kNan, 2, 3, -kInf, -kInf, kInf, 5, -kInf, -kInf, 7, 6, 1, 2, 3, 4},
                             {1, 1, 4, 4}, dtype);
  // A window whose every position lies in the padding: -inf at index -1, which gets no gradient.
  const PoolOptions nowhere{.stride = {1, 1}, .padding = {1, 1}, .dilation = {3, 3}};
  const Shape plane = {2, 1, 2, 2};
  list.add("float_max_pool2d", {list.uniform(plane, dtype), nowhere});
  list.add("float_max_pool2d_backward",
           {list.uniform({2, 1, 1, 1}, dtype), int_values({-1, -1}, {2, 1, 1, 1}), plane, nowhere});
  list.add("float_max_pool2d", {odd, PoolOptions{}});
  list.add("float_max_pool2d", {odd, PoolOptions{.stride = {1, 1}, .padding = {1, 1}}});
  list.add("float_avg_pool2d", {odd, PoolOptions{}}, {8, 4});
}

}  // namespace

void add_activation_cases(CaseList& list) {
  for (DType dtype : list.floats) {
    add_elementwise(list, dtype);
    add_softmax(list, dtype);
  }
}

std::vector<Case> large_cases() {
  CaseList list({f32}, {});
  for (const auto& [a, b] : {std::pair<Shape, Shape>{{512, 512}, {512, 512}},
                             {{64, 20000}, {20000, 48}},
                             {{1, 3000}, {3000, 2000}},
                             {{40, 100, 60}, {40, 60, 90}}}) {
    list.add("float_matmul", {list.uniform(a, f32), list.uniform(b, f32)});
  }
  list.add("float_linear",
           {list.uniform({64, 784}, f32), list.uniform({256, 784}, f32), list.uniform({256}, f32)});
  const std::pair<Shape, Shape> convolutions[] = {{{64, 1, 28, 28}, {32, 1, 3, 3}},
                                                  {{32, 32, 28, 28}, {64, 32, 3, 3}},
                                                  {{2, 64, 40, 40}, {64, 64, 1, 1}}};
  for (const auto& [x, weight] : convolutions) {
    const int64_t pad = weight[2] / 2;
    const ConvOptions o{.padding = {pad, pad}};
    const Shape out = {x[0], weight[0], x[2], x[3]};
    list.add("float_conv2d", {list.uniform(x, f32), list.uniform(weight, f32), Absent(), o});
    list.add("float_conv2d_input_grad", {list.uniform(weight, f32), list.uniform(out, f32), x, o});
    list.add("float_conv2d_weight_grad", {list.uniform(x, f32), list.uniform(out, f32), weight, o});
  }
  return std::move(list.cases);
}

void add_window_cases(CaseList& list) {
  for (DType dtype : list.floats) {
    add_convolution(list, dtype);
    add_volume_convolution(list, dtype);
    add_pooling(list, dtype);
  }
}

void add_block_cases(CaseList& list) {
  for (DType dtype : list.floats) add_separable_blocks(list, dtype);
}

}  // namespace kiln::conformance
