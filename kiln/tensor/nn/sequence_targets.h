// Lengths and labels of losses over sequences, checked now and in each replay of a graph. Internal
// to kiln/tensor.
#pragma once

#include <cstdint>

#include "kiln/tensor/tensor_impl.h"

namespace kiln::detail {

// Stands in a row of labels for what lies behind its target.
inline constexpr int64_t kNoLabel = INT64_MIN;

struct SequenceOp {
  const char* name;
  const Tensor& x;  // whose device counts
  int64_t batch;
};

// Lengths [N] of dtype int64 on the device of x, from integers [N], or [] where N is 1, on any
// device. Throws ShapeError, and ValueError outside of least to most.
Tensor sequence_lengths(const SequenceOp& of, const Tensor& lengths, int64_t least, int64_t most,
                        const char* what);

// Throws ValueError for a target [N, S] with something else than classes other than the blank up to
// its length in sizes [N]. The two may be on different devices.
void check_labels(const char* op, const Tensor& targets, const Tensor& sizes, int64_t classes,
                  int64_t blank);

}  // namespace kiln::detail
