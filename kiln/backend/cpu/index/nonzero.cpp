// nonzero: the positions of the true elements, found in two passes over fixed chunks: how many each
// holds, then where they are.
#include <algorithm>
#include <bit>
#include <cstring>

#include "kiln/backend/cpu/cpu.h"
#include "kiln/backend/cpu/elementwise.h"
#include "kiln/backend/cpu/scratch.h"

namespace kiln {
namespace cpu {
namespace {

constexpr int64_t kChunk = 32768;

int64_t count_true(const uint8_t* mask, int64_t n) {
  int64_t count = 0;
  for (int64_t i = 0; i < n; i += 128) {  // short enough for sums in bytes
    uint8_t sum = 0;
    const int64_t end = std::min<int64_t>(n, i + 128);
    for (int64_t k = i; k < end; ++k) sum = static_cast<uint8_t>(sum + (mask[k] != 0));
    count += sum;
  }
  return count;
}

constexpr int64_t kBlock = 512;  // elements whose places are kept at once

// Writes first + i for each true element i of n in order; how many there are. `out` has room for
// n + 8: what is not true is written over, so that no branch depends on it.
int64_t true_places(const uint8_t* mask, int64_t n, int64_t first, int64_t* out) {
  int64_t count = 0, i = 0;
  if constexpr (std::endian::native == std::endian::little) {
    for (; i + 8 <= n; i += 8) {
      uint64_t bytes;
      std::memcpy(&bytes, mask + i, 8);
      if (bytes == 0) continue;
      // Memory that is shared with others may hold any byte: each becomes 0 or 1, so that both
      // passes find the same.
      bytes |= bytes >> 4;
      bytes |= bytes >> 2;
      bytes |= bytes >> 1;
      bytes &= 0x0101010101010101u;
      const uint64_t before = bytes * 0x0101010101010101u;  // byte k: how many up to k
      int64_t* to = out + count;
      to[0] = first + i;
      for (int k = 1; k < 8; ++k) to[before >> (8 * k - 8) & 0xff] = first + i + k;
      count += static_cast<int64_t>(before >> 56);
    }
  }
  for (; i < n; ++i) {
    out[count] = first + i;
    count += mask[i] != 0;
  }
  return count;
}

// The positions of the true elements in [begin, end), `rank` numbers each.
void positions_in(const uint8_t* mask, const Shape& shape, int64_t begin, int64_t end,
                  int64_t* out) {
  const int rank = shape.rank();
  const int64_t columns = shape.back();
  int64_t row_begin = begin / columns * columns;
  Shape position = Shape::filled(rank, 0);
  for (int64_t d = rank - 2, rest = begin / columns; d >= 0; --d) {
    position[static_cast<int>(d)] = rest % shape[static_cast<int>(d)];
    rest /= shape[static_cast<int>(d)];
  }
  int64_t places[kBlock + 8];
  for (; begin < end; begin += kBlock) {
    const int64_t count = true_places(mask + begin, std::min(end - begin, kBlock), begin, places);
    if (rank == 1) {
      out = std::copy_n(places, count, out);
      continue;
    }
    for (int64_t i = 0; i < count; ++i) {
      while (places[i] - row_begin >= columns) {
        row_begin += columns;
        for (int d = rank - 2; d >= 0; --d) {
          if (++position[d] < shape[d]) break;
          position[d] = 0;
        }
      }
      for (int d = 0; d < rank - 1; ++d) *out++ = position[d];
      *out++ = places[i] - row_begin;
    }
  }
}

}  // namespace
}  // namespace cpu

HostHandle CpuOps::bool_nonzero(Arg<HostHandle> x) {
  const HostHandle source = cpu::contiguous(x);
  const auto* mask = source->data_as<const uint8_t>();
  const Shape& shape = x->shape();
  const int rank = shape.rank();
  const int64_t n = x->numel();
  const int64_t chunks = (n + cpu::kChunk - 1) / cpu::kChunk;
  const cpu::Scratch<int64_t> firsts(chunks + 1);
  parallel_for(n, cpu::kChunk, [&](int64_t begin, int64_t end) {
    firsts[begin / cpu::kChunk] = cpu::count_true(mask + begin, end - begin);
  });
  int64_t total = 0;
  for (int64_t c = 0; c < chunks; ++c) {
    const int64_t count = firsts[c];
    firsts[c] = total;
    total += count;
  }
  HostHandle out = host::empty(Shape{total, rank}, DType::i64, x->device());
  if (rank == 0 || total == 0) return out;
  auto* to = out->data_as<int64_t>();
  parallel_for(n, cpu::kChunk, [&](int64_t begin, int64_t end) {
    cpu::positions_in(mask, shape, begin, end, to + firsts[begin / cpu::kChunk] * rank);
  });
  return out;
}

}  // namespace kiln
