// Rows that are a model: a step of training, or inference. The peer's halves are in
// bench/peer/models.cpp.
#include "bench/model_workloads.h"
#include "bench/row.h"
#include "bench/tensors.h"
#include "kiln/nn/module.h"

namespace kiln::bench {
namespace {

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
                  .make = train_mlp(64),
                  .flops = train_mlp_flops(64),
                  .tolerance = 1e-4,
                  .is_training = true});
  rows.push_back({.name = "train_tiny_mlp",
                  .what = "training step of an MLP 64-64-64-1, batch 32, SGD",
                  .make = train_tiny_mlp(),
                  .flops = train_tiny_mlp_flops(),
                  .tolerance = 1e-4,
                  .is_training = true});
  // Dropout draws other numbers on each side, so the losses only agree roughly.
  rows.push_back({.name = "train_cnn",
                  .what = "training step of a CNN of two convolutions, batch 64 of 28x28, Adam",
                  .make = train_cnn(64),
                  .flops = train_cnn_flops(64),
                  .tolerance = 0.2,
                  .is_training = true});
  rows.push_back({.name = "train_gpt",
                  .what = "training step of a GPT, 4 layers x 256, 8 heads, 8 x 128 bytes, AdamW",
                  .make = train_gpt({}),
                  .flops = train_gpt_flops({}),
                  .tolerance = 1e-3,
                  .is_training = true});
}

void add_more_model_rows(std::vector<Row>& rows) {
  rows.push_back({.name = "train_lstm",
                  .what = "training step of an LSTM 64-128, batch 16, 64 steps, Adam",
                  .make = train_lstm(16),
                  .flops = train_lstm_flops(16),
                  .tolerance = 1e-4,
                  .is_training = true});
  for (const int64_t batch : {1, 32}) {
    const std::string size = std::to_string(batch);
    rows.push_back({.name = "infer_lstm_b" + size,
                    .what = "inference with that LSTM, batch " + size,
                    .make = infer_lstm(batch),
                    .flops = infer_lstm_flops(batch),
                    .tolerance = 1e-4});
  }
  // Parameter, gradient and two moments are read, all but the gradient written.
  rows.push_back({.name = "adamw_100M",
                  .what = "step of AdamW over 100 million parameters in 16 tensors",
                  .make = adamw_step(16, 6250000),
                  .bytes = 7 * 4 * 1e8,
                  .tolerance = 1e-4});
  rows.push_back({.name = "module_call",
                  .what = "1000 calls of a module without hooks whose forward does nothing",
                  .make = module_call});
  for (const int64_t batch : {1, 64}) {
    const std::string size = std::to_string(batch);
    rows.push_back({.name = "infer_cnn_b" + size,
                    .what = "inference with that CNN, batch " + size,
                    .make = infer_cnn(batch),
                    .flops = infer_cnn_flops(batch),
                    .tolerance = 1e-4});
  }
  rows.push_back({.name = "infer_gpt_b1",
                  .what = "inference with that GPT, 1 x 128 bytes",
                  .make = infer_gpt({.batch = 1}),
                  .flops = infer_gpt_flops({.batch = 1}),
                  .tolerance = 1e-4});
}

}  // namespace kiln::bench
