// Data that the program draws, so that each kind of configuration can be tried.
#pragma once

#include <string>

namespace kiln::cli {

// Writes config.json and the data that it names to a folder, which must not hold one already.
// Throws UsageError, IoError.
void write_example(const std::string& kind, const std::string& folder);

}  // namespace kiln::cli
