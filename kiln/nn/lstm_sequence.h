// The steps of an LSTM as one function of autodiff.
#pragma once

#include "kiln/tensor/tensor.h"

namespace kiln::nn::detail {

// Note [LSTM's gradient]
// Recorded op by op, a step leaves a dozen nodes and adds to the gradient of w_hh. Here the
// backward pass goes through the steps once for the gradients of the gates, and the gradient of
// w_hh is one product of all of them with all hidden states. A pass with create_graph records the
// steps op by op and differentiates these.
struct LSTMSequence {
  Tensor output;  // [T, N, H]
  Tensor hidden;  // [N, H], the last ones
  Tensor cell;
};

// xw [T, N, 4 H]: the input's part of the gates i, f, g, o; hidden and cell [N, H]: the first
// states; w_hh [4 H, H]; b_hh [4 H] or undefined. With `reverse` from the last step to the first.
LSTMSequence lstm_sequence(const Tensor& xw, const Tensor& hidden, const Tensor& cell,
                           const Tensor& w_hh, const Tensor& b_hh, bool reverse);

}  // namespace kiln::nn::detail
