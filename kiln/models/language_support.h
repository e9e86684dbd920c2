// What the language models have in common.
#pragma once

#include <functional>
#include <initializer_list>
#include <utility>
#include <vector>

#include "kiln/models/generation.h"
#include "kiln/nn/embedding.h"
#include "kiln/nn/linear.h"

namespace kiln::models {

using AttentionMask = std::pair<Tensor, bool>;  // the mask, or whether it is the causal one

std::function<void(Tensor&)> normal_values(double std);
// Layers whose weights start normal, and whose biases start at 0.
nn::Embedding table(int64_t rows, int64_t width, double std);
nn::Linear projection(int64_t inputs, int64_t outputs, bool bias, double std);
// [N, T, heads * features] -> [N, heads, T, features]
Tensor split_heads(const Tensor& x, int64_t heads);

// Throw ValueError "model: ..".
void require_at_least_one(const char* model,
                          std::initializer_list<std::pair<const char*, int64_t>> options);
void require_multiple(const char* model, const char* name, int64_t value, const char* of,
                      int64_t unit);
void check_input_ids(const char* model, const Tensor& input_ids);
void check_length(const char* model, const std::vector<std::vector<int64_t>>& prompts,
                  const GenerateOptions& options, int64_t positions);

}  // namespace kiln::models
