#include "kiln/backend/cpu/copy/copy_kernels.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "kiln/backend/cpu/kernel_table.h"

// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kiln/backend/cpu/copy/copy_kernels.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
#include <hwy/cache_control.h>

#include "kiln/backend/cpu/copy/transpose-inl.h"
#include "kiln/backend/cpu/masked-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace kiln::cpu::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

void copy(const void* from, void* to, int64_t bytes) {
  const hn::ScalableTag<uint8_t> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto* in = static_cast<const uint8_t*>(from);
  auto* out = static_cast<uint8_t*>(to);
  // Of equal alignment the string instructions are faster: they need not read what they write.
  const auto apart = reinterpret_cast<uintptr_t>(in) | reinterpret_cast<uintptr_t>(out);
  if (bytes < 4 * lanes || (apart % 64 == 0 && bytes >= 2048)) {
    std::memcpy(out, in, static_cast<size_t>(bytes));
    return;
  }
  // Whole vectors of the target, between two that may overlap them.
  const auto last = hn::LoadU(d, in + bytes - lanes);
  hn::StoreU(hn::LoadU(d, in), d, out);
  int64_t i = lanes - static_cast<int64_t>(reinterpret_cast<uintptr_t>(out) % hn::Lanes(d));
  for (; i + 4 * lanes <= bytes; i += 4 * lanes) {
    const auto a = hn::LoadU(d, in + i);
    const auto b = hn::LoadU(d, in + i + lanes);
    const auto c = hn::LoadU(d, in + i + 2 * lanes);
    const auto e = hn::LoadU(d, in + i + 3 * lanes);
    hn::Store(a, d, out + i);
    hn::Store(b, d, out + i + lanes);
    hn::Store(c, d, out + i + 2 * lanes);
    hn::Store(e, d, out + i + 3 * lanes);
  }
  for (; i + lanes <= bytes; i += lanes) hn::Store(hn::LoadU(d, in + i), d, out + i);
  hn::StoreU(last, d, out + bytes - lanes);
}

// Rows of kVectors vectors, the last of which may lie over the one before.
template <int kVectors, class D>
HWY_INLINE void copy_rows_of(D d, const uint8_t* from, int64_t from_step, uint8_t* to,
                             int64_t to_step, int64_t bytes, int64_t rows) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t last = bytes - lanes;
  for (int64_t r = 0; r < rows; ++r, from += from_step, to += to_step) {
    hn::Vec<D> v[kVectors];
#pragma GCC unroll 8
    for (int k = 0; k < kVectors; ++k) {
      v[k] = hn::LoadU(d, from + (k + 1 < kVectors ? k * lanes : last));
    }
#pragma GCC unroll 8
    for (int k = 0; k < kVectors; ++k) {
      hn::StoreU(v[k], d, to + (k + 1 < kVectors ? k * lanes : last));
    }
  }
}

// Of two numbers of kBytes, which may lie over each other.
template <int kBytes>
void copy_short_rows(const uint8_t* from, int64_t from_step, uint8_t* to, int64_t to_step,
                     int64_t bytes, int64_t rows) {
  for (int64_t r = 0; r < rows; ++r, from += from_step, to += to_step) {
    uint8_t low[kBytes], high[kBytes];
    std::memcpy(low, from, kBytes);
    std::memcpy(high, from + bytes - kBytes, kBytes);
    std::memcpy(to, low, kBytes);
    std::memcpy(to + bytes - kBytes, high, kBytes);
  }
}

