// Configurations to start from.
#pragma once

#include <string>
#include <vector>

namespace kiln::cli {

std::vector<std::string> example_kinds();
// A configuration that trains on what write_example() draws. Throws UsageError for no such kind.
std::string example_config(const std::string& kind);

}  // namespace kiln::cli
