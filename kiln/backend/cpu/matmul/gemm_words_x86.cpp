// The product kernels of AVX-512's vdpbf16ps and vpdpbusd. Highway's tables hold instruction sets
// that every kernel is compiled for; these two instructions serve two loops, which is why they
// stand here by themselves.
#include <utility>

#include <hwy/base.h>
#include <hwy/highway.h>

#include "kiln/backend/cpu/kernel_table.h"
#include "kiln/backend/cpu/matmul/gemm_words.h"
#include "kiln/backend/cpu/matmul/prefetch.h"

#if HWY_ARCH_X86_64 && (HWY_TARGETS & HWY_AVX3)
#define KILN_HAS_WORD_KERNELS 1
#include <immintrin.h>
#else
#define KILN_HAS_WORD_KERNELS 0
#endif

namespace kiln::cpu {

#if KILN_HAS_WORD_KERNELS

HWY_PUSH_ATTRIBUTES("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16,avx512vnni")

namespace word_kernels {

#include "kiln/backend/cpu/matmul/bf16_x86-inl.h"

struct Bf16 {
  using Sum = float;
  using V = __m512;
  static V load(const float* x) { return _mm512_loadu_ps(x); }
  static V set(float x) { return _mm512_set1_ps(x); }
  static void store(V x, float* to) { _mm512_storeu_ps(to, x); }
  static __m512i load_b(const uint32_t* b) { return _mm512_loadu_si512(b); }
  static V add(V sum, __m512i b, uint32_t a) {
    return _mm512_dpbf16_ps(sum, (__m512bh)b, (__m512bh)_mm512_set1_epi32(static_cast<int>(a)));
  }
};

struct Int8 {
  using Sum = int32_t;
  using V = __m512i;
  static V load(const int32_t* x) { return _mm512_loadu_si512(x); }
  static V set(int32_t x) { return _mm512_set1_epi32(x); }
  static void store(V x, int32_t* to) { _mm512_storeu_si512(to, x); }
  // Its first operand is unsigned: b + 128.
  static __m512i load_b(const uint32_t* b) {
    return _mm512_xor_si512(_mm512_loadu_si512(b), _mm512_set1_epi8(-128));
  }
  static V add(V sum, __m512i b, uint32_t a) {
    return _mm512_dpbusd_epi32(sum, b, _mm512_set1_epi32(static_cast<int>(a)));
  }
};

template <class Op, int kRows>
HWY_NOINLINE void tile_of(const WordTile<typename Op::Sum>& tile) {
  using V = typename Op::V;
  V low[kRows], high[kRows];
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
    low[i] = high[i] = Op::set(tile.start == nullptr ? 0 : tile.start[i]);
  }
  const uint32_t* HWY_RESTRICT a = tile.a;
  const uint32_t* HWY_RESTRICT b = tile.b;
  const int64_t a_step = tile.a_step;
  for (int64_t p = tile.k; p != 0; --p) {
    const __m512i b0 = Op::load_b(b);
    const __m512i b1 = Op::load_b(b + 16);
    _mm_prefetch(reinterpret_cast<const char*>(b + 8 * kWordColumns), _MM_HINT_T0);
    _mm_prefetch(reinterpret_cast<const char*>(b + 8 * kWordColumns + 16), _MM_HINT_T0);
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
      low[i] = Op::add(low[i], b0, a[i]);
      high[i] = Op::add(high[i], b1, a[i]);
    }
    a += a_step;
    b += kWordColumns;
  }
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
    Op::store(low[i], tile.sums + i * kWordColumns);
    Op::store(high[i], tile.sums + i * kWordColumns + 16);
  }
}

template <class Op, int... kRow>
void any_tile(const WordTile<typename Op::Sum>& tile, std::integer_sequence<int, kRow...>) {
  using Function = void (*)(const WordTile<typename Op::Sum>&);
  static constexpr Function kOfRows[] = {&tile_of<Op, kRow + 1>...};
  kOfRows[tile.rows - 1](tile);
}

template <class Op>
void tile(const WordTile<typename Op::Sum>& t) {
  any_tile<Op>(t, std::make_integer_sequence<int, kWordRows>());
}

