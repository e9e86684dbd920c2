// Normalization, loss, dropout, optimizer steps, quantization.
#include "kiln/backend/conformance/cases.h"

namespace kiln::conformance {
namespace {

// Sums over many elements; the results are of order 1.
constexpr Tolerance kNormalized = {32, 64};

void add_batch_norm(CaseList& list, DType dtype) {
  const double eps = 1e-3;
  for (const Shape& shape : {Shape{4, 3}, Shape{2, 3, 5}, Shape{2, 3, 4, 5}, Shape{1, 1, 2, 2},
                             Shape{0, 3, 4, 4}, Shape{8, 20, 14, 14}}) {
    if (shape.numel() > 10000 && dtype != f32) continue;
    const Shape channels = {shape[1]};
    const Operand mean = list.uniform(channels, dtype, -0.5, 0.5);
    const Operand var = list.uniform(channels, dtype, 0.5, 2.0);
    const bool large = shape.numel() > 10000;
    const Tolerance sums = {32, large ? 10000.0 : 512.0};
    for (bool affine : {true, false}) {
      const Argument weight = affine ? Argument(list.uniform(channels, dtype)) : Argument(Absent());
      const Argument bias = affine ? Argument(list.uniform(channels, dtype)) : Argument(Absent());
      const auto add = [&](const char* op, std::vector<Argument> arguments, Tolerance tolerance) {
        Case& c = list.add(op, std::move(arguments), tolerance);
        c.elementwise = false;
      };
      add("float_batch_norm", {list.uniform(shape, dtype), weight, bias, eps}, kNormalized);
      add("float_batch_norm_inference", {list.uniform(shape, dtype), mean, var, weight, bias, eps},
          kNormalized);
      add("float_batch_norm_backward",
          {list.uniform(shape, dtype), list.uniform(shape, dtype), weight, mean, var, eps}, sums);
      add("float_batch_norm_inference_backward",
          {list.uniform(shape, dtype), list.uniform(shape, dtype), mean, var, weight, eps}, sums);
    }
    if (dtype != f16 && dtype != bf16) continue;
    // Parameters and statistics of f32.
    const Operand weight = list.uniform(channels, f32);
    const Operand bias = list.uniform(channels, f32);
    const Operand wide_mean = list.uniform(channels, f32, -0.5, 0.5);
    const Operand wide_var = list.uniform(channels, f32, 0.5, 2.0);
    const auto add = [&](const char* op, std::vector<Argument> arguments, Tolerance tolerance) {
      Case& c = list.add(op, std::move(arguments), tolerance);
      c.elementwise = false;
    };
    const Operand x = list.uniform(shape, dtype);
    const Operand g = list.uniform(shape, dtype);
    add("float_batch_norm", {x, weight, bias, eps}, kNormalized);
    add("float_batch_norm_inference", {x, wide_mean, wide_var, weight, bias, eps}, kNormalized);
    add("float_batch_norm_backward", {g, x, weight, wide_mean, wide_var, eps}, sums);
    add("float_batch_norm_inference_backward", {g, x, wide_mean, wide_var, weight, eps}, sums);
  }
}

void add_group_norm(CaseList& list, DType dtype) {
  const double eps = 1e-3;
  const std::pair<Shape, int64_t> forms[] = {{{4, 6}, 2},       {{2, 6, 5}, 3},
                                             {{2, 4, 4, 5}, 4}, {{1, 3, 2, 2}, 1},
                                             {{0, 4, 3}, 2},    {{8, 20, 14, 14}, 5}};
  for (const auto& [shape, groups] : forms) {
    const bool large = shape.numel() > 10000;
    if (large && dtype != f32) continue;
    const Shape channels = {shape[1]};
    const Shape kept = {shape[0], groups};
    for (const bool affine : {true, false}) {
      const Argument weight = affine ? Argument(list.uniform(channels, dtype)) : Argument(Absent());
      const Argument bias = affine ? Argument(list.uniform(channels, dtype)) : Argument(Absent());
      list.add("float_group_norm", {list.uniform(shape, dtype), weight, bias, groups, eps},
               kNormalized)
          .elementwise = false;
      list.add("float_group_norm_backward",
               {list.uniform(shape, dtype), list.uniform(shape, dtype), weight,
                list.uniform(kept, dtype, -0.5, 0.5), list.uniform(kept, dtype, 0.5, 1.5), groups,
                eps},
               {32, large ? 10000.0 : 512.0})
          .elementwise = false;
    }
  }
}

void add_layer_norm(CaseList& list, DType dtype) {
  const double eps = 1e-3;
  const std::pair<Shape, int> forms[] = {{{5}, 1},    {{3, 4}, 1}, {{3, 4}, 2},  {{2, 3, 4}, 2},
                                         {{0, 4}, 1}, {{2, 1}, 1}, {{2, 67}, 1}, {{100, 400}, 1}};
  for (const auto& [shape, n] : forms) {
    const bool large = shape.numel() > 10000;
    if (large && dtype != f32) continue;
    Shape row;
    Shape kept = shape;
    for (int d = shape.rank() - n; d < shape.rank(); ++d) {
      row.push_back(shape[d]);
      kept[d] = 1;
    }
    for (bool affine : {true, false}) {
      const Argument weight = affine ? Argument(list.uniform(row, dtype)) : Argument(Absent());
      const Argument bias = affine ? Argument(list.uniform(row, dtype)) : Argument(Absent());
      list.add("float_layer_norm", {list.uniform(shape, dtype), weight, bias, n, eps}, kNormalized)
          .elementwise = false;
      list.add("float_layer_norm_backward",
               {list.uniform(shape, dtype), list.uniform(shape, dtype), weight,
                list.uniform(kept, dtype, -0.5, 0.5), list.uniform(kept, dtype, 0.5, 1.5), n},
               {32, large ? 2000.0 : 256.0})
          .elementwise = false;
    }
  }
}

void add_cross_entropy(CaseList& list, DType dtype) {
  for (const Shape& shape :
       {Shape{4, 3}, Shape{1, 1}, Shape{0, 3}, Shape{2, 67}, Shape{130, 257}}) {
    if (shape.numel() > 10000 && dtype != f32) continue;
    const Shape rows = {shape[0]};
    for (double smoothing : {0.0, 0.1}) {
      const CrossEntropyOptions options{.label_smoothing = smoothing};
      const Operand targets = list.integers(rows, i64, 0, shape[1] - 1);
      list.add("float_cross_entropy", {list.uniform(shape, dtype, -5, 5), targets, options},
               {16, 16})
          .elementwise = false;
      list.add("float_cross_entropy_backward",
               {list.uniform(rows, dtype), list.uniform(shape, dtype, -5, 5), targets,
                list.uniform(rows, dtype, 4.0, 7.0), options},
               {32, 4})
          .elementwise = false;
    }
  }
  for (int64_t ignored : {int64_t{-100}, int64_t{1}}) {
    const CrossEntropyOptions options{.ignore_index = ignored, .label_smoothing = 0.2};
    const Operand targets = int_values({0, ignored, 2, ignored});
    list.add("float_cross_entropy", {list.uniform({4, 3}, dtype), targets, options}, {16, 16})
        .elementwise = false;
    list.add("float_cross_entropy_backward",
             {list.uniform({4}, dtype), list.uniform({4, 3}, dtype), targets,
              list.uniform({4}, dtype, 1.0, 2.0), options},
             {32, 4})
        .elementwise = false;
  }
  const Operand odd = values({1000, -1000, 0, -kInf, 1, 2, -kInf, 0, 0, kNan, 1, 1}, {4, 3}, dtype);
  list.add("float_cross_entropy", {odd, int_values({1, 0, 1, 2}), CrossEntropyOptions{}}, {16, 16})
      .elementwise = false;
  for (int64_t target : {3, -1}) {  // IndexError
    list.add("float_cross_entropy",
             {list.uniform({2, 3}, dtype), int_values({0, target}), CrossEntropyOptions{}});
  }
}

void add_nll_loss(CaseList& list, DType dtype) {
  for (const Shape& x : {Shape{4, 3, 1}, Shape{2, 5, 7}, Shape{0, 3, 2}, Shape{2, 3, 0},
                         Shape{1, 1, 1}, Shape{3, 67, 1300}}) {
    if (x.numel() > 10000 && dtype != f32) continue;
    const Shape places = {x[0], x[2]};
    for (const int64_t ignored : {int64_t{-100}, int64_t{1}}) {
      const Operand classes = list.integers(places, i64, 0, x[1] - 1);
      for (const bool weighted : {false, true}) {
        const Argument weight =
            weighted ? Argument(list.uniform({x[1]}, dtype, 0.5, 1.5)) : Argument(Absent());
        list.add("float_nll_loss", {list.uniform(x, dtype), classes, weight, ignored}, {2, 0})
            .elementwise = false;
        list.add("float_nll_loss_backward",
                 {list.uniform(places, dtype), classes, weight, x[1], ignored}, {2, 0})
            .elementwise = false;
      }
    }
  }
  const Operand odd = values({kInf, 1, kNan, 2, -kInf, 3}, {3, 2, 1}, dtype);
  list.add("float_nll_loss", {odd, int_values({0, -1, 0}, {3, 1}), Argument(Absent()), int64_t{-1}},
           {2, 0})
      .elementwise = false;
  for (const int64_t target : {3, -1}) {  // IndexError
    const Operand classes = int_values({0, target}, {2, 1});
    list.add("float_nll_loss",
             {list.uniform({2, 3, 1}, dtype), classes, Argument(Absent()), int64_t{-100}});
    list.add("float_nll_loss_backward",
             {list.uniform({2, 1}, dtype), classes, Argument(Absent()), int64_t{3}, int64_t{-100}});
  }
}

void add_ctc_loss(CaseList& list, DType dtype) {
  // Steps, sequences, classes, labels.
  for (const Shape& size : {Shape{7, 3, 5, 3}, Shape{1, 1, 2, 1}, Shape{4, 2, 3, 0},
                            Shape{0, 2, 3, 1}, Shape{3, 0, 4, 2}, Shape{40, 5, 30, 13}}) {
    if (size[0] == 40 && dtype != f32 && dtype != f64) continue;
    const int64_t steps = size[0], batch = size[1], classes = size[2], labels = size[3];
    for (const int64_t blank : {int64_t{0}, classes - 1}) {
      const Operand x = list.uniform({steps, batch, classes}, dtype, -4.0, -0.1);
      const Operand targets = list.integers({batch, labels}, i64, 0, classes - 1);
      const Operand ends = list.integers({batch}, i64, 0, steps);
      const Operand sizes = list.integers({batch}, i64, 0, labels);
      list.add("float_ctc_loss", {x, targets, ends, sizes, blank}, {16, 16}).elementwise = false;
      // Exponentials of sums as large as the loss: an error for each step.
      const double most = 64.0 + 16.0 * static_cast<double>(steps);
      list.add("float_ctc_loss_backward",
               {list.uniform({batch}, dtype), x, targets, ends, sizes, blank}, {most, most})
          .elementwise = false;
    }
  }
  // Each way to begin, skip and end; no alignment; what lies behind a target is not read.
  const Operand x = list.uniform({6, 5, 4}, dtype, -3.0, -0.2);
  const Operand targets = int_values({1, 1, 1, 1, 2, 1, 3, -7, 99, 2, 2, -1, 3, 0, 2}, {5, 3});
  const Operand ends = int_values({6, 6, 6, 2, 0}), sizes = int_values({3, 3, 1, 2, 0});
  list.add("float_ctc_loss", {x, targets, ends, sizes, int64_t{0}}, {16, 16}).elementwise = false;
  list.add("float_ctc_loss_backward",
           {list.uniform({5}, dtype), x, targets, ends, sizes, int64_t{0}}, {64, 64})
      .elementwise = false;
  // A class that is impossible.
  const Operand odd = values({-1, -kInf, -2, -kInf, -1, -1, -1, -kInf, -2}, {3, 1, 3}, dtype);
  for (const int64_t label : {1, 2}) {
    const Operand row = int_values({label, 2}, {1, 2});
    const Operand three = int_values({3}), two = int_values({2});
    list.add("float_ctc_loss", {odd, row, three, two, int64_t{0}}, {16, 16}).elementwise = false;
    list.add("float_ctc_loss_backward",
             {list.uniform({1}, dtype), odd, row, three, two, int64_t{0}}, {64, 64})
        .elementwise = false;
  }
  for (const int64_t label : {3, -1}) {  // IndexError
    list.add("float_ctc_loss", {list.uniform({3, 1, 3}, dtype), int_values({label}, {1, 1}),
                                int_values({3}), int_values({1}), int64_t{0}});
  }
}

void add_rnnt_loss(CaseList& list, DType dtype) {
  const auto add = [&list, dtype](const Operand& x, const Operand& targets, const Operand& ends,
                                  const Operand& sizes, const Shape& size, int64_t blank) {
    // Exponentials of sums as large as the loss: an error for each step and label.
    const double most = 64.0 + 16.0 * static_cast<double>(size[1] + size[2]);
    for (const bool softmax : {false, true}) {
      list.add("float_rnnt_loss", {x, targets, ends, sizes, blank, 0.0, softmax}, {16, 16})
          .elementwise = false;
      for (const double clamp : {-1.0, 0.1}) {
        list.add("float_rnnt_loss_backward",
                 {list.uniform({size[0]}, dtype), x, targets, ends, sizes, blank, clamp, softmax},
                 {most, most})
            .elementwise = false;
      }
    }
  };
  // Sequences, steps, columns, classes.
  for (const Shape& size : {Shape{3, 5, 4, 6}, Shape{1, 1, 1, 1}, Shape{2, 4, 1, 3},
                            Shape{2, 1, 3, 2}, Shape{0, 3, 2, 4}, Shape{3, 20, 8, 37}}) {
    if (size[1] == 20 && dtype != f32 && dtype != f64) continue;
    const int64_t batch = size[0];
    for (const int64_t blank : {int64_t{0}, size[3] - 1}) {
      const Operand x = list.uniform(size, dtype, -4.0, -0.1);
      const Operand targets = list.integers({batch, size[2] - 1}, i64, 0, size[3] - 1);
      const Operand ends = list.integers({batch}, i64, 1, size[1]);
      const Operand sizes = list.integers({batch}, i64, 0, size[2] - 1);
      add(x, targets, ends, sizes, size, blank);
    }
  }
  // What lies behind a target is not read.
  add(list.uniform({2, 3, 3, 4}, dtype, -3.0, -0.2), int_values({1, -7, 3, 3}, {2, 2}),
      int_values({3, 2}), int_values({1, 2}), Shape{2, 3, 3, 4}, 0);
  for (const int64_t label : {4, -1}) {  // IndexError
    list.add("float_rnnt_loss", {list.uniform({1, 2, 2, 4}, dtype), int_values({label}, {1, 1}),
                                 int_values({2}), int_values({1}), int64_t{0}, 0.0, true});
  }
}

void add_dropout(CaseList& list, DType dtype) {
  const RandomStream stream{42, 1000};
  for (const Shape& shape : {Shape{}, Shape{0}, Shape{7}, Shape{3, 5}, Shape{130, 257}}) {
    for (double p : {0.0, 0.1, 0.5, 1.0}) {
      list.add("float_dropout", {list.uniform(shape, dtype, 1.0, 2.0), p, stream}, {2, 0})
          .expandable = true;
    }
  }
}

void add_steps(CaseList& list, DType dtype) {
  const Tolerance tolerance = {16, 16};
  const Shape shapes[] = {{3, 4}, {}, {0}, {67}, {40000}};
  const auto tensors = [&](double low, double high) {
    OperandList out;
    for (const Shape& shape : shapes) {
      if (shape.numel() > 10000 && dtype != f32) continue;
      out.push_back(list.uniform(shape, dtype, low, high));
    }
    return out;
  };
  // Slots of squares and largest values are never negative.
  const auto add = [&](const OptimizerStep& step, std::initializer_list<bool> positive = {}) {
    OperandList state;
    for (const bool above : positive) {
      for (Operand& x : above ? tensors(0.1, 1) : tensors(-0.1, 0.1)) state.push_back(x);
    }
    list.add("float_optimizer_step", {tensors(-1, 1), tensors(-1, 1), state, step}, tolerance);
  };
  add(SgdStep{.lr = 0.1});
  add(SgdStep{.lr = 0.1, .weight_decay = 0.01});
  for (bool first : {true, false}) {
    add(SgdStep{.lr = 0.1, .momentum = 0.9, .first_step = first}, {false});
    add(SgdStep{.lr = 0.1,
                .momentum = 0.9,
                .dampening = 0.3,
                .weight_decay = 0.01,
                .first_step = first},
        {false});
    add(SgdStep{.lr = 0.1, .momentum = 0.9, .nesterov = true, .first_step = first}, {false});
  }
  for (const double decay : {0.0, 0.1}) {
    for (const bool decoupled : {false, true}) {
      AdamStep adam{.lr = 0.01, .weight_decay = decay, .decoupled = decoupled};
      add(adam, {false, true});
      adam.amsgrad = true;
      adam.step = 7;
      add(adam, {false, true, true});
      add(NAdamStep{.weight_decay = decay,
                    .decoupled = decoupled,
                    .mu = 0.45,
                    .mu_next = 0.46,
                    .product = 0.2,
                    .step = 2},
          {false, true});
      for (const int64_t step : {1, 2000}) {
        add(RAdamStep{.weight_decay = decay, .decoupled = decoupled, .step = step}, {false, true});
      }
    }
    add(AdamStep{.lr = 0.01, .weight_decay = decay, .decoupled = true, .cautious = true},
        {false, true});
    add(AdagradStep{.lr_decay = 0.1, .weight_decay = decay, .step = 3}, {true});
    add(AdadeltaStep{.weight_decay = decay}, {true, true});
    add(RMSpropStep{.weight_decay = decay}, {true});
    add(RMSpropStep{.weight_decay = decay, .momentum = 0.9}, {true, false});
    add(RMSpropStep{.weight_decay = decay, .centered = true}, {true, false});
    add(RMSpropStep{.weight_decay = decay, .momentum = 0.9, .centered = true},
        {true, false, false});
    add(AdamaxStep{.weight_decay = decay, .step = 2}, {false, true});
    add(AsgdStep{.lambd = 0.1, .weight_decay = decay}, {false});
    add(AsgdStep{.mu = 0.25, .weight_decay = decay}, {false});
    add(LionStep{.weight_decay = decay}, {false});
    for (const bool no_prox : {false, true}) {
      for (const int64_t step : {1, 5}) {
        add(AdanStep{.weight_decay = decay, .no_prox = no_prox, .step = step},
            {false, false, true, false});
      }
    }
  }
  add(RpropStep{}, {false, true});
  list.add("float_optimizer_step",
           {OperandList(), OperandList(), OperandList(), OptimizerStep(SgdStep{.lr = 0.1})});
}

}  // namespace

void add_norm_cases(CaseList& list) {
  for (DType dtype : list.floats) {
    add_batch_norm(list, dtype);
    add_group_norm(list, dtype);
    add_layer_norm(list, dtype);
  }
}

void add_training_cases(CaseList& list) {
  for (DType dtype : list.floats) {
    add_cross_entropy(list, dtype);
    add_nll_loss(list, dtype);
    add_ctc_loss(list, dtype);
    add_rnnt_loss(list, dtype);
    add_dropout(list, dtype);
    add_steps(list, dtype);
  }
}

void add_quantized_cases(CaseList& list) {
  constexpr QuantLevel kTensor = QuantLevel::tensor;
  constexpr QuantLevel kChannel = QuantLevel::channel;
  constexpr QuantLevel kBlock = QuantLevel::block;
  const QuantScheme schemes[] = {{},
                                 {.bits = 4},
                                 {.level = kChannel},
                                 {.bits = 4, .level = kChannel},
                                 {.level = kBlock, .block = 4},
                                 {.bits = 4, .level = kBlock, .block = 4},
                                 {.bits = 4, .level = kBlock, .block = 3}};
  const auto values_of = [&](const QuantLayout& layout) {
    return list.integers(layout.values_shape, layout.values_dtype,
                         layout.values_dtype == u8 ? 0 : -layout.limit,
                         layout.values_dtype == u8 ? 255 : layout.limit);
  };
  const auto scales_of = [&](const QuantLayout& layout) {
    return list.uniform(layout.scales_shape, layout.scales_dtype, 0.125, 0.5);
  };
  const auto quantized = [&](const Shape& shape, const QuantScheme& scheme) {
    const QuantLayout layout(shape, scheme);
    const TensorData data = values_of(layout).data;
    return Operand{TensorData(data.shape(), DType::q8, data.storage(), data.byte_offset()),
                   scales_of(layout).data, scheme, shape};
  };
  for (const Shape& shape :
       {Shape{}, Shape{0}, Shape{5}, Shape{3, 4}, Shape{2, 3, 5}, Shape{3, 0}, Shape{301, 133}}) {
    for (const QuantScheme& scheme : schemes) {
      const QuantLayout layout(shape, scheme);
      const Operand x = quantized(shape, scheme);
      list.add("q_from_parts", {values_of(layout), scales_of(layout), scheme, shape}).elementwise =
          false;
      list.add("q_values", {x});
      list.add("q_scales", {x});
      list.add("q_scheme", {x});
      for (DType dtype : list.floats) {
        list.add("q_dequantize", {x, dtype}, kRounded);
        list.add("float_quantize", {list.uniform(shape, dtype), scheme}).elementwise = false;
      }
    }
    for (DType dtype : list.floats) {
      // With a power of two as the scale every quotient is exact, and many end in a half.
      list.add("float_quantize", {list.integers(shape, dtype, -40, 40), QuantScheme{2.0}});
      list.add("float_quantize",
               {list.integers(shape, dtype, -40, 40), QuantScheme{0.125, 4, kTensor, 32}});
    }
  }
  list.add("q_reshape", {quantized({3, 4}, {}), Shape{2, 6}});
  list.add("q_reshape", {quantized({1}, {}), Shape{}});
  for (DType dtype : list.floats) {
    list.add("float_quantize", {values({0, 0, 0}, dtype), QuantScheme{}});
    list.add("float_quantize",
             {values({0, kInf, -kInf, kNan, 2, 1}, {2, 3}, dtype), QuantScheme{}});
    list.add("float_quantize", {values({kNan, kInf, -kInf, kNan, 2, 1}, {2, 3}, dtype),
                                QuantScheme{.bits = 4, .level = kChannel}});
  }
  for (DType dtype : list.floats) {
    for (const auto& [shape, out] :
         {std::pair<Shape, int64_t>{{5}, 3}, {{2, 3, 6}, 4}, {{0, 4}, 2}, {{33, 70}, 40}}) {
      for (QuantScheme scheme : schemes) {
        for (const QuantActivations activations :
             {QuantActivations::floating, QuantActivations::dynamic}) {
          scheme.activations = activations;
          const Operand weight = quantized({out, shape.back()}, scheme);
          for (const Argument& bias :
               {Argument(list.uniform(Shape{out}, dtype)), Argument(Absent())}) {
            Case& c = list.add("float_linear_quantized", {list.uniform(shape, dtype), weight, bias},
                               {8, 1600.0 * static_cast<double>(shape.back())});
            c.elementwise = false;
          }
        }
      }
    }
    // Quotients that end in a half, values that are not finite, rows of zeros.
    QuantScheme dynamic;
    dynamic.activations = QuantActivations::dynamic;
    list.add("float_linear_quantized",
             {values({127, 0.5, 1.5, -2.5, 0, 0, 0, 0, kInf, kNan, -kInf, 2}, {3, 4}, dtype),
              quantized({2, 4}, dynamic), Absent()},
             {8, 6400})
        .elementwise = false;
  }
  // Each with scales of the first's and the second's scheme, from vectors to what fills several
  // tiles of every kernel.
  struct Sizes {
    int64_t n, k, m;
  };
  const auto add_product = [&](const Sizes& s, const QuantScheme& a, const QuantScheme& b) {
    for (const bool transposed : {false, true}) {
      for (DType dtype : list.floats) {
        Case& c = list.add(
            "q_matmul",
            {quantized({s.n, s.k}, a), quantized(transposed ? Shape{s.m, s.k} : Shape{s.k, s.m}, b),
             transposed, dtype},
            {8, 8.0 * static_cast<double>(127 * 127 * s.k) / 4});
        c.elementwise = false;
      }
    }
  };
  for (const QuantScheme& a : schemes) {
    for (const QuantScheme& b : schemes) add_product({7, 70, 33}, a, b);
    for (const Sizes& s : {Sizes{1, 5, 3}, {4, 1, 1}, {0, 4, 2}, {3, 0, 2}}) add_product(s, a, a);
  }
  for (const Sizes& s : {Sizes{1, 301, 131}, {65, 259, 1}, {47, 131, 70}}) {
    add_product(s, {.level = kChannel}, {});
    add_product(s, {.level = kChannel}, {.level = kBlock, .block = 4});
    add_product(s, {.level = kBlock, .block = 5}, {.bits = 4, .level = kBlock, .block = 3});
  }
}

}  // namespace kiln::conformance
