// `kiln digits train`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace kiln::cli {

// What was typed; an optional that was not typed is empty.
struct DigitsTrainFlags {
  std::string out = "kiln-digits";
  std::optional<std::string> data;
  std::optional<int64_t> samples;
  std::optional<int64_t> epochs;
  std::optional<int64_t> batch_size;
  std::optional<double> learning_rate;
  std::optional<uint64_t> seed;
  int threads = 0;  // 0: all processors
  bool resume = false;
  bool quiet = false;
  bool plain = false;
};

// Returns the program's status. Throws UsageError and kiln::Error.
int digits_train(const DigitsTrainFlags& flags);

}  // namespace kiln::cli
