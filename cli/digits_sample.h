// `kiln digits sample`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace kiln::cli {

struct DigitsSampleFlags {
  std::string out = "digit.png";
  std::optional<int> digit;
  uint64_t seed = 0;
  int grid = 1;
  int scale = 1;
};

// Returns the program's status. Throws kiln::Error.
int digits_sample(const DigitsSampleFlags& flags);

}  // namespace kiln::cli
