// The kernels of amx.h. Highway knows no tile registers, which is why they stand here by
// themselves.
#include <algorithm>
#include <cstring>

#include <hwy/base.h>
#include <hwy/highway.h>

#include "kiln/backend/cpu/kernel_table.h"
#include "kiln/backend/cpu/matmul/amx.h"

#if HWY_ARCH_X86_64 && (HWY_TARGETS & HWY_AVX3) && defined(__linux__)
#define KILN_HAS_AMX 1
#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>
#else
#define KILN_HAS_AMX 0
#endif

#if defined(__GNUC__) && !defined(__clang__)
// GCC's own intrinsics begin with values that nothing has written, and with a sanitizer it says so.
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif

namespace kiln::cpu {

#if KILN_HAS_AMX

HWY_PUSH_ATTRIBUTES(
    "avx512f,avx512bw,avx512vl,avx512dq,avx512bf16,avx512vnni,amx-tile,amx-bf16,amx-int8,prfchw")

namespace amx {

// The compiler doesn't know that tile instructions read and write memory.
inline void memory_is_used() { asm volatile("" ::: "memory"); }

struct Bf16 {
  using Sum = float;
  static void c00() { _tile_dpbf16ps(0, 4, 6); }
  static void c01() { _tile_dpbf16ps(1, 4, 7); }
  static void c10() { _tile_dpbf16ps(2, 5, 6); }
  static void c11() { _tile_dpbf16ps(3, 5, 7); }
};
struct Int8 {
  using Sum = int32_t;
  static void c00() { _tile_dpbssd(0, 4, 6); }
  static void c01() { _tile_dpbssd(1, 4, 7); }
  static void c10() { _tile_dpbssd(2, 5, 6); }
  static void c11() { _tile_dpbssd(3, 5, 7); }
};

// Register 2 r + c holds the sums of row half r and column half c; 4 + r is A's, 6 + c is B's.
template <class Op, int kRows, int kColumns>
HWY_NOINLINE void tile_of(const AmxTile<typename Op::Sum>& t) {
  memory_is_used();
  constexpr int64_t kRow = 4 * kAmxSide;  // bytes
  typename Op::Sum* const sums = t.sums;
  typename Op::Sum* const lower = sums + 16 * kAmxSide;
  if (t.accumulate) {
    _tile_loadd(0, sums, kRow);
    if constexpr (kColumns == 2) _tile_loadd(1, sums + 16, kRow);
    if constexpr (kRows == 2) _tile_loadd(2, lower, kRow);
    if constexpr (kRows == 2 && kColumns == 2) _tile_loadd(3, lower + 16, kRow);
  } else {
    _tile_zero(0);
    if constexpr (kColumns == 2) _tile_zero(1);
    if constexpr (kRows == 2) _tile_zero(2);
    if constexpr (kRows == 2 && kColumns == 2) _tile_zero(3);
  }
  const uint32_t* a = t.a;
  const uint32_t* b = t.b;
  const int64_t a_row = 4 * t.a_step, b_row = 4 * t.b_step;
  const int64_t lower_a = 16 * t.a_step;
  for (int64_t i = 0; i < t.blocks; ++i) {
    const uint32_t* from = t.b_offsets == nullptr ? b : t.b + t.b_offsets[i];
    _tile_loadd(6, from, b_row);
    _tile_loadd(4, a, a_row);
    Op::c00();
    if constexpr (kColumns == 2) {
      _tile_loadd(7, from + 16, b_row);
      Op::c01();
    }
    if constexpr (kRows == 2) {
      _tile_loadd(5, a + lower_a, a_row);
      Op::c10();
      if constexpr (kColumns == 2) Op::c11();
    }
    a += t.a_block;
    b += kAmxBlock;
  }
  _tile_stored(0, sums, kRow);
  if constexpr (kColumns == 2) _tile_stored(1, sums + 16, kRow);
  if constexpr (kRows == 2) _tile_stored(2, lower, kRow);
  if constexpr (kRows == 2 && kColumns == 2) _tile_stored(3, lower + 16, kRow);
  memory_is_used();
}

template <class Op>
void tile(const AmxTile<typename Op::Sum>& t) {
  if (t.rows > 16) {
    if (t.columns > 16) {
      tile_of<Op, 2, 2>(t);
    } else {
      tile_of<Op, 2, 1>(t);
    }
  } else if (t.columns > 16) {
    tile_of<Op, 1, 2>(t);
  } else {
    tile_of<Op, 1, 1>(t);
  }
}

void start() {
  struct alignas(64) Configuration {
    uint8_t palette = 1, start_row = 0;
    uint8_t zeros[14] = {};
    uint16_t row_bytes[16] = {};
    uint8_t rows[16] = {};
  } configuration;
  for (int i = 0; i < 8; ++i) {
    configuration.row_bytes[i] = 64;
    configuration.rows[i] = 16;
  }
  memory_is_used();
  _tile_loadconfig(&configuration);
  memory_is_used();
}
void end() { _tile_release(); }

// 16 rows of 16 words become 16 words of 16 rows.
inline void transpose(__m512i (&r)[16]) {
  __m512i t[16];
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) {
    t[2 * i] = _mm512_unpacklo_epi32(r[2 * i], r[2 * i + 1]);
    t[2 * i + 1] = _mm512_unpackhi_epi32(r[2 * i], r[2 * i + 1]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 16; i += 4) {
    r[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
    r[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
    r[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
    r[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    t[i] = _mm512_shuffle_i32x4(r[i], r[4 + i], 0x88);
    t[4 + i] = _mm512_shuffle_i32x4(r[i], r[4 + i], 0xdd);
    t[8 + i] = _mm512_shuffle_i32x4(r[8 + i], r[12 + i], 0x88);
    t[12 + i] = _mm512_shuffle_i32x4(r[8 + i], r[12 + i], 0xdd);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    r[i] = _mm512_shuffle_i32x4(t[i], t[8 + i], 0x88);
    r[4 + i] = _mm512_shuffle_i32x4(t[4 + i], t[12 + i], 0x88);
    r[8 + i] = _mm512_shuffle_i32x4(t[i], t[8 + i], 0xdd);
    r[12 + i] = _mm512_shuffle_i32x4(t[4 + i], t[12 + i], 0xdd);
  }
}

template <class T>
inline constexpr int64_t kOfWord = 4 / sizeof(T);
template <class T>
inline constexpr int64_t kOfBlock = kAmxBlockWords * kOfWord<T>;

template <class T>
uint64_t first(int64_t count) {
  return count >= kOfBlock<T> ? ~uint64_t{0} : (uint64_t{1} << count) - 1;
}

inline __m512i load(uint64_t mask, const bfloat16* x) {
  return _mm512_maskz_loadu_epi16(static_cast<__mmask32>(mask), x);
}
inline __m512i load(uint64_t mask, const int8_t* x) { return _mm512_maskz_loadu_epi8(mask, x); }
// 16 numbers, one in a word.
inline __m512i spread(__mmask16 mask, const bfloat16* x) {
  return _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, x));
}
inline __m512i spread(__mmask16 mask, const int8_t* x) {
  return _mm512_cvtepu8_epi32(_mm_maskz_loadu_epi8(mask, x));
}

// Numbers [0, k) of lanes [0, lanes), neither more than a block, as words of each lane; zeros
// beyond. Lanes lie `row` apart, the numbers of one are adjacent.
template <class T>
inline void load_lanes(int64_t lanes, int64_t k, const T* from, int64_t row, __m512i (&words)[16]) {
  const uint64_t mask = first<T>(k);
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) {
    words[i] = load(i < lanes ? mask : 0, from + std::min<int64_t>(i, lanes - 1) * row);
  }
}

// The same as lanes of each word, where lanes are adjacent and numbers `step` apart.
template <class T>
inline void load_words(int64_t lanes, int64_t k, const T* from, int64_t step,
                       __m512i (&words)[16]) {
  const auto mask = static_cast<__mmask16>((uint32_t{1} << std::min<int64_t>(lanes, 16)) - 1);
#pragma GCC unroll 16
  for (int w = 0; w < 16; ++w) {
    words[w] = spread(w * kOfWord<T> < k ? mask : 0, from + std::min(w * kOfWord<T>, k - 1) * step);
#pragma GCC unroll 4
    for (int e = 1; e < kOfWord<T>; ++e) {
      const int64_t p = w * kOfWord<T> + e;
      const __m512i next = spread(p < k ? mask : 0, from + std::min(p, k - 1) * step);
      words[w] = _mm512_or_si512(
          words[w], _mm512_slli_epi32(next, static_cast<unsigned>(e * 32 / kOfWord<T>)));
    }
  }
}

// A copy of what lies in no order, numbers adjacent.
template <class T>
void gather(int64_t lanes, int64_t k, const T* from, int64_t row, int64_t step, T* to) {
  for (int64_t i = 0; i < lanes; ++i) {
    for (int64_t p = 0; p < k; ++p) to[i * kOfBlock<T> + p] = from[i * row + p * step];
  }
}

// Lanes [0, lanes) of a block, at most 16.
template <class T, bool kOfA>
inline void pack_unit(int64_t lanes, int64_t depth, const T* from, int64_t row, int64_t step,
                      uint32_t* to) {
  __m512i words[16];
  bool by_lanes = true;
  if (step == 1) {
    load_lanes(lanes, depth, from, row, words);
  } else if (row == 1) {
    load_words(lanes, depth, from, step, words);
    by_lanes = false;
  } else {
    alignas(64) T gathered[16 * kOfBlock<T>];
    gather(lanes, depth, from, row, step, gathered);
    load_lanes(lanes, depth, gathered, kOfBlock<T>, words);
  }
  if (by_lanes != kOfA) transpose(words);
  constexpr int64_t kStep = kOfA ? kAmxBlockWords : kAmxSide;
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) _mm512_store_si512(to + i * kStep, words[i]);
}

template <class T, bool kOfA>
void pack(int64_t count, int64_t k, const T* from, int64_t row, int64_t step, uint32_t* to,
          int64_t panel) {
  const auto block = [&](int64_t lane, int64_t p) {
    uint32_t* out = to + lane / kAmxSide * panel + p / kOfBlock<T> * kAmxBlock;
    for (int64_t end = std::min(lane + kAmxSide, count); lane < end; lane += 16) {
      pack_unit<T, kOfA>(std::min<int64_t>(end - lane, 16), std::min(k - p, kOfBlock<T>),
                         from + lane * row + p * step, row, step, out);
      out += kOfA ? 16 * kAmxBlockWords : 16;
    }
  };
  // In the order of memory.
  if (step == 1) {
    for (int64_t lane = 0; lane < count; lane += kAmxSide) {
      for (int64_t p = 0; p < k; p += kOfBlock<T>) block(lane, p);
    }
  } else {
    for (int64_t p = 0; p < k; p += kOfBlock<T>) {
      for (int64_t lane = 0; lane < count; lane += kAmxSide) block(lane, p);
    }
  }
}

inline __m512 widened(__m256i x) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(x), 16));
}

