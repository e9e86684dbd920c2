// `kiln digits eval`.
#pragma once

#include <string>

namespace kiln::cli {

struct DigitsEvalFlags {
  std::string model;
  std::string data;  // empty: the built-in set
  int threads = 0;   // 0: all processors
};

// Returns the program's status. Throws kiln::Error.
int digits_eval(const DigitsEvalFlags& flags);

}  // namespace kiln::cli
