// TrainConfig: what determines the result of `kiln digits train`.
#pragma once

#include <cstdint>
#include <string>

namespace kiln::cli {

struct TrainConfig {
  std::string data;     // a folder in MNIST's form; empty: the built-in set
  int64_t samples = 0;  // 0: all
  int64_t epochs = 5;
  int64_t batch_size = 64;
  double learning_rate = 0.002;  // the highest
  uint64_t seed = 1;
};

// As JSON, for the checkpoint.
std::string to_json(const TrainConfig& config);
// Throws ValueError for anything else than what to_json() writes.
TrainConfig train_config_from_json(const std::string& json);

}  // namespace kiln::cli
