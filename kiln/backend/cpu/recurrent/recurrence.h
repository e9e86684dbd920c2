// What a recurrence's forward and backward pass share. Internal to the Cpu backend.
//
// Note [Steps of a recurrence]. Sequences do not meet, so each thread takes some of them through
// all steps: threads wait for one another once, at the end. The recurrent weights are packed once,
// and stay in the second-level cache over the steps. Each element of a product is one chain of
// multiply-adds, however many rows there are, so results do not depend on how sequences are shared
// out. A single step multiplies the weights where they lie, with all threads on one product.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>

#include "kiln/backend/cpu/matmul/gemm.h"
#include "kiln/backend/cpu/matmul/gemm_kernels.h"
#include "kiln/backend/cpu/matmul/kept_columns.h"
#include "kiln/backend/cpu/scratch.h"
#include "kiln/backend/recurrence_options.h"
#include "kiln/core/parallel.h"

namespace kiln::cpu {

// Sequences that a thread takes at a time. Fewer than these read the weights too often.
inline int64_t sequences_of_a_piece(int64_t count) {
  constexpr int64_t kLeast = 4;
  const int64_t pieces = std::min<int64_t>(num_threads(), (count + kLeast - 1) / kLeast);
  return pieces <= 1 ? std::max<int64_t>(count, 1) : (count + pieces - 1) / pieces;
}

// B [k, n] of many products A B with few rows, which lies in `storage`: kept where it may be, else
// packed here.
template <class T>
class PackedWeights {
 public:
  PackedWeights(const Storage& storage, int64_t k, int64_t n, const MatrixView<T>& b)
      : k_(k), n_(n) {
    // Deeper ones are kept in another form.
    if (k <= kGemmDepth) kept_ = kept_columns(storage, KeptMatrix<T>{b, k, n});
    if (kept_ != nullptr) {
      data_ = static_cast<const T*>(kept_.get());
      return;
    }
    const int64_t columns = kernels().columns;
    own_.emplace((n + columns - 1) / columns * columns * k + kernels().lanes);
    data_ = own_->get();
    // Each piece writes up to a vector beyond its end, so panels go one after another.
    for (int64_t j = 0; j < n; j += columns) {
      kernels().pack(std::min(columns, n - j), k, b.data + j * b.column, b.column, b.row,
                     own_->get() + j * k, columns);
    }
  }

  // C [m, n] (+)= A B (+ a bias for each column); rows of A are k elements apart, those of C n.
  void multiply(int64_t m, const T* a, T* c, const T* column_bias, bool accumulate) const {
    if (m == 0 || n_ == 0) return;
    GemmBlock<T> block;
    block.m = m;
    block.n = n_;
    block.k = k_;
    const int64_t most = kernels().max_strided_rows;
    const int64_t row_panels = (m + most - 1) / most;
    block.rows = (m + row_panels - 1) / row_panels;
    block.a = a;
    block.a_row = k_;
    block.a_step = 1;
    block.a_panel = block.rows * k_;
    block.b = data_;
    block.b_step = kernels().columns;
    block.b_panel = kernels().columns * k_;
    block.c = c;
    block.c_row = n_;
    block.accumulate = accumulate;
    block.column_bias = column_bias;
    kernels().block(block);
  }

 private:
  static const GemmKernels<T>& kernels() { return gemm_kernels<T>(); }

  int64_t k_, n_;
  std::shared_ptr<const void> kept_;
  std::optional<Scratch<T>> own_;
  const T* data_ = nullptr;
};

}  // namespace kiln::cpu
