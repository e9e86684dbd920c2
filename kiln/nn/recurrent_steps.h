// The steps of recurrent layers: one direction of one layer over a sequence.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kiln/backend/recurrence_options.h"
#include "kiln/tensor/tensor.h"

namespace kiln::nn::detail {

// The weights of one direction; biases and w_hr may be undefined.
struct RecurrentWeights {
  Tensor w_ih, w_hh, b_ih, b_hh, w_hr;
};

// How a layer departs from PyTorch's. Activations by the names of recurrent_activation.
struct RecurrentVariant {
  std::optional<double> clip = {};  // of an LSTM's cell states, of others' hidden states
  bool input_forget = false;        // LSTM: the forget gate is 1 - the input gate
  bool reset_after = true;          // GRU: the reset gate scales W_hn h + b_hn, not h
  std::string gate = "sigmoid";     // of gates
  std::string cell = "tanh";        // LSTM: of what comes into the cell
  std::string hidden = "tanh";      // of the cell state, or of the new state

  friend bool operator==(const RecurrentVariant&, const RecurrentVariant&) = default;
};

// The function of a name: tanh, relu, sigmoid, hardsigmoid, hardtanh, softsign, softplus, elu,
// gelu, leaky_relu, silu or identity. Null for others.
using ActivationFunction = Tensor (*)(const Tensor&);
ActivationFunction recurrent_activation(const std::string& name);
std::string recurrent_activation_names();

// What a layer with 1 gate (tanh or relu), 3 (GRU) or 4 (LSTM) computes.
RecurrenceCell cell_of(int64_t gates, bool relu);

// All steps of data [all steps, ..], of a layer with 1 gate, 3 or 4.
// batch_sizes says how many rows belong to each step, and does not grow. hidden and cell [N, ..]
// begin as the first states and end as the last ones. -> [all steps, H].
Tensor recurrent_sequence(int64_t gates, bool relu, bool reverse, const Tensor& data,
                          const std::vector<int64_t>& batch_sizes, Tensor& hidden, Tensor& cell,
                          const RecurrentWeights& weights, const RecurrentVariant& variant = {});

}  // namespace kiln::nn::detail
