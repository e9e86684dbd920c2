// How sorting sees values: as unsigned keys of the same order, each with its index. Internal to the
// Cpu backend.
//
// Note [Radix sort]
// Values become unsigned keys of the same order, and travel with their index. A pass distributes
// all entries by 11 bits of the key, from the low bits up, and keeps the order of what falls
// together: three passes for 32 bits. A long row is cut into chunks that count and distribute by
// themselves; where an entry goes depends on the entries before it and not on the chunks, so the
// result is the same at any number of threads. Short rows go by 8 bits, which need fewer counters,
// and only by those bytes in which their keys differ; very short ones by comparisons.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "kiln/backend/cpu/few.h"
#include "kiln/backend/cpu/scratch.h"
#include "kiln/backend/host_tensor.h"
#include "kiln/core/dim_order.h"
#include "kiln/core/parallel.h"

namespace kiln::cpu {

inline constexpr int kDigitBits = 11;
inline constexpr uint32_t kDigits = 1u << kDigitBits;
inline constexpr int64_t kShortRow = 1024;  // up to this, digits have 8 bits
inline constexpr int64_t kSortChunk = 65536;
inline constexpr int64_t kMostChunks = 64;

template <class T>
using KeyOf = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;

// NaN is larger than everything, and -0 equals 0.
template <class T>
KeyOf<T> key_of(T value) {
  using Key = KeyOf<T>;
  constexpr Key kTop = Key{1} << (8 * sizeof(Key) - 1);
  if constexpr (std::is_floating_point_v<T>) {
    if (value != value) return ~Key{0};
    const Key bits = std::bit_cast<Key>(value == T(0) ? T(0) : value);
    return (bits & kTop) != 0 ? ~bits : bits | kTop;
  } else {
    return static_cast<Key>(static_cast<std::make_signed_t<Key>>(value)) ^ kTop;
  }
}

template <class Key>
struct Entry {
  Key key;
  uint32_t index;

  friend bool operator<(const Entry& a, const Entry& b) {
    return a.key != b.key ? a.key < b.key : a.index < b.index;
  }
};

template <class Key>
class RadixSort {
 public:
  // Sorts `a` by key with the help of `b`; both hold n entries. The result is where it returns.
  static Entry<Key>* run(Entry<Key>* a, Entry<Key>* b, int64_t n) {
    if (n <= kShortRow) return run_short(a, b, n);
    const int64_t chunks = std::min(kMostChunks, (n + kSortChunk - 1) / kSortChunk);
    const int64_t chunk = (n + chunks - 1) / chunks;
    const Scratch<uint32_t> counts(chunks * kDigits);
    for (unsigned shift = 0; shift < 8 * sizeof(Key); shift += kDigitBits) {
      parallel_for(n, chunk, [&](int64_t begin, int64_t end) {
        uint32_t* count = counts.get() + begin / chunk * kDigits;
        std::fill_n(count, kDigits, 0u);
        for (int64_t i = begin; i < end; ++i) ++count[digit(a[i].key, shift)];
      });
      if (!counts_to_places(counts.get(), chunks, n)) continue;
      parallel_for(n, chunk, [&](int64_t begin, int64_t end) {
        uint32_t* place = counts.get() + begin / chunk * kDigits;
        for (int64_t i = begin; i < end; ++i) b[place[digit(a[i].key, shift)]++] = a[i];
      });
      std::swap(a, b);
    }
    return a;
  }

 private:
  static Entry<Key>* run_short(Entry<Key>* a, Entry<Key>* b, int64_t n) {
    Key differs = 0;
    for (int64_t i = 1; i < n; ++i) differs |= a[i].key ^ a[0].key;
    int passes = 0;
    for (unsigned shift = 0; shift < 8 * sizeof(Key); shift += 8) {
      passes += static_cast<int>(((differs >> shift) & 0xff) != 0);
    }
    // In nanoseconds, roughly: clearing and adding up counters, and two looks at each entry.
    const int64_t comparisons = n * std::bit_width(static_cast<uint64_t>(n));
    if (passes * (150 + 5 * n / 2) > 3 * comparisons) {
      std::sort(a, a + n);
      return a;
    }
    for (unsigned shift = 0; shift < 8 * sizeof(Key); shift += 8) {
      if (((differs >> shift) & 0xff) == 0) continue;
      uint32_t place[256] = {};
      for (int64_t i = 0; i < n; ++i) ++place[(a[i].key >> shift) & 0xff];
      uint32_t next = 0;
      for (uint32_t& p : place) next += std::exchange(p, next);
      for (int64_t i = 0; i < n; ++i) b[place[(a[i].key >> shift) & 0xff]++] = a[i];
      std::swap(a, b);
    }
    return a;
  }
  static uint32_t digit(Key key, unsigned shift) {
    return static_cast<uint32_t>(key >> shift) & (kDigits - 1);
  }
  // From how often each chunk holds each digit to where its first one goes. False when all entries
  // have the same digit, and stay where they are.
  static bool counts_to_places(uint32_t* counts, int64_t chunks, int64_t n) {
    uint32_t place = 0;
    for (uint32_t d = 0; d < kDigits; ++d) {
      const uint32_t first = place;
      for (int64_t c = 0; c < chunks; ++c) {
        uint32_t& count = counts[c * kDigits + d];
        const uint32_t next = place + count;
        count = place;
        place = next;
      }
      if (place - first == static_cast<uint32_t>(n)) return false;
    }
    return true;
  }
};

// Rows so short are sorted by comparing all pairs, without a branch.
inline constexpr int64_t kPairedRow = 20;

template <int kLength, class T>
void ranks_of_short_row(const T* row, KeyOf<T> flip, uint32_t* ranks) {
  KeyOf<T> keys[kLength];
  uint32_t places[kLength];
#pragma GCC unroll 8
  for (int i = 0; i < kLength; ++i) {
    keys[i] = key_of(row[i]) ^ flip;
    places[i] = static_cast<uint32_t>(i);
  }
#pragma GCC unroll 8
  for (int i = 1; i < kLength; ++i) {
#pragma GCC unroll 8
    for (int k = 0; k < i; ++k) {
      const uint32_t is_larger = keys[k] > keys[i] ? 1 : 0;
      places[k] += is_larger;
      places[i] -= is_larger;
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < kLength; ++i) ranks[i] = places[i];
}

// ranks[i]: where sorting brings element i of a row of n <= kPairedRow, with the order of sort().
template <class T>
void ranks_of_row(const T* row, int64_t n, KeyOf<T> flip, uint32_t* ranks) {
  if (with_few<8>(n, [&](auto length) { ranks_of_short_row<length()>(row, flip, ranks); })) return;
  KeyOf<T> keys[kPairedRow];
  for (int64_t i = 0; i < n; ++i) {
    const KeyOf<T> key = key_of(row[i]) ^ flip;
    uint32_t larger = 0;  // of those before
    for (int64_t k = 0; k < i; ++k) {
      const uint32_t is_larger = keys[k] > key ? 1 : 0;
      ranks[k] += is_larger;
      larger += is_larger;
    }
    keys[i] = key;
    ranks[i] = static_cast<uint32_t>(i) - larger;
  }
}

// The order of dims with `dim` last.
inline Dims dim_last(int rank, int dim) {
  Dims dims = all_dims(rank);
  for (int i = dim; i + 1 < rank; ++i) std::swap(dims[i], dims[i + 1]);
  return dims;
}
}  // namespace kiln::cpu
