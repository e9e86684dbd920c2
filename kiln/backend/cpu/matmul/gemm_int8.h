// Matrix products of int8 with scales. Internal to the Cpu backend.
#pragma once

#include <cstdint>
#include <vector>

#include "kiln/backend/cpu/matmul/gemm.h"

namespace kiln::cpu {

// The most products of int8 whose sum is sure to fit 32 bits, with 128 added to one side.
inline constexpr int64_t kInt8Run = 65536;

// C [m, n] = the sum over runs r of a_scales[r, i] b_scales[r, j] A_r B_r (+ a bias for each
// column), where A_r and B_r are the columns of A and the rows of B in run r. The products of a run
// are summed exactly. C is row-major with c_row >= n elements from row to row.
struct Int8Gemm {
  int64_t m = 0, n = 0, k = 0;
  MatrixView<int8_t> a, b;
  std::vector<int64_t> run_ends;    // ascending, to k; no run is longer than kInt8Run
  const float* a_scales = nullptr;  // [runs, m]
  bool one_a_scale = false;         // a row of A has the same scale in all runs
  const float* b_scales = nullptr;  // [runs, n]
  const float* column_bias = nullptr;
  float* c = nullptr;
  int64_t c_row = 0;
  // B as pack_whole_b() packs it, or null: it is packed from `b`. The results are the same.
  const uint32_t* packed_b = nullptr;
};

// Whether it is computed from a packed B, by tiles of AMX.
bool takes_packed_b(const Int8Gemm& g);
// All of B, as packed_b takes it: how many words, and those words.
int64_t packed_b_words(const Int8Gemm& g);
void pack_whole_b(const Int8Gemm& g, uint32_t* to);

// On as many threads as pay off; results do not depend on their number.
void gemm(const Int8Gemm& g);

}  // namespace kiln::cpu
