// Matrix products of strided matrices, in f32 and f64. Internal to the Cpu backend.
#pragma once

#include <cstdint>

#include "kiln/backend/cpu/elementwise/tile_activation.h"

namespace kiln::cpu {

struct KernelArgs;  // of elementwise.h

// Element (i, j) is data[i * row + j * column].
template <class T>
struct MatrixView {
  const T* data = nullptr;
  int64_t row = 0;
  int64_t column = 0;
};

// Terms of a sum up to which it is made in one go, without sums that wait in memory; and where few
// rows meet few columns, which then stay in the cache unpacked while the sums hardly count.
inline constexpr int64_t kGemmDepth = 1024, kFlatGemmDepth = 256;

// C [m, n] = A [m, k] B [k, n] (+ C) (+ a bias for each row or column), and then, in f32, f64 and
// where finishes_half(), C = activation(C) (+ residual), while it is in the cache. C is row-major
// with c_row >= n elements from row to row, and overlaps neither A nor B. k may be 0.
template <class T>
struct Gemm {
  int64_t m = 0, n = 0, k = 0;
  MatrixView<T> a, b;
  T* c = nullptr;
  int64_t c_row = 0;
  bool accumulate = false;
  const T* row_bias = nullptr;
  const T* column_bias = nullptr;
  void (*activation)(const KernelArgs&) = nullptr;  // of one input
  const void* activation_params = nullptr;
  // The same, where tiles can do it: of floats, beside the kernel. Products that take
  // tiles and have no more than kGemmDepth terms do without the kernel.
  const TileActivation<T>* in_tile = nullptr;
  const T* residual = nullptr;  // laid out as C
  // B as pack_whole_b() packs it, or null: it is packed, or read where it lies. The results are the
  // same.
  const T* packed_b = nullptr;
  int64_t packed_columns = 0;  // of all of it, and the one with which this product begins
  int64_t packed_from = 0;

  // No column is left to dot products, which sum in another order than tiles.
  bool only_tiles = false;
  // How many terms of a sum are added up before it waits in memory. Of a packed B kGemmDepth.
  int64_t depth = kGemmDepth;

  bool has_finish() const { return activation != nullptr || residual != nullptr; }
};

// Computes it on as many threads as pay off. Results do not depend on the number of threads: in
// which order an element of C sums its k products depends on the shape and layout alone, whatever
// tile it is in.
template <class T>
void gemm(const Gemm<T>& g);

// Whether it is computed in tiles, so that a packed B serves. It depends on the shapes and layouts
// alone.
template <class T>
bool gemm_takes_tiles(const Gemm<T>& g);
// All of B [k, n] in the panels that tiles take.
template <class T>
int64_t packed_b_columns(int64_t n);  // how many columns they have together
template <class T>
int64_t packed_b_size(int64_t k, int64_t n);  // in elements
template <class T>
void pack_whole_b(const MatrixView<T>& b, int64_t k, int64_t n, T* to);

// The same on this thread.
template <class T>
void gemm_serial(const Gemm<T>& g);

// The same on this thread in tiles, whatever the shape: of a product that takes tiles, or a part.
template <class T>
void gemm_tile(const Gemm<T>& g);

}  // namespace kiln::cpu
