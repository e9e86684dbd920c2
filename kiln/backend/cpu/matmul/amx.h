// Matrix products in the tile registers of Intel's AMX: eight of them, 16 rows of 64 bytes each,
// and an instruction that multiplies two into a third. Internal to the Cpu backend.
//
// Note [AMX tiles]
// C is made in tiles of 32 x 32 sums: four registers, fed by two of A and two of B. Neighbours
// along k form words of 4 bytes, two bf16 or four int8, and 16 words of k are a block, what one
// instruction multiplies. A lies in panels of 32 rows, [blocks][32 rows][16 words], and B in panels
// of 32 columns, [blocks][16 words][32 columns], so that registers are filled from whole cache
// lines. k ends in words of zeros. The sums of int8 are exact. Those of bf16 are float, in the
// order of k, however C is cut; the instruction takes subnormal numbers and sums for zero.
#pragma once

#include <cstdint>

#include "kiln/core/half.h"

namespace kiln::cpu {

inline constexpr int64_t kAmxSide = 32;        // rows of a panel of A, columns of one of B
inline constexpr int64_t kAmxBlockWords = 16;  // words of k that an instruction multiplies
inline constexpr int64_t kAmxBlock = kAmxSide * kAmxBlockWords;  // words of a block of a panel
inline constexpr int64_t kAmxSums = kAmxSide * kAmxSide;

// sums[i * kAmxSide + j] (+)= the sum over blocks, for i below `rows` and j below `columns`,
// rounded up to 16.
template <class Sum>
struct AmxTile {
  int rows = 0, columns = 0;  // at most kAmxSide
  int64_t blocks = 0;
  // Word w of row i of block b is a[b * a_block + i * a_step + w].
  const uint32_t* a = nullptr;
  int64_t a_step = kAmxBlockWords, a_block = kAmxBlock;
  // Word w of column j of block i is b[offset(i) + w * b_step + j], where the offset is
  // b_offsets[i] or, if that is null, i * kAmxBlock.
  const uint32_t* b = nullptr;
  const int64_t* b_offsets = nullptr;
  int64_t b_step = kAmxSide;
  bool accumulate = false;
  Sum* sums = nullptr;
};

// Asks for what lies at [row * row_bytes, row * row_bytes + bytes) of `rows` rows, to write there.
void fetch_to_write(const void* from, int64_t row_bytes, int rows, int64_t bytes);

// T is bfloat16, whose sums are float, or int8_t, whose sums are int32_t.
template <class T>
struct AmxKernels {
  using Sum = int32_t;
  // Between AmxThread's start and end.
  void (*tile)(const AmxTile<Sum>& tile);
  // Packs `count` rows of k numbers, row i's number p at from[i * row + p * step], as rows of A or
  // as columns of B, in panels `panel` words apart. What fills the last one up to a multiple of 16
  // is zeros.
  void (*pack_a)(int64_t count, int64_t k, const T* from, int64_t row, int64_t step, uint32_t* to,
                 int64_t panel);
  void (*pack_b)(int64_t count, int64_t k, const T* from, int64_t row, int64_t step, uint32_t* to,
                 int64_t panel);
};
template <>
struct AmxKernels<bfloat16> {
  using Sum = float;
  void (*tile)(const AmxTile<Sum>& tile);
  void (*pack_a)(int64_t count, int64_t k, const bfloat16* from, int64_t row, int64_t step,
                 uint32_t* to, int64_t panel);
  void (*pack_b)(int64_t count, int64_t k, const bfloat16* from, int64_t row, int64_t step,
                 uint32_t* to, int64_t panel);
  // c[i * c_row + j] = sums (+ c) (+ row_bias[i]) (+ column_bias[j]), rounded once.
  void (*store)(const float* sums, int rows, int columns, bfloat16* c, int64_t c_row,
                bool accumulate, const bfloat16* row_bias, const bfloat16* column_bias);
};

// Null where the machine or the system has no AMX.
template <class T>
const AmxKernels<T>* amx_kernels();

// The tile registers of this thread, in use while it lives.
class AmxThread {
 public:
  AmxThread();
  ~AmxThread();
  AmxThread(const AmxThread&) = delete;
  AmxThread& operator=(const AmxThread&) = delete;
};

}  // namespace kiln::cpu