// Returns whether it knows rows of that length.
template <class D>
bool copy_rows_of_vectors(D d, const uint8_t* from, int64_t from_step, uint8_t* to, int64_t to_step,
                          int64_t bytes, int64_t rows) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto copy = [&](auto count) HWY_ATTR {
    copy_rows_of<decltype(count)::value>(d, from, from_step, to, to_step, bytes, rows);
    return true;
  };
  switch ((bytes + lanes - 1) / lanes) {
    case 1:
      return bytes == lanes && copy(std::integral_constant<int, 1>());
    case 2:
      return copy(std::integral_constant<int, 2>());
    case 3:
      return copy(std::integral_constant<int, 3>());
    case 4:
      return copy(std::integral_constant<int, 4>());
    case 5:
      return copy(std::integral_constant<int, 5>());
    case 6:
      return copy(std::integral_constant<int, 6>());
    case 7:
      return copy(std::integral_constant<int, 7>());
    case 8:
      return copy(std::integral_constant<int, 8>());
    default:
      return false;
  }
}

void copy_rows(const void* from, int64_t from_step, void* to, int64_t to_step, int64_t bytes,
               int64_t rows, bool stream) {
  const auto* in = static_cast<const uint8_t*>(from);
  auto* out = static_cast<uint8_t*>(to);
  const hn::ScalableTag<uint8_t> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  if (stream && bytes % lanes == 0) {
    for (int64_t r = 0; r < rows; ++r, in += from_step, out += to_step) {
      for (int64_t i = 0; i < bytes; i += lanes) hn::Stream(hn::LoadU(d, in + i), d, out + i);
    }
    hwy::FlushStream();
    return;
  }
  if (bytes >= 4 && bytes <= 8) return copy_short_rows<4>(in, from_step, out, to_step, bytes, rows);
  if (bytes > 8 && bytes <= 16) {
    return copy_short_rows<8>(in, from_step, out, to_step, bytes, rows);
  }
  if (lanes > 1 && bytes > 16) {
    const hn::CappedTag<uint8_t, 16> d16;
    const bool done = bytes < lanes
                          ? copy_rows_of_vectors(d16, in, from_step, out, to_step, bytes, rows)
                          : copy_rows_of_vectors(d, in, from_step, out, to_step, bytes, rows);
    if (done) return;
  }
  for (int64_t r = 0; r < rows; ++r, in += from_step, out += to_step) copy(in, out, bytes);
}

void fill(uint64_t pattern, void* to, int64_t bytes) {
  const hn::ScalableTag<uint64_t> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d)) * 8;
  auto* out = static_cast<uint8_t*>(to);
  const auto value = hn::Set(d, pattern);
  int64_t i = 0;
  for (; i + lanes <= bytes; i += lanes) {
    hn::StoreU(value, d, reinterpret_cast<uint64_t*>(out + i));
  }
  for (; i < bytes; i += 8) {
    std::memcpy(out + i, &pattern, static_cast<size_t>(bytes - i < 8 ? bytes - i : 8));
  }
}

template <class D, class T = hn::TFromD<D>>
HWY_INLINE hn::Vec<D> reversed([[maybe_unused]] D d, hn::Vec<D> v) {
#if HWY_TARGET != HWY_SCALAR
  if constexpr (sizeof(T) == 1) {  // by eights, and within them
    alignas(16) static constexpr uint8_t kPlaces[16] = {7,  6,  5,  4,  3,  2,  1, 0,
                                                        15, 14, 13, 12, 11, 10, 9, 8};
    const hn::Repartition<uint64_t, D> d64;
    const auto eights = hn::BitCast(d, hn::Reverse(d64, hn::BitCast(d64, v)));
    return hn::TableLookupBytes(eights, hn::LoadDup128(d, kPlaces));
  } else {
    return hn::Reverse(d, v);
  }
#else
  return v;
#endif
}

template <class T>
void reverse(const T* HWY_RESTRICT from, int64_t from_step, T* HWY_RESTRICT to, int64_t to_step,
             int64_t n, int64_t rows) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t r = 0; r < rows; ++r, from += from_step, to += to_step) {
    if (n < lanes) {
      for (int64_t i = 0; i < n; ++i) to[i] = from[-i];
      continue;
    }
    // The last vector may lie over the one before.
    for (int64_t i = 0;; i = std::min(i + lanes, n - lanes)) {
      hn::StoreU(reversed(d, hn::LoadU(d, from - i - lanes + 1)), d, to + i);
      if (i == n - lanes) break;
    }
  }
}

