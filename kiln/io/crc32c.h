// CRC-32C (Castagnoli), the checksum of record files.
#pragma once

#include <cstdint>
#include <string_view>

namespace kiln::io {

// RFC 3720, appendix B.4.
uint32_t crc32c_of(std::string_view bytes);

}  // namespace kiln::io
