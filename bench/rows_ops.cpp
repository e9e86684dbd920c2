// Rows that are one op, or a chain of them. The peer's halves are in bench/peer/ops.cpp.
#include "bench/op_workloads.h"
#include "bench/row.h"
#include "kiln/tensor/nn/convolution.h"
#include "kiln/tensor/nn/pooling.h"

namespace kiln::bench {
namespace {

constexpr int64_t Ki = 1024;
constexpr int64_t Mi = Ki * Ki;

WorkloadFactory square_matmul(int64_t n) {
  return [=] {
    const Tensor x = uniform({n, n}, 1), y = uniform({n, n}, 2);
    return op_workload([=] { return matmul(x, y); });
  };
}

WorkloadFactory bf16_matmul(int64_t n) {
  return [=] {
    const Tensor x = uniform({n, n}, 1).to(bf16), y = uniform({n, n}, 2).to(bf16);
    return make_workload([=] { return matmul(x, y); },
                         [](auto& step) { return sample(step().to(f32)); });
  };
}

// A layer of 1024 x 1024 in 8 bits, for `rows` inputs in float.
WorkloadFactory int8_linear(int64_t rows, QuantActivations activations) {
  return [=] {
    const Tensor x = uniform({rows, Ki}, 1), bias = uniform({Ki}, 3);
    const Tensor weight =
        quantize(uniform({Ki, Ki}, 2), {.level = QuantLevel::channel, .activations = activations});
    return op_workload([=] { return functional::linear(x, weight, bias); });
  };
}

std::unique_ptr<Workload> chain() {
  Tensor x = uniform({1, 1}, 1).requires_grad_();
  const Tensor w = full({1, 1}, 0.999);
  return make_workload(
      [=]() mutable {
        Tensor y = x;
        for (int i = 0; i < 500; ++i) {
          y = y * w;
          y = y + w;
        }
        x.zero_grad();
        y.backward_accumulate();
        return y;
      },
      [x](auto& step) {
        std::vector<float> values = sample(step());
        values.push_back(x.grad().item<float>());
        return values;
      });
}

// The second convolution of the CNN of the model rows, and a 1x1 one of a residual network.
Row conv2d_row(const std::string& name, const Shape& x, const Shape& weight,
               const ConvOptions& options) {
  const int64_t out_height = x[2] + 2 * options.padding[0] - weight[2] + 1;
  const int64_t out_width = x[3] + 2 * options.padding[1] - weight[3] + 1;
  return {.name = name,
          .what = concat("conv2d of ", x, " with ", weight),
          .make =
              [=] {
                const Tensor image = uniform(x, 1), kernel = uniform(weight, 2);
                return op_workload([=] {
                  return functional::conv2d(image, kernel, {}, options.stride,
                                            Sizes(options.padding), options.dilation,
                                            options.groups);
                });
              },
          .flops = 2.0 * static_cast<double>(x[0] * out_height * out_width * weight.numel()),
          .floors = conv2d_floors(x, weight, options)};
}

std::unique_ptr<Workload> gather() {
  const Tensor x = uniform({Mi}, 1), index = indices({Mi}, 2, Mi);
  return op_workload([=] { return x.gather(0, index); });
}

std::unique_ptr<Workload> dropout() {
  const Tensor x = uniform({Mi}, 1, 1, 2);
  return make_workload([=] { return functional::dropout(x, 0.5, true); },
                       [](auto& step) {
                         const Tensor y = step();
                         return dropout_values(y.template data_ptr<float>(), Mi);
                       });
}

}  // namespace

void add_small_op_rows(std::vector<Row>& rows) {
  rows.push_back(
      {.name = "add_1", .what = "x + y, 1x1, untracked", .make = binary_add({1, 1}, false)});
  rows.push_back(
      {.name = "add_1_grad", .what = "x + y, 1x1, x tracked", .make = binary_add({1, 1}, true)});
  rows.push_back({.name = "chain_1000",
                  .what = "500 times y = y * w + w, 1x1, forward and backward",
                  .make = chain});
  rows.push_back({.name = "add_16Mi",
                  .what = "x + y, 16 Mi floats",
                  .make = binary_add({16 * Mi}, false),
                  .bytes = 3 * 4 * 16.0 * Mi});
  for (const int64_t n : {32, 64, 128, 256, 512, 1024, 2048}) {
    const std::string size = std::to_string(n);
    rows.push_back({.name = "matmul_" + size,
                    .what = "product of two " + size + "x" + size + " matrices",
                    .make = square_matmul(n),
                    .flops = 2.0 * static_cast<double>(n * n * n),
                    .floors = matmul_floors(n)});
  }
}

void add_large_op_rows(std::vector<Row>& rows) {
  for (const int64_t n : {1, 4}) {
    const std::string size = std::to_string(n) + "Mi";
    const std::string of = " of " + std::to_string(n) + " Mi floats";
    const double bytes = 2 * 4 * static_cast<double>(n * Mi);
    rows.push_back({.name = "exp_" + size,
                    .what = "exp" + of,
                    .make = unary(
                        {n * Mi}, [](const Tensor& x) { return exp(x); }, -8, 8),
                    .bytes = bytes});
    rows.push_back({.name = "gelu_" + size,
                    .what = "gelu (exact)" + of,
                    .make = unary(
                        {n * Mi}, [](const Tensor& x) { return gelu(x); }, -4, 4),
                    .bytes = bytes});
    rows.push_back({.name = "tanh_" + size,
                    .what = "tanh" + of,
                    .make = unary(
                        {n * Mi}, [](const Tensor& x) { return tanh(x); }, -4, 4),
                    .bytes = bytes});
    rows.push_back({.name = "sigmoid_" + size,
                    .what = "sigmoid" + of,
                    .make = unary(
                        {n * Mi}, [](const Tensor& x) { return sigmoid(x); }, -8, 8),
                    .bytes = bytes});
    rows.push_back({.name = "layer_norm_" + size,
                    .what = "layer_norm over rows of 1024," + of.substr(3),
                    .make = layer_norm(n * Ki, Ki),
                    .bytes = bytes});
  }
  for (const int64_t n : {1024, 2048}) {
    const std::string size = std::to_string(n);
    rows.push_back({.name = "softmax_" + size,
                    .what = "softmax over the rows of a " + size + "x" + size + " matrix",
                    .make = unary(
                        {n, n}, [](const Tensor& x) { return softmax(x, -1); }, -4, 4),
                    .bytes = 2 * 4 * static_cast<double>(n * n)});
  }
  for (const int64_t n : {32, 128, 512, 1024, 2048}) {
    const std::string size = std::to_string(n);
    rows.push_back({.name = "matmul_bf16_" + size,
                    .what = "product of two " + size + "x" + size + " matrices of bf16",
                    .make = bf16_matmul(n),
                    .flops = 2.0 * static_cast<double>(n * n * n),
                    .tolerance = 1e-2});
  }
  for (const int64_t n : {1, 64, 512}) {
    const std::string size = std::to_string(n);
    const std::string of = " inputs of 1024, a 1024x1024 weight in 8 bits";
    rows.push_back({.name = "linear_int8_" + size,
                    .what = "linear of " + size + of,
                    .make = int8_linear(n, QuantActivations::floating),
                    .bytes = n == 1 ? static_cast<double>(Mi) : 0.0});
    rows.push_back({.name = "linear_int8_dynamic_" + size,
                    .what = "linear of " + size + of + ", inputs quantized too",
                    .make = int8_linear(n, QuantActivations::dynamic),
                    .bytes = n == 1 ? static_cast<double>(Mi) : 0.0,
                    .tolerance = 3e-2});
  }
  rows.push_back(conv2d_row("conv2d_3x3", {64, 32, 26, 26}, {64, 32, 3, 3}, {}));
  rows.push_back(conv2d_row("conv2d_1x1", {8, 256, 28, 28}, {64, 256, 1, 1}, {}));
  rows.push_back({.name = "sum_16Mi",
                  .what = "sum of 16 Mi floats",
                  .make = unary(
                      {16 * Mi}, [](const Tensor& x) { return x.sum(); }, 0, 1),
                  .bytes = 4 * 16.0 * Mi});
  rows.push_back({.name = "transpose_copy_4096",
                  .what = "x.t().contiguous(), 4096x4096",
                  .make = unary({4096, 4096}, [](const Tensor& x) { return x.t().contiguous(); }),
                  .bytes = 2 * 4 * 16.0 * Mi});
  rows.push_back({.name = "gather_1Mi",
                  .what = "1 Mi floats by 1 Mi random indices",
                  .make = gather,
                  .bytes = (8 + 4 + 4) * 1.0 * Mi});
  rows.push_back({.name = "sort_1Mi",
                  .what = "sort of 1 Mi floats, with indices",
                  .make = unary({Mi}, [](const Tensor& x) { return x.sort().first; }),
                  .bytes = (4 + 4 + 8) * 1.0 * Mi});
  rows.push_back({.name = "dropout_1Mi",
                  .what = "dropout(p = 0.5) of 1 Mi floats, training",
                  .make = dropout,
                  .bytes = 2 * 4 * 1.0 * Mi,
                  .tolerance = 1e-2});
  rows.push_back(
      {.name = "max_pool2d",
       .what = "max_pool2d 3x3, stride 2, padding 1, of 8x64x112x112",
       .make = unary({8, 64, 112, 112},
                     [](const Tensor& x) { return functional::max_pool2d(x, 3, Sizes(2), 1); }),
       .bytes = 4.0 * 8 * 64 * (112 * 112 + 56 * 56)});
}

}  // namespace kiln::bench
