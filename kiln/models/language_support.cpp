#include "kiln/models/language_support.h"

#include <algorithm>

#include "kiln/core/error.h"
#include "kiln/nn/init.h"

namespace kiln::models {

std::function<void(Tensor&)> normal_values(double std) {
  return [std](Tensor& x) { nn::init::normal_(x, 0, std); };
}

nn::Embedding table(int64_t rows, int64_t width, double std) {
  nn::Embedding out(rows, width);
  out.weight = nn::parameter({rows, width}, normal_values(std));
  return out;
}

nn::Linear projection(int64_t inputs, int64_t outputs, bool bias, double std) {
  nn::Linear out(inputs, outputs, bias);
  out.weight = nn::parameter({outputs, inputs}, normal_values(std));
  if (bias) out.bias = nn::parameter({outputs}, nn::init::zeros_);
  return out;
}

Tensor split_heads(const Tensor& x, int64_t heads) {
  return x.view({x.size(0), x.size(1), heads, x.size(2) / heads}).transpose(1, 2);
}

void require_at_least_one(const char* model,
                          std::initializer_list<std::pair<const char*, int64_t>> options) {
  for (const auto& [name, value] : options) {
    if (value < 1) {
      throw_error<ValueError>(model, ": ", name, " must be at least 1; got ", value);
    }
  }
}

void require_multiple(const char* model, const char* name, int64_t value, const char* of,
                      int64_t unit) {
  if (value % unit != 0) {
    throw_error<ValueError>(model, ": ", name, " must be a multiple of ", of, "; got ", value,
                            " and ", unit);
  }
}

void check_input_ids(const char* model, const Tensor& input_ids) {
  if (input_ids.dim() != 2 || !is_integral(input_ids.dtype()) || input_ids.size(1) < 1) {
    throw_error<ValueError>(model,
                            ": input_ids must be integers [batch, length of at least 1]; got ",
                            to_string(input_ids.dtype()), " ", to_string(input_ids.shape()));
  }
}

void check_length(const char* model, const std::vector<std::vector<int64_t>>& prompts,
                  const GenerateOptions& options, int64_t positions) {
  size_t length = 0;
  for (const auto& prompt : prompts) length = std::max(length, prompt.size());
  if (options.max_new_tokens > positions ||
      int64_t(length) + options.max_new_tokens - 1 > positions) {
    throw_error<ValueError>(model, ": a prompt of ", length, " tokens and ", options.max_new_tokens,
                            " new ones are more than the model's ", positions, " positions");
  }
}

}  // namespace kiln::models