template <int kRows>
HWY_NOINLINE void run_tile_of(const Int8RunTile& tile) {
  __m512 low[kRows], high[kRows];
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i) low[i] = high[i] = _mm512_setzero_ps();
  const uint32_t* HWY_RESTRICT a = tile.a;
  const uint32_t* HWY_RESTRICT b = tile.b;
  const int64_t a_step = tile.a_step;
  for (int64_t r = 0; r < tile.runs; ++r) {
    const int32_t* starts = tile.starts + r * tile.start_step;
    __m512i low_sum[kRows], high_sum[kRows];
#pragma GCC unroll 8
    for (int i = 0; i < kRows; ++i) low_sum[i] = high_sum[i] = _mm512_set1_epi32(starts[i]);
    for (int64_t p = tile.words[r + 1] - tile.words[r]; p != 0; --p) {
      const __m512i b0 = Int8::load_b(b);
      const __m512i b1 = Int8::load_b(b + 16);
#pragma GCC unroll 8
      for (int i = 0; i < kRows; ++i) {
        low_sum[i] = Int8::add(low_sum[i], b0, a[i]);
        high_sum[i] = Int8::add(high_sum[i], b1, a[i]);
      }
      a += a_step;
      b += kWordColumns;
    }
    const __m512 low_scale = _mm512_loadu_ps(tile.b_scales + r * kWordColumns);
    const __m512 high_scale = _mm512_loadu_ps(tile.b_scales + r * kWordColumns + 16);
#pragma GCC unroll 8
    for (int i = 0; i < kRows; ++i) {
      low[i] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(low_sum[i]), low_scale, low[i]);
      high[i] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(high_sum[i]), high_scale, high[i]);
    }
  }
  const auto valid = static_cast<__mmask32>((uint64_t{1} << tile.columns) - 1);
  const auto low_valid = static_cast<__mmask16>(valid);
  const auto high_valid = static_cast<__mmask16>(valid >> 16);
  __m512 low_bias = _mm512_setzero_ps(), high_bias = low_bias;
  if (tile.column_bias != nullptr) {
    low_bias = _mm512_maskz_loadu_ps(low_valid, tile.column_bias);
    high_bias = _mm512_maskz_loadu_ps(high_valid, tile.column_bias + 16);
  }
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i) {
    const __m512 scale = _mm512_set1_ps(tile.a_scales[i]);
    float* to = tile.c + i * tile.c_row;
    _mm512_mask_storeu_ps(to, low_valid, _mm512_fmadd_ps(low[i], scale, low_bias));
    _mm512_mask_storeu_ps(to + 16, high_valid, _mm512_fmadd_ps(high[i], scale, high_bias));
  }
}

template <int... kRow>
void any_run_tile(const Int8RunTile& tile, std::integer_sequence<int, kRow...>) {
  static constexpr void (*kOfRows[])(const Int8RunTile&) = {&run_tile_of<kRow + 1>...};
  kOfRows[tile.rows - 1](tile);
}

void run_tile(const Int8RunTile& tile) {
  any_run_tile(tile, std::make_integer_sequence<int, kRunRows>());
}

inline int32_t sum_of_lanes(__m512i x) {
  const __m256i half = _mm256_add_epi32(_mm512_maskz_extracti64x4_epi64(0xf, x, 0),
                                        _mm512_maskz_extracti64x4_epi64(0xf, x, 1));
  __m128i sum = _mm_add_epi32(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));
  sum = _mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0x4e));
  return _mm_cvtsi128_si32(_mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0xb1)));
}

// Rows that touch are read as one stream, others by fours. x is the signed side; 128 times its sum
// makes up for the 128 added to the rows.
template <int kRows, bool kFar>
void some_dots(const int8_t* HWY_RESTRICT x, const int8_t* HWY_RESTRICT rows, int64_t row,
               int64_t k, int64_t ahead, int32_t excess, int32_t* sums) {
  const __m512i flip = _mm512_set1_epi8(-128);
  __m512i even[kRows], odd[kRows];
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) even[r] = odd[r] = _mm512_setzero_si512();
  int64_t p = 0;
  for (; p + 128 <= k; p += 128) {
    const __m512i x0 = _mm512_loadu_si512(x + p);
    const __m512i x1 = _mm512_loadu_si512(x + p + 64);
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      const int8_t* from = rows + r * row + p;
      if (kFar || kRows > 1) {
        fetch_ahead<kFar>(from + ahead);
        fetch_ahead<kFar>(from + ahead + 64);
      }
      even[r] = _mm512_dpbusd_epi32(even[r], _mm512_xor_si512(_mm512_loadu_si512(from), flip), x0);
      odd[r] =
          _mm512_dpbusd_epi32(odd[r], _mm512_xor_si512(_mm512_loadu_si512(from + 64), flip), x1);
    }
  }
  for (; p < k; p += 64) {
    const int64_t left = k - p;
    const __mmask64 valid = left >= 64 ? ~uint64_t{0} : (uint64_t{1} << left) - 1;
    const __m512i x0 = _mm512_maskz_loadu_epi8(valid, x + p);
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      const __m512i from = _mm512_maskz_loadu_epi8(valid, rows + r * row + p);
      even[r] = _mm512_dpbusd_epi32(even[r], _mm512_xor_si512(from, flip), x0);
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) {
    sums[r] = sum_of_lanes(_mm512_add_epi32(even[r], odd[r])) - excess;
  }
}