// Rows of up to 16 columns.
void store_half(const float* sums, int rows, int columns, bfloat16* c, int64_t c_row,
                bool accumulate, const bfloat16* row_bias, const bfloat16* column_bias) {
  const auto valid = static_cast<__mmask16>((1 << columns) - 1);
  const __m512 each = column_bias == nullptr
                          ? _mm512_setzero_ps()
                          : widened(_mm256_maskz_loadu_epi16(valid, column_bias));
  for (int i = 0; i < rows; ++i) {
    __m512 sum = _mm512_load_ps(sums + i * kAmxSide);
    bfloat16* to = c + i * c_row;
    if (accumulate) sum = _mm512_add_ps(sum, widened(_mm256_maskz_loadu_epi16(valid, to)));
    if (row_bias != nullptr) {
      sum = _mm512_add_ps(sum, _mm512_set1_ps(static_cast<float>(row_bias[i])));
    }
    if (column_bias != nullptr) sum = _mm512_add_ps(sum, each);
    _mm256_mask_storeu_epi16(to, valid, (__m256i)_mm512_cvtneps_pbh(sum));
  }
}

void store(const float* sums, int rows, int columns, bfloat16* c, int64_t c_row, bool accumulate,
           const bfloat16* row_bias, const bfloat16* column_bias) {
  if (columns < kAmxSide || accumulate || row_bias != nullptr) {
    for (int v = 0; v < columns; v += 16) {
      store_half(sums + v, rows, std::min(columns - v, 16), c + v, c_row, accumulate, row_bias,
                 column_bias == nullptr ? nullptr : column_bias + v);
    }
    return;
  }
  __m512 low = _mm512_setzero_ps(), high = low;
  if (column_bias != nullptr) {
    low = widened(_mm256_loadu_epi16(column_bias));
    high = widened(_mm256_loadu_epi16(column_bias + 16));
  }
  for (int i = 0; i < rows; ++i) {
    __m512 left = _mm512_load_ps(sums + i * kAmxSide);
    __m512 right = _mm512_load_ps(sums + i * kAmxSide + 16);
    if (column_bias != nullptr) {
      left = _mm512_add_ps(left, low);
      right = _mm512_add_ps(right, high);
    }
    _mm512_storeu_si512(c + i * c_row, (__m512i)_mm512_cvtne2ps_pbh(right, left));
  }
}

