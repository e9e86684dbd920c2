// Rows that are a model: a step of training, or inference. The peer's halves are in
// bench/peer/models.cpp.
#include <array>
#include <cmath>

#include "bench/row.h"
#include "bench/tensors.h"
#include "kiln/nn/batch_norm2d.h"
#include "kiln/nn/conv2d.h"
#include "kiln/nn/dropout.h"
#include "kiln/nn/embedding.h"
#include "kiln/nn/layer_norm.h"
#include "kiln/nn/linear.h"
#include "kiln/nn/max_pool2d.h"
#include "kiln/nn/module.h"
#include "kiln/optim/adam.h"
#include "kiln/optim/adamw.h"
#include "kiln/optim/sgd.h"
#include "kiln/tensor/attention.h"
#include "kiln/tensor/grad_mode.h"
#include "kiln/tensor/ops.h"

namespace kiln::bench {
namespace {

struct Mlp : nn::Module {
  nn::Linear fc1{784, 256};
  nn::Linear fc2{256, 10};
  KILN_MODULE(Mlp, fc1, fc2)

  Tensor forward(TensorArg x) { return fc2(relu(fc1(x))); }
};

struct TinyMlp : nn::Module {
  nn::Linear fc1{64, 64};
  nn::Linear fc2{64, 64};
  nn::Linear fc3{64, 1};
  KILN_MODULE(TinyMlp, fc1, fc2, fc3)

  Tensor forward(TensorArg x) { return fc3(relu(fc2(relu(fc1(x))))); }
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
    return fc2(dropout(relu(fc1(y))));
  }
};

// Products and sums of one image's way through the Cnn, twice; then its backward pass, which does
// each again for the weights and, but for the first layer, for the input.
constexpr double kCnnFirstLayer = 2.0 * 32 * 26 * 26 * 9;
constexpr double kCnnOtherLayers = 2.0 * (64 * 24 * 24 * 32 * 9 + 64 * 12 * 12 * 128 + 128 * 10);
constexpr double kCnnForward = kCnnFirstLayer + kCnnOtherLayers;
constexpr double kCnnStep = 2 * kCnnFirstLayer + 3 * kCnnOtherLayers;

// A small GPT, pre-norm, over bytes.
constexpr int64_t kGptWidth = 256, kGptHeads = 8, kGptLayers = 4, kGptLength = 128,
                  kGptTokens = 256;

struct GptBlock : nn::Module {
  nn::LayerNorm norm1{kGptWidth};
  nn::Linear qkv{kGptWidth, 3 * kGptWidth};
  nn::Linear out{kGptWidth, kGptWidth};
  nn::LayerNorm norm2{kGptWidth};
  nn::Linear up{kGptWidth, 4 * kGptWidth};
  nn::Linear down{4 * kGptWidth, kGptWidth};
  KILN_MODULE(GptBlock, norm1, qkv, out, norm2, up, down)

  Tensor forward(Tensor x) {
    x = x + out(attend(qkv(norm1(x))));
    return x + down(gelu(up(norm2(x))));
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
  nn::Embedding positions{kGptLength, kGptWidth};
  std::array<GptBlock, kGptLayers> blocks;
  nn::LayerNorm norm{kGptWidth};
  nn::Linear head{kGptWidth, kGptTokens};
  KILN_MODULE(Gpt, tokens, positions, blocks, norm, head)

  Tensor forward(const Tensor& x) {
    Tensor y = tokens(x) + positions(arange(x.size(1)));
    for (GptBlock& block : blocks) y = block(y);
    return head(norm(y));
  }
};

// Multiply-adds of one token's way forward: the weights', and attention over half of the others.
constexpr double kGptForward =
    2.0 *
    (kGptLayers * (12.0 * kGptWidth * kGptWidth + kGptLength * kGptWidth) + kGptTokens * kGptWidth);

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
    } else if (name.ends_with("bias")) {
      parameter.zero_();
    }
    ++seed;
  }
}