template <bool kFar>
void dots_of(const int8_t* x, const int8_t* rows, int64_t row, int64_t count, int64_t k,
             int32_t* sums) {
  int32_t sum = 0;
  for (int64_t p = 0; p < k; ++p) sum += x[p];
  int64_t j = 0;
  if (row != k) {
    const int64_t ahead = fetched_ahead<int8_t>(k, 4 * row);
    for (; j + 4 <= count; j += 4) {
      some_dots<4, kFar>(x, rows + j * row, row, k, ahead, 128 * sum, sums + j);
    }
  }
  for (; j < count; ++j) {
    some_dots<1, kFar>(x, rows + j * row, row, k, kTouchingFetchedAhead<int8_t>, 128 * sum,
                       sums + j);
  }
}

void dots(const int8_t* x, const int8_t* rows, int64_t row, int64_t count, int64_t k, int32_t* sums,
          bool far) {
  (far ? dots_of<true> : dots_of<false>)(x, rows, row, count, k, sums);
}

void store(const WordTile<float>& tile, int columns, uint16_t* c, int64_t c_row, bool accumulate,
           const uint16_t* row_bias, const uint16_t* column_bias) {
  for (int v = 0; v < columns; v += 16) {
    const __mmask16 valid = lanes_of(columns - v);
    const __m512 each = column_bias == nullptr
                            ? _mm512_setzero_ps()
                            : widened(_mm256_maskz_loadu_epi16(valid, column_bias + v));
    for (int i = 0; i < tile.rows; ++i) {
      __m512 sum = _mm512_loadu_ps(tile.sums + i * kWordColumns + v);
      uint16_t* to = c + i * c_row + v;
      if (accumulate) sum = _mm512_add_ps(sum, widened(_mm256_maskz_loadu_epi16(valid, to)));
      if (row_bias != nullptr) {
        const auto bits = static_cast<int>(static_cast<uint32_t>(row_bias[i]) << 16);
        sum = _mm512_add_ps(sum, _mm512_castsi512_ps(_mm512_set1_epi32(bits)));
      }
      if (column_bias != nullptr) sum = _mm512_add_ps(sum, each);
      _mm256_mask_storeu_epi16(to, valid, narrowed(sum));
    }
  }
}

void round(const WordTile<float>& tile, int columns, const uint16_t* column_bias) {
  for (int v = 0; v < columns; v += 16) {
    const __m512 bias =
        column_bias == nullptr
            ? _mm512_setzero_ps()
            : widened(_mm256_maskz_loadu_epi16(lanes_of(columns - v), column_bias + v));
    for (int i = 0; i < tile.rows; ++i) {
      float* at = tile.sums + i * kWordColumns + v;
      _mm512_storeu_ps(at, widened(narrowed(_mm512_add_ps(_mm512_loadu_ps(at), bias))));
    }
  }
}

void store_finished(const WordTile<float>& tile, int columns, uint16_t* c, int64_t c_row,
                    const uint16_t* residual) {
  for (int v = 0; v < columns; v += 16) {
    const __mmask16 valid = lanes_of(columns - v);
    for (int i = 0; i < tile.rows; ++i) {
      __m512 sum = _mm512_loadu_ps(tile.sums + i * kWordColumns + v);
      const int64_t at = i * c_row + v;
      if (residual != nullptr) {
        sum = _mm512_add_ps(widened(narrowed_exactly(sum)),
                            widened(_mm256_maskz_loadu_epi16(valid, residual + at)));
      }
      _mm256_mask_storeu_epi16(c + at, valid, narrowed_exactly(sum));
    }
  }
}

