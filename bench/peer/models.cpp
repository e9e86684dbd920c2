// Rows that are a model: a step of training, or inference. libtorch in its best eager
// configuration: fused optimizer steps (what Python's fused=True calls; the C++ optimizers loop
// over single ops), gradients set to none, inference mode, and the faster of the two memory
// formats. Each stands beside its Kiln half in bench/rows_models.cpp.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_fused_adam.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/_fused_sgd.h>
#include <torch/nn.h>

#include "bench/peer/rows.h"
#include "bench/peer/tensors.h"
#include "bench/sweep_sizes.h"

namespace kiln::bench::peer {
namespace {

namespace nn = torch::nn;
using at::Tensor;

// The parameters, with the values that Kiln's half starts from as well: weights evenly spread over
// +-1/sqrt(fan_in), biases zero.
std::vector<Tensor> initialized_parameters(nn::Module& model) {
  const torch::NoGradGuard no_grad;
  std::vector<Tensor> parameters;
  for (const auto& item : model.named_parameters()) {
    Tensor parameter = item.value();
    if (parameter.dim() >= 2) {
      const double fan_in = static_cast<double>(parameter.numel() / parameter.size(0));
      const float bound = static_cast<float>(1 / std::sqrt(fan_in));
      parameter.copy_(uniform(parameter.sizes(), 100 + parameters.size(), -bound, bound));
    } else if (item.key().find("bias") != std::string::npos) {
      parameter.zero_();
    }
    parameters.push_back(parameter);
  }
  return parameters;
}

// The gradients of all parameters, once backward() has run.
std::vector<Tensor> gradients(const std::vector<Tensor>& parameters) {
  std::vector<Tensor> found;
  found.reserve(parameters.size());
  for (const Tensor& parameter : parameters) found.push_back(parameter.grad());
  return found;
}

void set_gradients_to_none(std::vector<Tensor>& parameters) {
  for (Tensor& parameter : parameters) parameter.mutable_grad().reset();
}

class FusedAdam {
 public:
  FusedAdam(std::vector<Tensor> parameters, double lr)
      : parameters_(std::move(parameters)), lr_(lr) {
    for (const Tensor& parameter : parameters_) {
      mean_.push_back(at::zeros_like(parameter));
      square_.push_back(at::zeros_like(parameter));
      steps_.push_back(at::zeros({}));
    }
  }
  void zero_grad() { set_gradients_to_none(parameters_); }
  void step() {
    const torch::NoGradGuard no_grad;
    at::_foreach_add_(steps_, 1);
    at::_fused_adam_(parameters_, gradients(parameters_), mean_, square_, {}, steps_, lr_, 0.9,
                     0.999,
                     /*weight_decay=*/0, 1e-8, /*amsgrad=*/false, /*maximize=*/false);
  }

 private:
  std::vector<Tensor> parameters_, mean_, square_, steps_;
  double lr_;
};

class FusedAdamW {
 public:
  FusedAdamW(std::vector<Tensor> parameters, double lr, double weight_decay)
      : parameters_(std::move(parameters)), lr_(lr), weight_decay_(weight_decay) {
    for (const Tensor& parameter : parameters_) {
      mean_.push_back(at::zeros_like(parameter));
      square_.push_back(at::zeros_like(parameter));
      steps_.push_back(at::zeros({}));
    }
  }
  void zero_grad() { set_gradients_to_none(parameters_); }
  void step() {
    const torch::NoGradGuard no_grad;
    at::_foreach_add_(steps_, 1);
    at::_fused_adamw_(parameters_, gradients(parameters_), mean_, square_, {}, steps_, lr_, 0.9,
                      0.999, weight_decay_, 1e-8, /*amsgrad=*/false, /*maximize=*/false);
  }

 private:
  std::vector<Tensor> parameters_, mean_, square_, steps_;
  double lr_, weight_decay_;
};

class FusedSgd {
 public:
  FusedSgd(std::vector<Tensor> parameters, double lr)
      : parameters_(std::move(parameters)), lr_(lr) {}
  void zero_grad() { set_gradients_to_none(parameters_); }
  void step() {
    const torch::NoGradGuard no_grad;
    at::_fused_sgd_(parameters_, gradients(parameters_), {}, /*weight_decay=*/0, /*momentum=*/0,
                    lr_,
                    /*dampening=*/0, /*nesterov=*/false, /*maximize=*/false,
                    /*is_first_step=*/false);
  }