template <class Model>
std::shared_ptr<Model> make_model() {
  auto model = std::make_shared<Model>();
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

Tensor cross_entropy(const Tensor& logits, const Tensor& target) {
  return functional::cross_entropy(logits, target);
}

std::unique_ptr<Workload> train_mlp() {
  auto model = make_model<Mlp>();
  optim::Adam optimizer(model->parameters(), {.lr = 1e-5});
  return train(model, uniform({64, 784}, 1, 0, 1), indices({64}, 2, 10), std::move(optimizer),
               cross_entropy);
}

std::unique_ptr<Workload> train_tiny_mlp() {
  auto model = make_model<TinyMlp>();
  optim::SGD optimizer(model->parameters(), {.lr = 1e-3});
  return train(
      model, uniform({32, 64}, 1), uniform({32, 1}, 2), std::move(optimizer),
      [](const Tensor& y, const Tensor& target) { return functional::mse_loss(y, target); });
}

std::unique_ptr<Workload> train_cnn() {
  auto model = make_model<Cnn>();
  optim::Adam optimizer(model->parameters(), {.lr = 1e-4});
  return train(model, uniform({64, 1, 28, 28}, 1, 0, 1), indices({64}, 2, 10), std::move(optimizer),
               cross_entropy);
}

std::unique_ptr<Workload> train_gpt() {
  auto model = make_model<Gpt>();
  optim::AdamW optimizer(model->parameters(), {.lr = 1e-4});
  return train(
      model, indices({8, kGptLength}, 1, kGptTokens), indices({8, kGptLength}, 2, kGptTokens),
      std::move(optimizer), [](const Tensor& logits, const Tensor& target) {
        return functional::cross_entropy(logits.reshape({-1, kGptTokens}), target.reshape({-1}));
      });
}

std::unique_ptr<Workload> infer_gpt() {
  auto model = make_model<Gpt>();
  model->eval();
  const Tensor x = indices({1, kGptLength}, 1, kGptTokens);
  return make_workload(
      [=] {
        const NoGradGuard no_grad;
        return (*model)(x);
      },
      [](auto& step) { return sample(step()); });
}

WorkloadFactory infer_cnn(int64_t batch) {
  return [=] {
    auto model = make_model<Cnn>();
    model->eval();
    const Tensor x = uniform({batch, 1, 28, 28}, 1, 0, 1);
    return make_workload(
        [=] {
          const NoGradGuard no_grad;
          return (*model)(x);
        },
        [](auto& step) { return sample(step()); });
  };
}

// A module that does nothing: what remains is the call.
struct Pass : nn::Module {
  KILN_MODULE(Pass)
  const Tensor& forward(const Tensor& x) const { return x; }
};

// A thousand calls of one module, none of which the compiler may leave out.
std::unique_ptr<Workload> module_call() {
  auto module = std::make_shared<Pass>();
  const Tensor x = uniform({1}, 1);
  return make_workload(
      [=] {
        const Tensor* y = &x;
        for (int i = 0; i < 1000; ++i) {
          y = &(*module)(*y);
          asm volatile("" : "+r"(y) : : "memory");
        }
        return *y;
      },
      [](auto& step) { return sample(step()); });
}

}  // namespace

void add_training_rows(std::vector<Row>& rows) {
  rows.push_back({.name = "train_mlp",
                  .what = "training step of an MLP 784-256-10, batch 64, Adam",
                  .make = train_mlp,
                  .flops = 2.0 * 64 * (2 * 784 * 256 + 3 * 256 * 10),
                  .tolerance = 1e-4,
                  .is_training = true});
  rows.push_back({.name = "train_tiny_mlp",
                  .what = "training step of an MLP 64-64-64-1, batch 32, SGD",
                  .make = train_tiny_mlp,
                  .flops = 2.0 * 32 * (2 * 64 * 64 + 3 * 64 * 64 + 3 * 64),
                  .tolerance = 1e-4,
                  .is_training = true});
  // Dropout draws other numbers on each side, so the losses only agree roughly.
  rows.push_back({.name = "train_cnn",
                  .what = "training step of a CNN of two convolutions, batch 64 of 28x28, Adam",
                  .make = train_cnn,
                  .flops = 64 * kCnnStep,
                  .tolerance = 0.2,
                  .is_training = true});
  rows.push_back({.name = "train_gpt",
                  .what = "training step of a GPT, 4 layers x 256, 8 heads, 8 x 128 bytes, AdamW",
                  .make = train_gpt,
                  .flops = 3 * 8 * kGptLength * kGptForward,
                  .tolerance = 1e-3,
                  .is_training = true});
}

void add_inference_rows(std::vector<Row>& rows) {
  rows.push_back({.name = "module_call",
                  .what = "1000 calls of a module without hooks whose forward does nothing",
                  .make = module_call});
  for (const int64_t batch : {1, 64}) {
    const std::string size = std::to_string(batch);
    rows.push_back({.name = "infer_cnn_b" + size,
                    .what = "inference with that CNN, batch " + size,
                    .make = infer_cnn(batch),
                    .flops = static_cast<double>(batch) * kCnnForward,
                    .tolerance = 1e-4});
  }
  rows.push_back({.name = "infer_gpt_b1",
                  .what = "inference with that GPT, 1 x 128 bytes",
                  .make = infer_gpt,
                  .flops = kGptLength * kGptForward,
                  .tolerance = 1e-4});
}

}  // namespace kiln::bench
