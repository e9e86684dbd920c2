// Kernels of resample(): sparse linear maps across rows, and within them.
#pragma once

#include <cstdint>
#include <type_traits>
#include <vector>

namespace kiln::cpu {

// How a vector of outputs reads one tap each: all within one vector of the row, within two in a
// row, or from anywhere.
enum class LaneReach : uint8_t { one, two, any };

struct LaneStep {
  LaneReach reach = LaneReach::any;
  bool ragged = false;  // some lanes have no such tap, and weight 0
  int64_t base = 0;     // of the vectors read; places count from there
};

// A LineMap as vectors of outputs compute it: those of vector v in the steps
// [first[v], first[v + 1]), each of which has `lanes` places and weights.
template <class T>
struct LanePlan {
  using Place = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;
  int64_t in = 0, out = 0;
  bool weighted = true;
  std::vector<int64_t> first;
  std::vector<LaneStep> steps;
  std::vector<Place> places;
  std::vector<T> weights;
};

// The same where an output has many taps, side by side: output o is the product of weights
// [first[o], first[o + 1]) with the row from start[o] on.
template <class T>
struct DotPlan {
  int64_t out = 0;
  std::vector<int64_t> first, start;
  std::vector<T> weights;
};

// A LineMap of rows.
template <class T>
struct RowPlan {
  const int64_t* first;
  const int64_t* index;
  const T* weight;
  bool picks;  // every output is one row, as it is
};

template <class T>
struct ResampleKernels {
  int64_t lanes;
  // Output rows [begin, end) of `width` elements each; x begins with row `low`.
  void (*rows)(const RowPlan<T>& plan, int64_t begin, int64_t end, const T* x, int64_t low,
               int64_t width, T* out);
  // `count` rows, one after another.
  void (*columns)(const LanePlan<T>& plan, const T* x, int64_t count, T* out);
  void (*dots)(const DotPlan<T>& plan, const T* x, int64_t count, int64_t in, T* out);
};

// T: float, double.
template <class T>
const ResampleKernels<T>& resample_kernels();

}  // namespace kiln::cpu
