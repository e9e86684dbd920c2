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

// One step: x [N, I], hidden [N, H] and, for LSTM, cell [N, H]; w_ih [G H, I], w_hh [G H, H], and
// b_ih and b_hh [G H], which may be undefined. Gives the next states. Float tensors of one dtype.
//
// Throws ShapeError, DTypeError, and ValueError where a cell state lacks or is one too many.
struct RecurrentState {
  Tensor hidden, cell;  // [N, H]; cell undefined but for LSTM
};
RecurrentState recurrent_cell(RecurrenceCell kind, const Tensor& x, const Tensor& hidden,
                              const Tensor& cell, const Tensor& w_ih, const Tensor& w_hh,
                              const Tensor& b_ih, const Tensor& b_hh);

}  // namespace kiln::functional
