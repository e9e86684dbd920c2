// Models as rows and sweeps run them: a step of training, or inference.
#pragma once

#include <cstdint>

#include "bench/gpt_size.h"
#include "bench/workload.h"

namespace kiln::bench {

constexpr int64_t kGptWidth = 256;

// An MLP 784-256-10 with Adam; one of 64-64-64-1 with SGD; a CNN of two convolutions for 28x28
// images with Adam; a GPT of width 256 with 8 heads over bytes, with AdamW; an LSTM 64-128 over 64
// steps with Adam.
WorkloadFactory train_mlp(int64_t batch);
WorkloadFactory train_tiny_mlp();
WorkloadFactory train_cnn(int64_t batch);
WorkloadFactory train_gpt(const GptSize& size);
WorkloadFactory train_lstm(int64_t batch);
WorkloadFactory infer_cnn(int64_t batch);
WorkloadFactory infer_lstm(int64_t batch);
WorkloadFactory infer_gpt(const GptSize& size);
// A step of AdamW over this many tensors of this size, without a model.
WorkloadFactory adamw_step(int64_t tensors, int64_t size);

// Operations of the products in them.
double train_mlp_flops(int64_t batch);
double train_tiny_mlp_flops();
double train_cnn_flops(int64_t batch);
double train_gpt_flops(const GptSize& size);
double infer_cnn_flops(int64_t batch);
double train_lstm_flops(int64_t batch);
double infer_lstm_flops(int64_t batch);
double infer_gpt_flops(const GptSize& size);

}  // namespace kiln::bench
