// The cells of recurrences: what happens in a step once the products are known. Internal to the Cpu
// backend.
#pragma once

#include <cstdint>

namespace kiln::cpu {

// Some sequences at one step. Rows of x and y are G H elements apart, rows of all others H but for
// `kept`, where they are K H apart.
template <class T>
struct CellForward {
  int64_t rows = 0;
  int64_t size = 0;      // H
  const T* x = nullptr;  // the input's part of the gates
  const T* y = nullptr;  // W h + b
  T* h = nullptr;        // the state, in and out
  T* c = nullptr;        // the cell state, in and out
  T* out = nullptr;      // the new hidden state once more
  T* kept = nullptr;     // what the gradient needs; may be null
};

template <class T>
struct CellBackward {
  int64_t rows = 0;
  int64_t size = 0;
  const T* g_out = nullptr;   // of the hidden state that was given out; may be null
  const T* out = nullptr;     // that hidden state; for RNN
  const T* kept = nullptr;    // rows K H apart
  const T* before = nullptr;  // the state before: GRU's h, LSTM's c
  int64_t before_row = 0;     // elements from row to row of it
  T* dh = nullptr;            // in: of the new hidden state; out: what GRU's z lets through
  T* dc = nullptr;            // of the cell state, in and out
  T* g_x = nullptr;           // the gates' gradients, rows G H apart
  T* g_y = nullptr;           // GRU's, where the reset gate stands before the sum
};

// One for each RecurrenceCell, in its order.
template <class T>
struct RecurrenceKernels {
  void (*forward[4])(const CellForward<T>& cell);
  void (*backward[4])(const CellBackward<T>& cell);
};

// For the best instruction set of this machine.
template <class T>
const RecurrenceKernels<T>& recurrence_kernels();

}  // namespace kiln::cpu
