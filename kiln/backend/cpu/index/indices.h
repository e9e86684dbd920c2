// What the ops that take indices along one dim share. Internal to the Cpu backend.
#pragma once

#include <atomic>
#include <cstdint>

#include "kiln/backend/cpu/copy/items.h"
#include "kiln/backend/host_tensor.h"
#include "kiln/core/error.h"
#include "kiln/core/parallel.h"

namespace kiln::cpu {

// A tensor seen as [outer, size, inner] around one dim.
struct AroundDim {
  int64_t outer = 1;
  int64_t size;
  int64_t inner = 1;

  AroundDim(const Shape& shape, int dim) : size(shape[dim]) {
    for (int i = 0; i < dim; ++i) outer *= shape[i];
    for (int i = dim + 1; i < shape.rank(); ++i) inner *= shape[i];
  }
};

// Indices that must lie in [0, size). Kernels ask about each one before they follow it, give up at
// the first bad one, and leave the error to finish(): what they wrote by then is thrown away.
class IndexCheck {
 public:
  explicit IndexCheck(int64_t size) : size_(static_cast<uint64_t>(size)) {}

  bool fine(int64_t index) {
    if (static_cast<uint64_t>(index) < size_) [[likely]]
      return true;
    bad_.store(index, std::memory_order_relaxed);
    failed_.store(true, std::memory_order_relaxed);
    return false;
  }
  // Throws IndexError when one was bad.
  void finish(const char* op) const {
    if (!failed_.load()) return;
    throw_error<IndexError>(op, ": index out of range; got ", bad_.load(),
                            "; expected 0 <= index < ", static_cast<int64_t>(size_));
  }

 private:
  uint64_t size_;
  std::atomic<int64_t> bad_{0};
  std::atomic<bool> failed_{false};
};

// Throws IndexError unless all of `index` (contiguous) lies in [0, size).
inline void check_indices(const char* op, const HostTensor& index, int64_t size) {
  const auto* values = index.data_as<const int64_t>();
  IndexCheck check(size);
  parallel_for(index.numel(), kGrain, [&](int64_t begin, int64_t end) {
    bool fine = true;
    for (int64_t i = begin; i < end; ++i) {
      fine &= static_cast<uint64_t>(values[i]) < static_cast<uint64_t>(size);
    }
    for (int64_t i = begin; !fine && i < end; ++i) fine = !check.fine(values[i]);
  });
  check.finish(op);
}

// An index that says the same for all places that differ outside of `dim` is one of rows: as one
// dim, or null.
HostHandle row_index(const HostHandle& index, int dim);

}  // namespace kiln::cpu
