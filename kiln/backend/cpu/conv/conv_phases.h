// What the taps of a strided convolution see: the phases of its input.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace kiln::cpu {

// Along one dim: which phases of the input its taps see. Element i of phase p is padded element
// i * stride + p.
struct Phases {
  std::vector<int64_t> kinds;  // those that are seen
  std::vector<int64_t> phase;  // of each tap, an index into `kinds`
  std::vector<int64_t> place;  // and how many elements of its phase it lies behind the window
  int64_t reach = 1;           // elements of a phase that a window sees, at most

  Phases(int64_t kernel, int64_t stride, int64_t dilation) {
    for (int64_t t = 0; t < kernel; ++t) {
      const int64_t kind = t * dilation % stride;
      const auto at = std::find(kinds.begin(), kinds.end(), kind);
      phase.push_back(at - kinds.begin());
      if (at == kinds.end()) kinds.push_back(kind);
      place.push_back(t * dilation / stride);
      reach = std::max(reach, place.back() + 1);
    }
  }
  int64_t count() const { return static_cast<int64_t>(kinds.size()); }
};

}  // namespace kiln::cpu
