// ModelSummary: the layers of a model with their shapes, parameters, multiply-adds and memory.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "kiln/core/json.h"
#include "kiln/nn/module.h"

namespace kiln::cli {

struct LayerSummary {
  std::string name;  // "layer1.0.conv1"; empty: the model
  std::string kind;  // "Conv2d"
  int depth = 0;
  Shape output;
  int64_t parameters = 0;  // its own, without its parts'
  int64_t multiply_adds = 0;
  bool is_leaf = true;
};

struct ModelSummary {
  std::vector<LayerSummary> layers;  // in the order of their calls
  int64_t parameters = 0;            // what is shared counts once
  int64_t trainable = 0;
  int64_t multiply_adds = 0;  // of layers with weights
  int64_t input_bytes = 0;
  int64_t activation_bytes = 0;  // the outputs of all layers without parts
  int64_t parameter_bytes = 0;
};

// What happens when `call` runs the model on `input`, in eval mode and without gradients.
ModelSummary summarize(nn::Module& module, const Tensor& input,
                       const std::function<Tensor(const Tensor&)>& call);

// A table of at most `most` layers (0: all; deeper ones are left out first), and the sums.
std::string to_text(const ModelSummary& summary, size_t most = 0);
// The sums alone, two lines.
std::string sums_text(const ModelSummary& summary);
Json to_json(const ModelSummary& summary);

// "1.2 MiB".
std::string memory_text(int64_t bytes);
// "1.82 G" of 1,820,000,000.
std::string count_text(int64_t count);

}  // namespace kiln::cli
