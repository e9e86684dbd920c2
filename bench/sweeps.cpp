// What the sweeps are. The peer's halves have the rows' names.
#include "bench/model_workloads.h"
#include "bench/op_workloads.h"
#include "bench/sweep.h"
#include "bench/sweep_sizes.h"

namespace kiln::bench {
namespace {

using Factory = std::function<WorkloadFactory(int64_t)>;

// Of ops whose iteration reads and writes `bytes` for each element.
Sweep op_sweep(const std::string& name, double bytes, const Factory& make) {
  Sweep sweep{name, "element", {}};
  for (const int64_t n : kSweepElements) {
    const std::string size = size_name(n);
    Row row{.name = name + "_" + size, .what = name + " of " + size + " floats", .make = make(n)};
    row.bytes = bytes * static_cast<double>(n);
    sweep.points.push_back({size, static_cast<double>(n), std::move(row)});
  }
  return sweep;
}

struct ModelCost {
  double units;
  double flops;
};

template <class Sizes>
Sweep model_sweep(const std::string& name, const std::string& unit, const Sizes& sizes,
                  const Factory& make, const std::function<ModelCost(int64_t)>& cost,
                  bool is_training) {
  Sweep sweep{name, unit, {}};
  for (const int64_t n : sizes) {
    const std::string size = std::to_string(n);
    Row row{.name = name + "_" + size, .what = name + " of " + size, .make = make(n)};
    row.flops = cost(n).flops;
    row.is_training = is_training;
    row.tolerance = 1e-3;
    sweep.points.push_back({size, cost(n).units, std::move(row)});
  }
  return sweep;
}

std::vector<Sweep> op_sweeps() {
  std::vector<Sweep> sweeps;
  sweeps.push_back(op_sweep("add", 12, [](int64_t n) { return binary_add({n}, false); }));
  sweeps.push_back(op_sweep("exp", 8, [](int64_t n) {
    return unary(
        {n}, [](const Tensor& x) { return exp(x); }, -8, 8);
  }));
  sweeps.push_back(op_sweep("gelu", 8, [](int64_t n) {
    return unary(
        {n}, [](const Tensor& x) { return gelu(x); }, -4, 4);
  }));
  sweeps.push_back(op_sweep("sum", 4, [](int64_t n) {
    return unary(
        {n}, [](const Tensor& x) { return x.sum(); }, 0, 1);
  }));
  // Rows of 1024.
  sweeps.push_back(op_sweep("softmax_rows", 8, [](int64_t n) {
    return unary(
        {n / 1024, 1024}, [](const Tensor& x) { return softmax(x, -1); }, -4, 4);
  }));
  sweeps.push_back(
      op_sweep("layer_norm_rows", 8, [](int64_t n) { return layer_norm(n / 1024, 1024); }));
  // Square matrices.
  sweeps.push_back(op_sweep("transpose_copy", 8, [](int64_t n) {
    return unary({square_side(n), square_side(n)},
                 [](const Tensor& x) { return x.t().contiguous(); });
  }));
  return sweeps;
}

std::vector<Sweep> model_sweeps() {
  std::vector<Sweep> sweeps;
  sweeps.push_back(model_sweep(
      "train_mlp_batch", "example", kSweepMlpBatches, train_mlp,
      [](int64_t n) {
        return ModelCost{static_cast<double>(n), train_mlp_flops(n)};
      },
      true));
  sweeps.push_back(model_sweep(
      "infer_cnn_batch", "image", kSweepCnnBatches, infer_cnn,
      [](int64_t n) {
        return ModelCost{static_cast<double>(n), infer_cnn_flops(n)};
      },
      false));
  const auto gpt = [&](const std::string& name, const std::string& unit, const auto& sizes,
                       auto size_of, auto units_of) {
    sweeps.push_back(model_sweep(
        name, unit, sizes, [=](int64_t n) { return train_gpt(size_of(n)); },
        [=](int64_t n) {
          return ModelCost{static_cast<double>(units_of(size_of(n))), train_gpt_flops(size_of(n))};
        },
        true));
  };
  const auto tokens = [](const GptSize& size) { return size.batch * size.length; };
  gpt("train_gpt_batch", "token", kSweepGptBatches, gpt_of_batch, tokens);
  gpt("train_gpt_length", "token", kSweepGptLengths, gpt_of_length, tokens);
  gpt("train_gpt_depth", "layer", kSweepGptDepths, gpt_of_depth,
      [](const GptSize& size) { return size.layers; });
  return sweeps;
}

}  // namespace

std::vector<Sweep> all_sweeps() {
  std::vector<Sweep> sweeps = op_sweeps();
  for (Sweep& sweep : model_sweeps()) sweeps.push_back(std::move(sweep));
  return sweeps;
}

}  // namespace kiln::bench
