#include "kiln/io/crc32.h"

#include <algorithm>
#include <vector>

#include <zlib.h>

#include "kiln/core/parallel.h"

namespace kiln::io {

uint32_t crc32_joined(uint32_t first, uint32_t second, size_t second_bytes) {
  return static_cast<uint32_t>(::crc32_combine(first, second, static_cast<z_off_t>(second_bytes)));
}

uint32_t crc32_of(const void* data, size_t bytes) {
  const auto n = static_cast<int64_t>(bytes);
  std::vector<uint32_t> pieces(static_cast<size_t>((n + kCrcPiece - 1) / kCrcPiece));
  parallel_for(n, kCrcPiece, [&](int64_t begin, int64_t end) {
    pieces[static_cast<size_t>(begin / kCrcPiece)] = static_cast<uint32_t>(
        ::crc32_z(0, static_cast<const Bytef*>(data) + begin, static_cast<z_size_t>(end - begin)));
  });
  uint32_t crc = 0;
  for (size_t i = 0; i < pieces.size(); ++i) {
    const int64_t begin = static_cast<int64_t>(i) * kCrcPiece;
    crc = crc32_joined(crc, pieces[i], static_cast<size_t>(std::min(kCrcPiece, n - begin)));
  }
  return crc;
}

}  // namespace kiln::io
