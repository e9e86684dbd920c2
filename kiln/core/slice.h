// Python's start:end:step for one dim.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>

namespace kiln {

struct Slice {
  std::optional<int64_t> start;
  std::optional<int64_t> end;
  int64_t step = 1;  // at least 1 (PyTorch's rule); flip() reverses

  Slice() = default;  // the whole dim
  Slice(std::optional<int64_t> start_, std::optional<int64_t> end_, int64_t step_ = 1)
      : start(start_), end(end_), step(step_) {}
};

// A slice with its ends resolved against a size: 0 <= start <= end <= size, step >= 1.
struct Range {
  int64_t start = 0;
  int64_t end = 0;
  int64_t step = 1;

  int64_t length() const { return end <= start ? 0 : (end - start - 1) / step + 1; }
};

// Clamps as Python does. Throws ValueError for a step below 1.
Range resolve_slice(const char* op, const Slice& slice, int64_t size);

}  // namespace kiln
