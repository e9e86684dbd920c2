// Sparse linear maps along dims of tensors: images in other sizes, and their gradients.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace kiln {

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
  int64_t taps(int64_t o) const {
    return first[static_cast<size_t>(o) + 1] - first[static_cast<size_t>(o)];
  }
  // Whether every output is one element as it is.
  bool picks() const;
  // in and out change places: the map of a gradient.
  LineMap transposed() const;
};

struct DimMap {
  int dim;
  LineMap map;
};
// Maps that are applied in their order, one dim each; shared, since gradients hold them.
using DimMaps = std::shared_ptr<const std::vector<DimMap>>;

// Those of the gradient: the transposed maps, from the last to the first.
DimMaps transposed(const DimMaps& maps);

}  // namespace kiln