template <class T>
void every_other(const T* HWY_RESTRICT from, T* HWY_RESTRICT to, int64_t n) {
  int64_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  // Not up to the end, where the second vector would read one element too many.
  for (; i + lanes < n; i += lanes) {
    const auto low = hn::LoadU(d, from + 2 * i);
    const auto high = hn::LoadU(d, from + 2 * i + lanes);
    hn::StoreU(hn::ConcatEven(d, high, low), d, to + i);
  }
#endif
  for (; i < n; ++i) to[i] = from[2 * i];
}

// The side of a tile: elements of one cache line, so that it reads whole lines and writes whole
// lines. Matrices of bytes, which are masks and small images, are rarely that large.
template <class T>
constexpr int64_t kSide = sizeof(T) == 1 ? 16 : 64 / sizeof(T);

template <class T>
HWY_INLINE void transpose_plain(const T* from, int64_t from_step, T* to, int64_t to_step,
                                int64_t rows, int64_t columns) {
  for (int64_t j = 0; j < columns; ++j) {
    for (int64_t i = 0; i < rows; ++i) to[j * to_step + i] = from[i * from_step + j];
  }
}

#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
constexpr bool kBlocks = true;

// 8 x 8 elements of 2 bytes.
HWY_INLINE void transpose_block(const uint16_t* from, int64_t from_step, uint16_t* to,
                                int64_t to_step) {
  const hn::FixedTag<uint16_t, 8> d;
  const hn::FixedTag<uint32_t, 4> d32;
  const hn::FixedTag<uint64_t, 2> d64;
  using V32 = hn::Vec<decltype(d32)>;
  V32 pairs[8];  // rows 2k and 2k + 1 in turns: their first four elements, their last four
  for (int k = 0; k < 4; ++k) {
    const auto a = hn::LoadU(d, from + 2 * k * from_step);
    const auto b = hn::LoadU(d, from + (2 * k + 1) * from_step);
    pairs[2 * k] = hn::BitCast(d32, hn::InterleaveLower(d, a, b));
    pairs[2 * k + 1] = hn::BitCast(d32, hn::InterleaveUpper(d, a, b));
  }
  for (int half = 0; half < 2; ++half) {
    const auto low0 = hn::BitCast(d64, hn::InterleaveLower(d32, pairs[half], pairs[2 + half]));
    const auto high0 = hn::BitCast(d64, hn::InterleaveUpper(d32, pairs[half], pairs[2 + half]));
    const auto low1 = hn::BitCast(d64, hn::InterleaveLower(d32, pairs[4 + half], pairs[6 + half]));
    const auto high1 = hn::BitCast(d64, hn::InterleaveUpper(d32, pairs[4 + half], pairs[6 + half]));
    uint16_t* out = to + 4 * half * to_step;
    hn::StoreU(hn::BitCast(d, hn::InterleaveLower(d64, low0, low1)), d, out);
    hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(d64, low0, low1)), d, out + to_step);
    hn::StoreU(hn::BitCast(d, hn::InterleaveLower(d64, high0, high1)), d, out + 2 * to_step);
    hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(d64, high0, high1)), d, out + 3 * to_step);
  }
}