void store_float(const WordTile<float>& tile, float scale, bool accumulate, float* c,
                 int64_t c_row) {
  const __m512 factor = _mm512_set1_ps(scale);
  for (int i = 0; i < tile.rows; ++i, c += c_row) {
    for (int v = 0; v < kWordColumns; v += 16) {
      const __m512 sum = _mm512_loadu_ps(tile.sums + i * kWordColumns + v);
      const __m512 before = accumulate ? _mm512_loadu_ps(c + v) : _mm512_setzero_ps();
      _mm512_storeu_ps(c + v, _mm512_fmadd_ps(sum, factor, before));
    }
  }
}

void join(const uint16_t* even, const uint16_t* odd, int64_t count, uint32_t* to) {
  for (int64_t i = 0; i < count; i += 16) {
    const __mmask16 valid = lanes_of(count - i);
    __m512i words = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(valid, even + i));
    if (odd != nullptr) {
      const __m512i upper = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(valid, odd + i));
      words = _mm512_or_si512(words, _mm512_slli_epi32(upper, 16));
    }
    _mm512_mask_storeu_epi32(to + i, valid, words);
  }
}

void join_rows(const uint16_t* from, int64_t row, int64_t k, int64_t count, uint32_t* to) {
  // Rows lie far apart, where processors do not look ahead.
  constexpr int64_t kAhead = 16;
  const __m512i lower = _mm512_set_epi16(47, 15, 46, 14, 45, 13, 44, 12, 43, 11, 42, 10, 41, 9, 40,
                                         8, 39, 7, 38, 6, 37, 5, 36, 4, 35, 3, 34, 2, 33, 1, 32, 0);
  const __m512i upper = _mm512_add_epi16(lower, _mm512_set1_epi16(16));
  const int64_t panel = (k + 1) / 2 * kWordColumns;
  for (int64_t p = 0; p < k; p += 2, from += 2 * row) {
    const bool has_odd = p + 1 < k;
    uint32_t* out = to + p / 2 * kWordColumns;
    for (int64_t i = 0; i < count; i += 32, out += panel) {
      const uint64_t left = static_cast<uint64_t>(count - i);
      const __mmask32 valid = left >= 32 ? ~__mmask32{0} : (__mmask32{1} << left) - 1;
      fetch_ahead<true>(from + i + kAhead * row);
      fetch_ahead<true>(from + i + (kAhead + 1) * row);
      const __m512i even = _mm512_maskz_loadu_epi16(valid, from + i);
      const __m512i odd =
          has_odd ? _mm512_maskz_loadu_epi16(valid, from + i + row) : _mm512_setzero_si512();
      _mm512_storeu_si512(out, _mm512_permutex2var_epi16(even, lower, odd));
      _mm512_storeu_si512(out + 16, _mm512_permutex2var_epi16(even, upper, odd));
    }
  }
}

void narrow(const float* x, int64_t count, uint16_t* to) {
  for (int64_t i = 0; i < count; i += 16) {
    const __mmask16 valid = lanes_of(count - i);
    _mm256_mask_storeu_epi16(to + i, valid, narrowed(_mm512_maskz_loadu_ps(valid, x + i)));
  }
}

}  // namespace word_kernels

HWY_POP_ATTRIBUTES

namespace {
bool has_avx512() {
  return (supported_targets() & HWY_AVX3) != 0 && __builtin_cpu_supports("avx512f") &&
         __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512dq");
}
}  // namespace

// Asking the processor costs microseconds where it is a virtual one.
const Bf16Kernels* bf16_kernels() {
  static constexpr Bf16Kernels kKernels = {&word_kernels::tile<word_kernels::Bf16>,
                                           &word_kernels::store,
                                           &word_kernels::round,
                                           &word_kernels::store_finished,
                                           &word_kernels::store_float,
                                           &word_kernels::join,
                                           &word_kernels::join_rows,
                                           &word_kernels::narrow};
  static constexpr Bf16Kernels kNone = {};
  static constinit KernelTable<Bf16Kernels> table(
      [] { return __builtin_cpu_supports("avx512bf16") && has_avx512() ? &kKernels : &kNone; });
  const Bf16Kernels& chosen = table.get();
  return chosen.tile == nullptr ? nullptr : &chosen;
}

const Int8Kernels* vnni_kernels() {
  static constexpr Int8Kernels kKernels = {&word_kernels::tile<word_kernels::Int8>, 128,
                                           &word_kernels::run_tile, &word_kernels::dots};
  return __builtin_cpu_supports("avx512vnni") && has_avx512() ? &kKernels : nullptr;
}

#else

const Bf16Kernels* bf16_kernels() { return nullptr; }
const Int8Kernels* vnni_kernels() { return nullptr; }

#endif

}  // namespace kiln::cpu
