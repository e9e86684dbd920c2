// The peer's models are in bench/peer/models.cpp.
#include "bench/model_workloads.h"

#include <cmath>

#include "bench/tensors.h"
#include "kiln/nn/batch_norm.h"
#include "kiln/nn/conv2d.h"
#include "kiln/nn/dropout.h"
#include "kiln/nn/embedding.h"
#include "kiln/nn/layer_norm.h"
#include "kiln/nn/linear.h"
#include "kiln/nn/max_pool2d.h"
#include "kiln/nn/module.h"
#include "kiln/nn/recurrent.h"
#include "kiln/optim/adam.h"
#include "kiln/optim/adamw.h"
#include "kiln/optim/sgd.h"
#include "kiln/tensor/autograd/grad_mode.h"
#include "kiln/tensor/nn/attention.h"
#include "kiln/tensor/nn/losses.h"
#include "kiln/tensor/ops.h"

namespace kiln::bench {
namespace {

using functional::LinearOptions;

const LinearOptions kRelu = {.activation = Activation::relu};

struct Mlp : nn::Module {
  nn::Linear fc1{784, 256};
  nn::Linear fc2{256, 10};
  KILN_MODULE(Mlp, fc1, fc2)

  Tensor forward(TensorArg x) { return fc2(fc1(x, kRelu)); }
};

struct TinyMlp : nn::Module {
  nn::Linear fc1{64, 64};
  nn::Linear fc2{64, 64};
  nn::Linear fc3{64, 1};
  KILN_MODULE(TinyMlp, fc1, fc2, fc3)

  Tensor forward(TensorArg x) { return fc3(fc2(fc1(x, kRelu), kRelu)); }
};

struct Cnn : nn::Module {
  nn::Conv2d conv1{1, 32, 3};
  nn::BatchNorm2d bn1{32};
  nn::Conv2d conv2{32, 64, 3};
  nn::BatchNorm2d bn2{64};
  nn::MaxPool2d pool{2};
  nn::Linear fc1{64 * 12 * 12, 128};
  nn::Dropout dropout{0.5};
  nn::Linear fc2{128, 10};
  KILN_MODULE(Cnn, conv1, bn1, conv2, bn2, pool, fc1, dropout, fc2)

  Tensor forward(TensorArg x) {
    Tensor y = relu(bn1(conv1(x)));
    y = relu(bn2(conv2(y)));
    y = pool(y).flatten(1);
    return fc2(dropout(fc1(y, kRelu)));
  }
};

// A small GPT, pre-norm, over bytes.
constexpr int64_t kGptHeads = 8, kGptTokens = 256;

struct GptBlock : nn::Module {
  nn::LayerNorm norm1{kGptWidth};
  nn::Linear qkv{kGptWidth, 3 * kGptWidth};
  nn::Linear out{kGptWidth, kGptWidth};
  nn::LayerNorm norm2{kGptWidth};
  nn::Linear up{kGptWidth, 4 * kGptWidth};
  nn::Linear down{4 * kGptWidth, kGptWidth};
  KILN_MODULE(GptBlock, norm1, qkv, out, norm2, up, down)

  Tensor forward(Tensor x) {
    x = out(attend(qkv(norm1(x))), LinearOptions{Activation::none, x});
    const Tensor hidden = up(norm2(x), LinearOptions{Activation::gelu, {}});
    return down(hidden, LinearOptions{Activation::none, x});
  }

  // Causal attention of [N, L, 3 C] -> [N, L, C].
  static Tensor attend(const Tensor& qkv) {
    std::vector<Tensor> parts = qkv.split(kGptWidth, 2);
    for (Tensor& part : parts) {
      part = part.reshape({part.size(0), part.size(1), kGptHeads, kGptWidth / kGptHeads})
                 .transpose(1, 2);
    }
    return functional::scaled_dot_product_attention(parts[0], parts[1], parts[2], {}, 0.0, true)
        .transpose(1, 2)
        .reshape({qkv.size(0), qkv.size(1), kGptWidth});
  }
};

struct Gpt : nn::Module {
  nn::Embedding tokens{kGptTokens, kGptWidth};
  nn::Embedding positions;
  std::vector<GptBlock> blocks;
  nn::LayerNorm norm{kGptWidth};
  nn::Linear head{kGptWidth, kGptTokens};
  KILN_MODULE(Gpt, tokens, positions, blocks, norm, head)

