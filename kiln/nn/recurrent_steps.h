// The steps of recurrent layers: one direction of one layer over a sequence.
#pragma once

#include <cstdint>
#include <vector>

#include "kiln/tensor/tensor.h"

namespace kiln::nn::detail {

// The weights of one direction; biases and w_hr may be undefined.
struct RecurrentWeights {
  Tensor w_ih, w_hh, b_ih, b_hh, w_hr;
};

// All steps of data [all steps, ..], of a layer with 1 gate (tanh or relu), 3 (GRU) or 4 (LSTM).
// batch_sizes says how many rows belong to each step, and does not grow. hidden and cell [N, ..]
// begin as the first states and end as the last ones. -> [all steps, H].
Tensor recurrent_sequence(int64_t gates, bool relu, bool reverse, const Tensor& data,
                          const std::vector<int64_t>& batch_sizes, Tensor& hidden, Tensor& cell,
                          const RecurrentWeights& weights);

}  // namespace kiln::nn::detail
