// Sparse linear maps along dims of dense host arrays: images in other sizes, and their gradients.
#pragma once

#include <cstdint>
#include <vector>

namespace kiln::cpu {

// Output o of a line is the sum over k in [first[o], first[o + 1]) of weight[k] * in[index[k]].
struct LineMap {
  int64_t in = 0;
  int64_t out = 0;
  std::vector<int64_t> first;  // [out + 1]
  std::vector<int64_t> index;
  std::vector<double> weight;

  // Begins an empty map; put() adds to the output that was begun last.
  explicit LineMap(int64_t in);
  void begin_output();
  void put(int64_t at, double by);
  int64_t taps(int64_t o) const { return first[o + 1] - first[o]; }
  // Whether every output is one element as it is.
  bool picks() const;
  // in and out change places: the map of a gradient.
  LineMap transposed() const;
};

// x [planes, h, w] -> out, h by `rows` and w by `columns`, either of which may be null: the dim
// stays as it is. `columns_first` chooses which is done first. Elements are computed in T; where no
// map has weights, they are moved.
template <class T>
void resample(const T* x, int64_t planes, int64_t h, int64_t w, const LineMap* rows,
              const LineMap* columns, bool columns_first, T* out);

}  // namespace kiln::cpu