  explicit Gpt(const GptSize& size)
      : positions(size.length, kGptWidth), blocks(static_cast<size_t>(size.layers)) {}

  Tensor forward(const Tensor& x) {
    Tensor y = tokens(x) + positions(arange(x.size(1)));
    for (GptBlock& block : blocks) y = block(y);
    return head(norm(y));
  }
};

// An LSTM over sequences [T, N, 64], and a class of each from its last hidden state.
constexpr int64_t kLstmSteps = 64, kLstmInputs = 64, kLstmSize = 128, kLstmClasses = 10;

struct Lstm : nn::Module {
  nn::LSTM lstm{{.input_size = kLstmInputs, .hidden_size = kLstmSize}};
  nn::Linear head{kLstmSize, kLstmClasses};
  KILN_MODULE(Lstm, lstm, head)

  Tensor forward(const Tensor& x) { return head(lstm(x).first.select(0, -1)); }
};

// The values that the peer's half starts from as well: weights evenly spread over +-1/sqrt(fan_in),
// biases zero.
void initialize(nn::Module& model) {
  const NoGradGuard no_grad;
  uint64_t seed = 100;
  for (auto& [name, parameter] : model.named_parameters()) {
    if (parameter.dim() >= 2) {
      const auto fan_in = static_cast<double>(parameter.numel() / parameter.size(0));
      const auto bound = static_cast<float>(1 / std::sqrt(fan_in));
      parameter.copy_(uniform(parameter.shape(), seed, -bound, bound));
    } else if (name.find("bias") != std::string::npos) {
      parameter.zero_();
    }
    ++seed;
  }
}

template <class Model, class... Args>
std::shared_ptr<Model> make_model(const Args&... args) {
  auto model = std::make_shared<Model>(args...);
  initialize(*model);
  return model;
}

// zero_grad, forward, loss, backward, step. Returns the loss.
template <class Model, class Optimizer, class Loss>
std::unique_ptr<Workload> train(std::shared_ptr<Model> model, Tensor x, Tensor target,
                                Optimizer optimizer, Loss loss_of) {
  return make_workload(
      [=, optimizer = std::make_shared<Optimizer>(std::move(optimizer))] {
        optimizer->zero_grad();
        Tensor loss = loss_of((*model)(x), target);
        loss.backward_accumulate();
        optimizer->step();
        return loss;
      },
      [](auto& step) { return first_losses(step); });
}

template <class Model>
std::unique_ptr<Workload> infer(std::shared_ptr<Model> model, Tensor x) {
  model->eval();
  return make_workload(
      [=] {
        const NoGradGuard no_grad;
        return (*model)(x);
      },
      [](auto& step) { return sample(step()); });
}

Tensor cross_entropy(const Tensor& logits, const Tensor& target) {
  return functional::cross_entropy(logits, target);
}

// Products of one image's way forward; a step does each again for the weights and, but for the
// first layer, for the input.
constexpr double kCnnFirstLayer = 2.0 * 32 * 26 * 26 * 9;
constexpr double kCnnOtherLayers = 2.0 * (64 * 24 * 24 * 32 * 9 + 64 * 12 * 12 * 128 + 128 * 10);

// Those of a token's way: the weights', and attention over half of the others.
double gpt_forward(const GptSize& size) {
  const double weights = static_cast<double>(size.layers) * 12 * kGptWidth * kGptWidth;
  const double attention = static_cast<double>(size.layers * size.length) * kGptWidth;
  return 2.0 * (weights + attention + kGptTokens * kGptWidth);
}

// A step's input and state through the gates, for each sequence.
constexpr double kLstmForward =
    2.0 * kLstmSteps * 4 * kLstmSize * (kLstmInputs + kLstmSize) + 2.0 * kLstmSize * kLstmClasses;
constexpr double kLstmInputGradient = 2.0 * kLstmSteps * 4 * kLstmSize * kLstmInputs;

}  // namespace

WorkloadFactory train_mlp(int64_t batch) {
  return [=] {
    auto model = make_model<Mlp>();
    optim::Adam optimizer(model->parameters(), {.lr = 1e-5});
    return train(model, uniform({batch, 784}, 1, 0, 1), indices({batch}, 2, 10),
                 std::move(optimizer), cross_entropy);
  };
}

WorkloadFactory train_tiny_mlp() {
  return [] {
    auto model = make_model<TinyMlp>();
    optim::SGD optimizer(model->parameters(), {.lr = 1e-3});
    return train(
        model, uniform({32, 64}, 1), uniform({32, 1}, 2), std::move(optimizer),
        [](const Tensor& y, const Tensor& target) { return functional::mse_loss(y, target); });
  };
}

WorkloadFactory train_cnn(int64_t batch) {
  return [=] {
    auto model = make_model<Cnn>();
    optim::Adam optimizer(model->parameters(), {.lr = 1e-4});
    return train(model, uniform({batch, 1, 28, 28}, 1, 0, 1), indices({batch}, 2, 10),
                 std::move(optimizer), cross_entropy);
  };
}

WorkloadFactory train_gpt(const GptSize& size) {
  return [=] {
    auto model = make_model<Gpt>(size);
    optim::AdamW optimizer(model->parameters(), {.lr = 1e-4});
    return train(
        model, indices({size.batch, size.length}, 1, kGptTokens),
        indices({size.batch, size.length}, 2, kGptTokens), std::move(optimizer),
        [](const Tensor& logits, const Tensor& target) {
          return functional::cross_entropy(logits.reshape({-1, kGptTokens}), target.reshape({-1}));
        });
  };
}

WorkloadFactory train_lstm(int64_t batch) {
  return [=] {
    auto model = make_model<Lstm>();
    optim::Adam optimizer(model->parameters(), {.lr = 1e-4});
    return train(model, uniform({kLstmSteps, batch, kLstmInputs}, 1),
                 indices({batch}, 2, kLstmClasses), std::move(optimizer), cross_entropy);
  };
}

WorkloadFactory adamw_step(int64_t tensors, int64_t size) {
  return [=] {
    std::vector<Tensor> params;
    for (int64_t i = 0; i < tensors; ++i) {
      params.push_back(uniform({size}, 1).requires_grad_());
      params.back().set_grad(uniform({size}, 2));
    }
    auto optimizer = std::make_shared<optim::AdamW>(params, optim::AdamWOptions{.lr = 1e-4});
    return make_workload(
        [=] {
          optimizer->step();
          return params[0];
        },
        [](auto& step) { return sample(step().detach()); });
  };
}

WorkloadFactory infer_cnn(int64_t batch) {
  return [=] { return infer(make_model<Cnn>(), uniform({batch, 1, 28, 28}, 1, 0, 1)); };
}

WorkloadFactory infer_lstm(int64_t batch) {
  return [=] { return infer(make_model<Lstm>(), uniform({kLstmSteps, batch, kLstmInputs}, 1)); };
}

WorkloadFactory infer_gpt(const GptSize& size) {
  return [=] {
    return infer(make_model<Gpt>(size), indices({size.batch, size.length}, 1, kGptTokens));
  };
}

double train_mlp_flops(int64_t batch) {
  return 2.0 * static_cast<double>(batch) * (2 * 784 * 256 + 3 * 256 * 10);
}
double train_tiny_mlp_flops() { return 2.0 * 32 * (2 * 64 * 64 + 3 * 64 * 64 + 3 * 64); }
double train_cnn_flops(int64_t batch) {
  return static_cast<double>(batch) * (2 * kCnnFirstLayer + 3 * kCnnOtherLayers);
}
double train_gpt_flops(const GptSize& size) { return 3 * infer_gpt_flops(size); }
double infer_cnn_flops(int64_t batch) {
  return static_cast<double>(batch) * (kCnnFirstLayer + kCnnOtherLayers);
}
double train_lstm_flops(int64_t batch) {
  return static_cast<double>(batch) * (3 * kLstmForward - kLstmInputGradient);
}
double infer_lstm_flops(int64_t batch) { return static_cast<double>(batch) * kLstmForward; }
double infer_gpt_flops(const GptSize& size) {
  return static_cast<double>(size.batch * size.length) * gpt_forward(size);
}

}  // namespace kiln::bench
