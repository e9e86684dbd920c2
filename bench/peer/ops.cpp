// Rows that are one op, or a chain of them. Each stands beside its Kiln half in bench/rows_ops.cpp.
#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include "bench/peer/rows.h"
#include "bench/peer/tensors.h"
#include "bench/sweep_sizes.h"

namespace kiln::bench::peer {
namespace {

template <class Step>
std::unique_ptr<Workload> op_workload(Step step) {
  return make_workload(std::move(step), [](Step& s) { return sample(s()); });
}

// step(x) on a tensor of evenly spread numbers.
template <class Step>
WorkloadFactory unary_row(std::vector<int64_t> shape, Step step, float low = -1, float high = 1) {
  return [=] { return op_workload([=, x = uniform(shape, 1, low, high)] { return step(x); }); };
}

WorkloadFactory matmul_row(int64_t n) {
  return [=] {
    const at::Tensor x = uniform({n, n}, 1), y = uniform({n, n}, 2);
    return op_workload([=] { return at::matmul(x, y); });
  };
}

WorkloadFactory bf16_matmul_row(int64_t n) {
  return [=] {
    const at::Tensor x = uniform({n, n}, 1).to(at::kBFloat16);
    const at::Tensor y = uniform({n, n}, 2).to(at::kBFloat16);
    return make_workload([=] { return at::matmul(x, y); },
                         [](auto& step) { return sample(step().to(at::kFloat)); });
  };
}

// Inputs are quantized in each step, with one scale for all of them; the weight was packed before.
WorkloadFactory dynamic_linear_row(int64_t rows) {
  return [=] {
    const int64_t size = 1024;
    const at::Tensor x = uniform({rows, size}, 1), bias = uniform({size}, 3);
    const at::Tensor weight = uniform({size, size}, 2);
    const at::Tensor quantized =
        at::quantize_per_channel(weight, weight.abs().amax(1).to(at::kDouble) / 127,
                                 at::zeros({size}, at::kLong), 0, at::kQInt8);
    auto& ops = c10::Dispatcher::singleton();
    std::vector<c10::IValue> packed = {quantized, bias};
    ops.findSchemaOrThrow("quantized::linear_prepack", "").callBoxed(&packed);
    const auto linear = ops.findSchemaOrThrow("quantized::linear_dynamic", "");
    return op_workload([=, weight = packed[0]] {
      std::vector<c10::IValue> stack = {x, weight, false};
      linear.callBoxed(&stack);
      return stack[0].toTensor();
    });
  };
}

WorkloadFactory add_row(std::vector<int64_t> shape, bool requires_grad) {
  return [=] {
    const at::Tensor x = uniform(shape, 1).set_requires_grad(requires_grad), y = uniform(shape, 2);
    return op_workload([=] { return at::add(x, y); });
  };
}

std::unique_ptr<Workload> chain_workload() {
  at::Tensor x = uniform({1, 1}, 1).set_requires_grad(true);
  const at::Tensor w = at::full({1, 1}, 0.999);
  return make_workload(
      [=]() mutable {
        at::Tensor y = x;
        for (int i = 0; i < 500; ++i) {
          y = y * w;
          y = y + w;
        }
        x.mutable_grad().reset();
        y.backward();
        return y;
      },
      [x](auto& step) {
        std::vector<float> values = sample(step());
        values.push_back(x.grad().item<float>());
        return values;
      });
}

WorkloadFactory layer_norm_row(int64_t rows, int64_t columns) {
  return [=] {
    const at::Tensor x = uniform({rows, columns}, 1), weight = uniform({columns}, 2),
                     bias = uniform({columns}, 3);
    return op_workload([=] { return at::layer_norm(x, {columns}, weight, bias); });
  };
}

// Rows that are points of sweeps, some of them rows of the table as well.
void add_sweep_rows(WorkloadTable& rows) {
  for (const int64_t n : kSweepElements) {
    const std::string size = "_" + size_name(n);
    rows["add" + size] = add_row({n}, false);
    rows["exp" + size] = unary_row(
        {n}, [](const at::Tensor& x) { return at::exp(x); }, -8, 8);
    rows["gelu" + size] = unary_row(
        {n}, [](const at::Tensor& x) { return at::gelu(x); }, -4, 4);
    rows["sum" + size] = unary_row(
        {n}, [](const at::Tensor& x) { return at::sum(x); }, 0, 1);
    rows["softmax_rows" + size] = unary_row(
        {n / 1024, 1024}, [](const at::Tensor& x) { return at::softmax(x, -1); }, -4, 4);
    rows["layer_norm_rows" + size] = layer_norm_row(n / 1024, 1024);
    rows["transpose_copy" + size] = unary_row(
        {square_side(n), square_side(n)}, [](const at::Tensor& x) { return x.t().contiguous(); });
  }
}

}  // namespace

void add_op_rows(WorkloadTable& rows) {
  constexpr int64_t Ki = 1024, Mi = Ki * Ki;

  add_sweep_rows(rows);
  rows["add_1"] = add_row({1, 1}, false);
  rows["add_1_grad"] = add_row({1, 1}, true);
  rows["chain_1000"] = chain_workload;
  for (const int64_t n : {32, 64, 128, 256, 512, 1024, 2048}) {
    rows["matmul_" + std::to_string(n)] = matmul_row(n);
  }
  for (const int64_t n : {32, 128, 512, 1024, 2048}) {
    rows["matmul_bf16_" + std::to_string(n)] = bf16_matmul_row(n);
  }
  for (const int64_t n : {1, 64, 512}) {
    rows["linear_int8_dynamic_" + std::to_string(n)] = dynamic_linear_row(n);
  }

  for (const int64_t n : {1, 4}) {
    const std::string size = "_" + std::to_string(n) + "Mi";
    rows["tanh" + size] = unary_row(
        {n * Mi}, [](const at::Tensor& x) { return at::tanh(x); }, -4, 4);
    rows["sigmoid" + size] = unary_row(
        {n * Mi}, [](const at::Tensor& x) { return at::sigmoid(x); }, -8, 8);
    rows["layer_norm" + size] = layer_norm_row(n * Ki, Ki);
  }
  for (const int64_t n : {1024, 2048}) {
    rows["softmax_" + std::to_string(n)] = unary_row(
        {n, n}, [](const at::Tensor& x) { return at::softmax(x, -1); }, -4, 4);
  }
  const auto conv2d_row = [](std::vector<int64_t> x, std::vector<int64_t> weight) {
    return [=] {
      const at::Tensor image = uniform(x, 1), kernel = uniform(weight, 2);
      return op_workload([=] { return at::conv2d(image, kernel); });
    };
  };
  rows["conv2d_3x3"] = conv2d_row({64, 32, 26, 26}, {64, 32, 3, 3});
  rows["conv2d_1x1"] = conv2d_row({8, 256, 28, 28}, {64, 256, 1, 1});
  rows["transpose_copy_4096"] =
      unary_row({4096, 4096}, [](const at::Tensor& x) { return x.t().contiguous(); });
  rows["gather_1Mi"] = [] {
    const at::Tensor x = uniform({Mi}, 1), index = indices({Mi}, 2, Mi);
    return op_workload([=] { return at::gather(x, 0, index); });
  };
  rows["sort_1Mi"] = unary_row({Mi}, [](const at::Tensor& x) { return std::get<0>(at::sort(x)); });
  rows["dropout_1Mi"] = [] {
    const at::Tensor x = uniform({Mi}, 1, 1, 2);
    return make_workload([=] { return at::dropout(x, 0.5, true); },
                         [](auto& step) {
                           const at::Tensor y = step();
                           return dropout_values(y.template const_data_ptr<float>(), Mi);
                         });
  };
  rows["max_pool2d"] = unary_row({8, 64, 112, 112}, [](const at::Tensor& x) {
    return at::max_pool2d(x, {3, 3}, {2, 2}, {1, 1});
  });
}

}  // namespace kiln::bench::peer