void fetch_to_write(const void* from, int64_t row_bytes, int rows, int64_t bytes) {
  for (int i = 0; i < rows; ++i) {
    const auto* at = static_cast<const char*>(from) + i * row_bytes;
    for (const char* line = at; line < at + bytes; line += 64) __builtin_prefetch(line, 1, 3);
    __builtin_prefetch(at + bytes - 1, 1, 3);
  }
}

}  // namespace amx

HWY_POP_ATTRIBUTES

namespace {

// The system gives a process the tile registers where it asks for them.
bool system_gives_tiles() {
  constexpr int kRequestPermission = 0x1023, kTileData = 18;
  static const bool given = syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
  return given;
}

bool has_amx() {
  constexpr unsigned kBf16 = 1u << 22, kTile = 1u << 24, kInt8 = 1u << 25;
  // Tests that restrict instruction sets mean this one too.
  if ((hwy::SupportedTargets() & HWY_AVX3_DL) == 0) return false;
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0) return false;
  return (d & kBf16) != 0 && (d & kTile) != 0 && (d & kInt8) != 0 && system_gives_tiles();
}

template <class T>
const AmxKernels<T>* chosen(KernelTable<AmxKernels<T>>& table) {
  const AmxKernels<T>& kernels = table.get();
  return kernels.tile == nullptr ? nullptr : &kernels;
}

}  // namespace

