// Recurrences: the steps of RNN, GRU and LSTM over sequences.
#pragma once

#include "kiln/backend/recurrence_options.h"
#include "kiln/tensor/tensor.h"

namespace kiln::functional {

struct RecurrenceResult {
  Tensor output;  // hidden states [rows, H]
  Tensor hidden;  // each sequence's last hidden state [N, H]
  Tensor cell;    // and cell state; undefined but for LSTM
};

// N sequences, whose rows stand one step after another: x [rows, G H] is the input's part of the
// gates (in the order i, f, g, o or r, z, n), which a single product gives for all steps. hidden
// [N, H] and, for LSTM, cell [N, H] are the first states. w [G H, H] is what hidden states are
// multiplied with, b [G H] what is added; it may be undefined. Step t has the first
// options.batch_sizes[t] sequences. Float tensors of one dtype.
//
// Throws ShapeError, DTypeError, and ValueError for batch sizes that grow or do not fit.
RecurrenceResult recurrence(const Tensor& x, const Tensor& hidden, const Tensor& cell,
                            const Tensor& w, const Tensor& b, RecurrenceOptions options);

}  // namespace kiln::functional