// 16 x 16 bytes. Each round moves the highest bit of a byte's row to the end of its place: behind
// four of them, rows and columns have changed places.
HWY_INLINE void transpose_block(const uint8_t* from, int64_t from_step, uint8_t* to,
                                int64_t to_step) {
  const hn::FixedTag<uint8_t, 16> d;
  hn::Vec<decltype(d)> now[16], next[16];
  for (int k = 0; k < 16; ++k) now[k] = hn::LoadU(d, from + k * from_step);
  for (int round = 0; round < 4; ++round) {
    for (int k = 0; k < 8; ++k) {
      next[2 * k] = hn::InterleaveLower(d, now[k], now[k + 8]);
      next[2 * k + 1] = hn::InterleaveUpper(d, now[k], now[k + 8]);
    }
    for (int k = 0; k < 16; ++k) now[k] = next[k];
  }
  for (int k = 0; k < 16; ++k) hn::StoreU(now[k], d, to + k * to_step);
}
#else
constexpr bool kBlocks = false;
template <class T>
HWY_INLINE void transpose_block(const T*, int64_t, T*, int64_t) {}
#endif

// A whole tile. Lines of the target are written once, and by whole vectors: those of a matrix whose
// rows are a power of two apart share one set of the cache, which does not hold them all.
template <class T>
HWY_INLINE void transpose_tile(const T* from, int64_t from_step, T* to, int64_t to_step,
                               bool stream) {
  const hn::CappedTag<T, static_cast<size_t>(kSide<T>)> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  constexpr int64_t kBlock = 16 / sizeof(T);
  if constexpr (kBlocks && sizeof(T) >= 4) {
    int64_t rows[kSide<T>];
    for (int64_t i = 0; i < kSide<T>; ++i) rows[i] = i * from_step;
    for (int64_t j = 0; j < kSide<T>; j += kBlock) {
      for (int64_t i = 0; i < kSide<T>; i += lanes) {
        T* target = to + j * to_step + i;
        transpose_blocks(d, from + j, rows + i, [&](auto v, int64_t p) HWY_ATTR {
          if (stream) {
            hn::Stream(v, d, target + p * to_step);
          } else {
            hn::StoreU(v, d, target + p * to_step);
          }
        });
      }
    }
  } else {
    alignas(64) T tile[kSide<T> * kSide<T>];
    if constexpr (kBlocks) {
      for (int64_t i = 0; i < kSide<T>; i += kBlock) {
        for (int64_t j = 0; j < kSide<T>; j += kBlock) {
          transpose_block(from + i * from_step + j, from_step, tile + j * kSide<T> + i, kSide<T>);
        }
      }
    } else {
      transpose_plain(from, from_step, tile, kSide<T>, kSide<T>, kSide<T>);
    }
    for (int64_t j = 0; j < kSide<T>; ++j) {
      for (int64_t i = 0; i < kSide<T>; i += lanes) {
        const auto line = hn::Load(d, tile + j * kSide<T> + i);
        if (stream) {
          hn::Stream(line, d, to + j * to_step + i);
        } else {
          hn::StoreU(line, d, to + j * to_step + i);
        }
      }
    }
  }
}

// 2 to 4 rows into columns side by side.
template <class T>
void interleave(const T* from, int64_t from_step, T* to, int64_t rows, int64_t columns) {
  int64_t j = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (; j + lanes <= columns; j += lanes) {
    const auto row = [&](int64_t i) HWY_ATTR { return hn::LoadU(d, from + i * from_step + j); };
    T* target = to + j * rows;
    if (rows == 2) {
      hn::StoreInterleaved2(row(0), row(1), d, target);
    } else if (rows == 3) {
      hn::StoreInterleaved3(row(0), row(1), row(2), d, target);
    } else {
      hn::StoreInterleaved4(row(0), row(1), row(2), row(3), d, target);
    }
  }
#endif
  transpose_plain(from + j, from_step, to + j * rows, rows, rows, columns - j);
}

