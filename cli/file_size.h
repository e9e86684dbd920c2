// Sizes of files as people write them.
#pragma once

#include <cstdint>
#include <string>

namespace kiln::cli {

// "1.2 MB": decimal units, as disks and model hubs count.
std::string size_text(uint64_t bytes);
// "5GB", "500 MB", "2GiB", "1000" (bytes). Throws UsageError for anything else, and for 0.
uint64_t parse_size(const std::string& text);

}  // namespace kiln::cli