 private:
  std::vector<Tensor> parameters_;
  double lr_;
};

struct Mlp : nn::Module {
  nn::Linear fc1 = register_module("fc1", nn::Linear(784, 256));
  nn::Linear fc2 = register_module("fc2", nn::Linear(256, 10));
  Tensor forward(const Tensor& x) { return fc2(at::relu(fc1(x))); }
};

struct TinyMlp : nn::Module {
  nn::Linear fc1 = register_module("fc1", nn::Linear(64, 64));
  nn::Linear fc2 = register_module("fc2", nn::Linear(64, 64));
  nn::Linear fc3 = register_module("fc3", nn::Linear(64, 1));
  Tensor forward(const Tensor& x) { return fc3(at::relu(fc2(at::relu(fc1(x))))); }
};

struct Cnn : nn::Module {
  nn::Conv2d conv1 = register_module("conv1", nn::Conv2d(nn::Conv2dOptions(1, 32, 3)));
  nn::BatchNorm2d bn1 = register_module("bn1", nn::BatchNorm2d(32));
  nn::Conv2d conv2 = register_module("conv2", nn::Conv2d(nn::Conv2dOptions(32, 64, 3)));
  nn::BatchNorm2d bn2 = register_module("bn2", nn::BatchNorm2d(64));
  nn::Linear fc1 = register_module("fc1", nn::Linear(64 * 12 * 12, 128));
  nn::Dropout dropout = register_module("dropout", nn::Dropout(0.5));
  nn::Linear fc2 = register_module("fc2", nn::Linear(128, 10));
  Tensor forward(const Tensor& x) {
    // In place where autograd allows it: one pass over the activations less.
    Tensor y = bn1(conv1(x)).relu_();
    y = bn2(conv2(y)).relu_();
    y = at::max_pool2d(y, {2, 2}).flatten(1);
    return fc2(dropout(fc1(y).relu_()));
  }
};

constexpr int64_t kGptWidth = 256, kGptHeads = 8, kGptTokens = 256;

struct GptBlockImpl : nn::Module {
  nn::LayerNorm norm1 = register_module("norm1", nn::LayerNorm(nn::LayerNormOptions({kGptWidth})));
  nn::Linear qkv = register_module("qkv", nn::Linear(kGptWidth, 3 * kGptWidth));
  nn::Linear out = register_module("out", nn::Linear(kGptWidth, kGptWidth));
  nn::LayerNorm norm2 = register_module("norm2", nn::LayerNorm(nn::LayerNormOptions({kGptWidth})));
  nn::Linear up = register_module("up", nn::Linear(kGptWidth, 4 * kGptWidth));
  nn::Linear down = register_module("down", nn::Linear(4 * kGptWidth, kGptWidth));
  Tensor forward(Tensor x) {
    x = x + out(attend(qkv(norm1(x))));
    return x + down(at::gelu(up(norm2(x))));
  }
  static Tensor attend(const Tensor& qkv) {
    std::vector<Tensor> parts = qkv.split(kGptWidth, 2);
    for (Tensor& part : parts) {
      part =
          part.view({part.size(0), part.size(1), kGptHeads, kGptWidth / kGptHeads}).transpose(1, 2);
    }
    return at::scaled_dot_product_attention(parts[0], parts[1], parts[2], {}, 0.0, true)
        .transpose(1, 2)
        .reshape({qkv.size(0), qkv.size(1), kGptWidth});
  }
};
TORCH_MODULE(GptBlock);

struct Gpt : nn::Module {
  nn::Embedding tokens = register_module("tokens", nn::Embedding(kGptTokens, kGptWidth));
  nn::Embedding positions{nullptr};
  std::vector<GptBlock> blocks;
  nn::LayerNorm norm{nullptr};
  nn::Linear head{nullptr};
  explicit Gpt(const GptSize& size) {
    positions = register_module("positions", nn::Embedding(size.length, kGptWidth));
    for (int64_t i = 0; i < size.layers; ++i) {
      blocks.push_back(register_module("block" + std::to_string(i), GptBlock()));
    }
    norm = register_module("norm", nn::LayerNorm(nn::LayerNormOptions({kGptWidth})));
    head = register_module("head", nn::Linear(kGptWidth, kGptTokens));
  }
  Tensor forward(const Tensor& x) {
    Tensor y = tokens(x) + positions(at::arange(x.size(1), at::kLong));
    for (GptBlock& block : blocks) y = block(y);
    return head(norm(y));
  }
};

// The training step of the issue: zero_grad, forward, loss, backward, step. Returns the loss.
struct Lstm : nn::Module {
  nn::LSTM lstm = register_module("lstm", nn::LSTM(64, 128));
  nn::Linear head = register_module("head", nn::Linear(128, 10));
  Tensor forward(const Tensor& x) { return head(std::get<0>(lstm(x)).select(0, -1)); }
};

template <class Model, class Optimizer, class Loss>
std::unique_ptr<Workload> train_workload(std::shared_ptr<Model> model, Tensor x, Tensor target,
                                         Optimizer optimizer, Loss loss_of) {
  model->train();
  return make_workload(
      [=, optimizer = std::move(optimizer)]() mutable {
        optimizer.zero_grad();
        Tensor loss = loss_of(model->forward(x), target);
        loss.backward();
        optimizer.step();
        return loss.detach();
      },
      [](auto& step) { return first_losses(step); });
}

Tensor cross_entropy(const Tensor& logits, const Tensor& target) {
  return at::cross_entropy_loss(logits, target);
}

std::unique_ptr<Workload> train_mlp(int64_t batch) {
  auto model = std::make_shared<Mlp>();
  FusedAdam optimizer(initialized_parameters(*model), 1e-5);
  return train_workload(model, uniform({batch, 784}, 1, 0, 1), indices({batch}, 2, 10),
                        std::move(optimizer), cross_entropy);
}

std::unique_ptr<Workload> train_tiny_mlp() {
  auto model = std::make_shared<TinyMlp>();
  FusedSgd optimizer(initialized_parameters(*model), 1e-3);
  return train_workload(
      model, uniform({32, 64}, 1), uniform({32, 1}, 2), std::move(optimizer),
      [](const Tensor& y, const Tensor& target) { return at::mse_loss(y, target); });
}

std::unique_ptr<Workload> adamw_step(int64_t tensors, int64_t size) {
  std::vector<Tensor> params;
  for (int64_t i = 0; i < tensors; ++i) {
    params.push_back(uniform({size}, 1).requires_grad_());
    params.back().mutable_grad() = uniform({size}, 2);
  }
  auto optimizer = std::make_shared<FusedAdamW>(params, 1e-4, 1e-2);
  return make_workload(
      [=] {
        optimizer->step();
        return params[0];
      },
      [](auto& step) { return sample(step().detach()); });
}

std::unique_ptr<Workload> train_gpt(const GptSize& size) {
  auto model = std::make_shared<Gpt>(size);
  FusedAdamW optimizer(initialized_parameters(*model), 1e-4, 1e-2);
  return train_workload(
      model, indices({size.batch, size.length}, 1, kGptTokens),
      indices({size.batch, size.length}, 2, kGptTokens), std::move(optimizer),
      [](const Tensor& logits, const Tensor& target) {
        return at::cross_entropy_loss(logits.view({-1, kGptTokens}), target.view({-1}));
      });
}

std::unique_ptr<Workload> train_lstm(int64_t batch) {
  auto model = std::make_shared<Lstm>();
  FusedAdam optimizer(initialized_parameters(*model), 1e-4);
  return train_workload(model, uniform({64, batch, 64}, 1), indices({batch}, 2, 10),
                        std::move(optimizer), cross_entropy);
}

std::unique_ptr<Workload> infer_lstm(int64_t batch) {
  auto model = std::make_shared<Lstm>();
  initialized_parameters(*model);
  model->eval();
  const Tensor x = uniform({64, batch, 64}, 1);
  return make_workload(
      [=] {
        const c10::InferenceMode inference;
        return model->forward(x);
      },
      [](auto& step) { return sample(step()); });
}

std::unique_ptr<Workload> infer_gpt(const GptSize& size) {
  auto model = std::make_shared<Gpt>(size);
  initialized_parameters(*model);
  model->eval();
  const Tensor x = indices({size.batch, size.length}, 1, kGptTokens);
  return make_workload(
      [=] {
        const c10::InferenceMode inference;
        return model->forward(x);
      },
      [](auto& step) { return sample(step()); });
}

// A convolutional model whose weights and activations are in the given memory format.
std::pair<std::shared_ptr<Cnn>, std::vector<Tensor>> make_cnn(at::MemoryFormat format) {
  auto model = std::make_shared<Cnn>();
  std::vector<Tensor> parameters = initialized_parameters(*model);
  for (Tensor& parameter : parameters) {
    // clone(): contiguous() returns a tensor with one channel as it is, in both formats at once,
    // and the convolution then takes it for the other one.
    if (parameter.dim() == 4) parameter.set_data(parameter.detach().clone(format));
  }
  return {model, parameters};
}

std::unique_ptr<Workload> train_cnn(at::MemoryFormat format) {
  auto [model, parameters] = make_cnn(format);
  return train_workload(model, uniform({64, 1, 28, 28}, 1, 0, 1).clone(format),
                        indices({64}, 2, 10), FusedAdam(parameters, 1e-4), cross_entropy);
}

std::unique_ptr<Workload> infer_cnn(int64_t batch, at::MemoryFormat format) {
  std::shared_ptr<Cnn> model = make_cnn(format).first;
  model->eval();
  const Tensor x = uniform({batch, 1, 28, 28}, 1, 0, 1).clone(format);
  return make_workload(
      [=] {
        const c10::InferenceMode inference;
        return model->forward(x);
      },
      [](auto& step) { return sample(step()); });
}

// Of the workloads that make(format) gives for the two memory formats, the one that is faster here.
template <class Make>
std::unique_ptr<Workload> faster_format(Make make) {
  using Clock = std::chrono::steady_clock;
  constexpr at::MemoryFormat kFormats[] = {at::MemoryFormat::Contiguous,
                                           at::MemoryFormat::ChannelsLast};
  constexpr int kWarmUps = 2, kRounds = 8;
  std::unique_ptr<Workload> candidates[] = {make(kFormats[0]), make(kFormats[1])};
  double best[2];
  std::fill_n(best, 2, std::numeric_limits<double>::infinity());
  for (int round = 0; round < kWarmUps + kRounds; ++round) {
    for (int i = 0; i < 2; ++i) {
      const auto start = Clock::now();
      candidates[i]->run(1);
      const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
      if (round >= kWarmUps) best[i] = std::min(best[i], seconds);
    }
  }
  // Made anew: the trial has trained the other.
  return make(kFormats[best[1] < best[0] ? 1 : 0]);
}

struct PassImpl : nn::Module {
  const Tensor& forward(const Tensor& x) { return x; }
};
TORCH_MODULE(Pass);

std::unique_ptr<Workload> module_call() {
  Pass module;
  const Tensor x = uniform({1}, 1);
  return make_workload(
      [=]() mutable {
        const Tensor* y = &x;
        for (int i = 0; i < 1000; ++i) {
          y = &module(*y);
          asm volatile("" : "+r"(y) : : "memory");
        }
        return *y;
      },
      [](auto& step) { return sample(step()); });
}

}  // namespace

void add_model_rows(WorkloadTable& rows) {
  rows["train_mlp"] = [] { return train_mlp(64); };
  rows["train_tiny_mlp"] = train_tiny_mlp;
  rows["train_gpt"] = [] { return train_gpt({}); };
  rows["train_lstm"] = [] { return train_lstm(16); };
  rows["infer_lstm_b1"] = [] { return infer_lstm(1); };
  rows["infer_lstm_b32"] = [] { return infer_lstm(32); };
  rows["adamw_100M"] = [] { return adamw_step(16, 6250000); };
  rows["infer_gpt_b1"] = [] { return infer_gpt({.batch = 1}); };
  rows["train_cnn"] = [] { return faster_format(train_cnn); };
  rows["module_call"] = module_call;
  const auto infer_cnn_row = [](int64_t batch) {
    return [=] {
      return faster_format([=](at::MemoryFormat format) { return infer_cnn(batch, format); });
    };
  };
  rows["infer_cnn_b1"] = infer_cnn_row(1);
  rows["infer_cnn_b64"] = infer_cnn_row(64);

  // Points of sweeps.
  const auto point = [](const char* sweep, int64_t n) { return sweep + ("_" + std::to_string(n)); };
  const auto gpt = [](const GptSize& size) { return [=] { return train_gpt(size); }; };
  for (const int64_t n : kSweepMlpBatches) {
    rows[point("train_mlp_batch", n)] = [=] { return train_mlp(n); };
  }
  for (const int64_t n : kSweepCnnBatches) rows[point("infer_cnn_batch", n)] = infer_cnn_row(n);
  for (const int64_t n : kSweepGptBatches) {
    rows[point("train_gpt_batch", n)] = gpt(gpt_of_batch(n));
  }
  for (const int64_t n : kSweepGptLengths) {
    rows[point("train_gpt_length", n)] = gpt(gpt_of_length(n));
  }
  for (const int64_t n : kSweepGptDepths) {
    rows[point("train_gpt_depth", n)] = gpt(gpt_of_depth(n));
  }
}

}  // namespace kiln::bench::peer
