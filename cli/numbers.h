// Checks of numbers on the command line, whose messages say what was expected.
#pragma once

#include <cstdint>
#include <string>

#include <CLI/CLI.hpp>

namespace kiln::cli {

// A whole number in [low, high].
CLI::Validator whole_number(int64_t low, int64_t high);
// A finite number above 0.
CLI::Validator positive_number();

}  // namespace kiln::cli