// And back: 2 to 4 columns side by side into rows.
template <class T>
void deinterleave(const T* from, T* to, int64_t to_step, int64_t rows, int64_t columns) {
  int64_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (; i + lanes <= rows; i += lanes) {
    const T* source = from + i * columns;
    V a, b, c, e;
    if (columns == 2) {
      hn::LoadInterleaved2(d, source, a, b);
    } else if (columns == 3) {
      hn::LoadInterleaved3(d, source, a, b, c);
    } else {
      hn::LoadInterleaved4(d, source, a, b, c, e);
    }
    hn::StoreU(a, d, to + i);
    hn::StoreU(b, d, to + to_step + i);
    if (columns > 2) hn::StoreU(c, d, to + 2 * to_step + i);
    if (columns > 3) hn::StoreU(e, d, to + 3 * to_step + i);
  }
#endif
  transpose_plain(from + i * columns, columns, to + i, to_step, rows - i, columns);
}

template <class T>
void transpose(const T* from, int64_t from_step, T* to, int64_t to_step, int64_t rows,
               int64_t columns, bool stream) {
  constexpr int64_t side = kSide<T>;
  if (rows >= 2 && rows <= 4 && to_step == rows)
    return interleave(from, from_step, to, rows, columns);
  if (columns >= 2 && columns <= 4 && from_step == columns) {
    return deinterleave(from, to, to_step, rows, columns);
  }
  for (int64_t i = 0; i < rows; i += side) {
    for (int64_t j = 0; j < columns; j += side) {
      const T* source = from + i * from_step + j;
      T* target = to + j * to_step + i;
      if (rows - i < side || columns - j < side) {
        transpose_plain(source, from_step, target, to_step, rows - i < side ? rows - i : side,
                        columns - j < side ? columns - j : side);
      } else {
        transpose_tile(source, from_step, target, to_step, stream);
      }
    }
  }
  if (stream) hwy::FlushStream();
}

// Short rows. What a row writes beyond its end, the next one overwrites.
template <class T>
void copy_rows(const void* from, int64_t step, bool repeats, int64_t rows, int64_t length,
               T* HWY_RESTRICT to) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto* row = static_cast<const char*>(from);
  if (repeats) {
    for (int64_t r = 0; r < rows; ++r, row += step, to += length) {
      const auto value = hn::Set(d, *reinterpret_cast<const T*>(row));
      for (int64_t i = 0; i < length; i += lanes) hn::StoreU(value, d, to + i);
    }
    return;
  }
  const int64_t whole = length / lanes * lanes;
  [[maybe_unused]] const auto rest = hn::FirstN(d, static_cast<size_t>(length - whole));
  // Elsewhere a masked load may touch what it masks.
  constexpr bool kMasks = HWY_TARGET == HWY_AVX3 || (HWY_TARGET == HWY_AVX2 && sizeof(T) >= 4);
  for (int64_t r = 0; r < rows; ++r, row += step, to += length) {
    const T* HWY_RESTRICT in = reinterpret_cast<const T*>(row);
    for (int64_t i = 0; i < whole; i += lanes) hn::StoreU(hn::LoadU(d, in + i), d, to + i);
    if constexpr (kMasks) {
      if (whole < length) hn::StoreU(masked_load(rest, d, in + whole), d, to + whole);
    } else {
      for (int64_t i = whole; i < length; ++i) to[i] = in[i];
    }
  }
}

const CopyKernels* copy_table() {
  static constexpr CopyKernels table = {copy,
                                        copy_rows,
                                        fill,
                                        reverse<uint8_t>,
                                        reverse<uint16_t>,
                                        reverse<uint32_t>,
                                        reverse<uint64_t>,
                                        every_other<uint32_t>,
                                        every_other<uint64_t>,
                                        transpose<uint8_t>,
                                        transpose<uint16_t>,
                                        transpose<uint32_t>,
                                        transpose<uint64_t>,
                                        copy_rows<uint8_t>,
                                        copy_rows<uint16_t>,
                                        copy_rows<uint32_t>,
                                        copy_rows<uint64_t>};
  return &table;
}

}  // namespace
}  // namespace kiln::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kiln::cpu {
KILN_KERNEL_TABLE(CopyKernels, copy_kernels, copy_table)
}  // namespace kiln::cpu
#endif
