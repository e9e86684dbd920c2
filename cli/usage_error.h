// UsageError: a command that was typed wrongly, found after parsing.
#pragma once

#include <stdexcept>

namespace kiln::cli {

// Ends the program with status 2; other errors end it with 1.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace kiln::cli
