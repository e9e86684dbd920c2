// Rows of a table, alone and in bags.
#pragma once

#include <optional>

#include "kiln/core/choice.h"
#include "kiln/tensor/tensor.h"

namespace kiln::functional {

// Rows of weight [n, d], of any dtype, by index [..] -> [.., d]. The row padding_idx gets no
// gradient. With max_norm, rows that are used and have a larger norm_type-norm are first scaled
// down to it, in place. scale_grad_by_freq divides each row's gradient by how often the index names
// it. Throws IndexError.
Tensor embedding(const Tensor& index, const Tensor& weight, std::optional<int64_t> padding_idx = {},
                 std::optional<double> max_norm = {}, double norm_type = 2.0,
                 bool scale_grad_by_freq = false);

// BagMode::sum, or "sum".
class BagMode {
  KILN_CHOICE(BagMode, sum, mean, max)
};

struct EmbeddingBagOptions {
  std::optional<double> max_norm = {};
  double norm_type = 2.0;
  bool scale_grad_by_freq = false;
  BagMode mode = BagMode::mean;
  Tensor per_sample_weights = {};           // the index's shape; mode sum only
  bool include_last_offset = false;         // the last offset is the end, not a bag
  std::optional<int64_t> padding_idx = {};  // these entries count for nothing
};
// The sum, mean or maximum of the rows of each bag -> [bags, d]: index [bags, size], or index [n]
// and offsets [bags], where each bag starts. An empty bag gives 0. Throws IndexError, ShapeError,
// ValueError.
Tensor embedding_bag(const Tensor& index, const Tensor& weight, const Tensor& offsets = {},
                     const EmbeddingBagOptions& options = {});

}  // namespace kiln::functional
