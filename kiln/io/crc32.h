// The checksum of zip archives, over large memory by several threads.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kiln::io {

// Bytes that one thread takes at a time.
inline constexpr int64_t kCrcPiece = int64_t{4} << 20;

// CRC-32 (of zip, gzip and PNG) of `bytes` bytes.
uint32_t crc32_of(const void* data, size_t bytes);
// That of two pieces of data joined, from those of the pieces and the bytes of the second.
uint32_t crc32_joined(uint32_t first, uint32_t second, size_t second_bytes);

}  // namespace kiln::io
