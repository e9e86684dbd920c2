#include "kiln/io/crc32.h"

#include <algorithm>
#include <vector>

#include "kiln/core/parallel.h"
#include "kiln/io/zlib_or_none.h"

namespace kiln::io {

#ifndef KILN_HAS_ZLIB

namespace {

constexpr uint32_t kPolynomial = 0xedb88320;  // reversed: the highest power is bit 0

using z_off_t = int64_t;
using z_size_t = size_t;

uint32_t crc32_z(uint32_t crc, const Bytef* data, z_size_t bytes) {
  static const std::vector<uint32_t> table = [] {
    std::vector<uint32_t> out(256);
    for (uint32_t i = 0; i < 256; ++i) {
      out[i] = i;
      for (int bit = 0; bit < 8; ++bit) out[i] = (out[i] >> 1) ^ (out[i] & 1 ? kPolynomial : 0);
    }
    return out;
  }();
  crc = ~crc;
  for (size_t i = 0; i < bytes; ++i) crc = table[(crc ^ data[i]) & 0xff] ^ (crc >> 8);
  return ~crc;
}

// The product of two polynomials, modulo the CRC's.
uint32_t product(uint32_t a, uint32_t b) {
  uint32_t out = 0;
  for (; a != 0; a <<= 1) {
    if (a & 0x80000000) out ^= b;
    b = (b >> 1) ^ (b & 1 ? kPolynomial : 0);
  }
  return out;
}

uint32_t crc32_combine(uint32_t first, uint32_t second, z_off_t second_bytes) {
  uint32_t shift = 0x80000000;  // 1
  uint32_t power = 0x00800000;  // x^8, and then its squares
  for (auto n = static_cast<uint64_t>(second_bytes); n != 0; n >>= 1) {
    if (n & 1) shift = product(shift, power);
    power = product(power, power);
  }
  return product(shift, first) ^ second;
}

}  // namespace

#endif

uint32_t crc32_joined(uint32_t first, uint32_t second, size_t second_bytes) {
  return static_cast<uint32_t>(crc32_combine(first, second, static_cast<z_off_t>(second_bytes)));
}

uint32_t crc32_of(const void* data, size_t bytes) {
  const auto n = static_cast<int64_t>(bytes);
  std::vector<uint32_t> pieces(static_cast<size_t>((n + kCrcPiece - 1) / kCrcPiece));
  parallel_for(n, kCrcPiece, [&](int64_t begin, int64_t end) {
    pieces[static_cast<size_t>(begin / kCrcPiece)] = static_cast<uint32_t>(
        crc32_z(0, static_cast<const Bytef*>(data) + begin, static_cast<z_size_t>(end - begin)));
  });
  uint32_t crc = 0;
  for (size_t i = 0; i < pieces.size(); ++i) {
    const int64_t begin = static_cast<int64_t>(i) * kCrcPiece;
    crc = crc32_joined(crc, pieces[i], static_cast<size_t>(std::min(kCrcPiece, n - begin)));
  }
  return crc;
}

}  // namespace kiln::io