template <>
const AmxKernels<bfloat16>* amx_kernels() {
  static constexpr AmxKernels<bfloat16> kKernels = {
      &amx::tile<amx::Bf16>, &amx::pack<bfloat16, true>, &amx::pack<bfloat16, false>, &amx::store};
  static constexpr AmxKernels<bfloat16> kNone = {};
  static constinit KernelTable<AmxKernels<bfloat16>> table(
      [] { return has_amx() ? &kKernels : &kNone; });
  return chosen(table);
}

template <>
const AmxKernels<int8_t>* amx_kernels() {
  static constexpr AmxKernels<int8_t> kKernels = {&amx::tile<amx::Int8>, &amx::pack<int8_t, true>,
                                                  &amx::pack<int8_t, false>};
  static constexpr AmxKernels<int8_t> kNone = {};
  static constinit KernelTable<AmxKernels<int8_t>> table(
      [] { return has_amx() ? &kKernels : &kNone; });
  return chosen(table);
}

void fetch_to_write(const void* from, int64_t row_bytes, int rows, int64_t bytes) {
  amx::fetch_to_write(from, row_bytes, rows, bytes);
}

AmxThread::AmxThread() { amx::start(); }
AmxThread::~AmxThread() { amx::end(); }

#else

template <>
const AmxKernels<bfloat16>* amx_kernels() {
  return nullptr;
}
template <>
const AmxKernels<int8_t>* amx_kernels() {
  return nullptr;
}
void fetch_to_write(const void*, int64_t, int, int64_t) {}
AmxThread::AmxThread() = default;
AmxThread::~AmxThread() = default;

#endif

}  // namespace kiln::cpu
