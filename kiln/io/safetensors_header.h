// The JSON header of a safetensors file: parsing with every check, and its dtype names. For
// safetensors.cpp.
#pragma once

#include <string_view>

#include "kiln/io/safetensors.h"

namespace kiln::io::detail {

// A header longer than this is refused (the limit of the reference implementation).
inline constexpr uint64_t kMaxSafetensorsHeader = 100'000'000;

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> entries;  // in the order of their data
  Metadata metadata;
};

// Parses and validates a header for `data_bytes` bytes of data. What it allocates is bounded by the
// header's own length. Throws IoError naming `path`.
SafetensorsHeader parse_safetensors_header(const std::string& path, std::string_view json,
                                           uint64_t data_bytes);

// "F32", ...; nullptr for a dtype that the format lacks.
const char* safetensors_name(DType dtype);

}  // namespace kiln::io::detail
