// The parameters of a recurrence over the steps of sequences (float_recurrence in ops.def).
#pragma once

#include <cstdint>
#include <vector>

namespace kiln {

// From the input's part x and the state's part y = W h + b of a step's gates to the next state:
//   tanh, relu  h' = f(x + y)
//   gru         r, z = sigmoid(x + y), n = tanh(x_n + r y_n), h' = n + z (h - n)
//   lstm        i, f, o = sigmoid(x + y), g = tanh(x_g + y_g), c' = f c + i g, h' = o tanh(c')
enum class RecurrenceCell : uint8_t { tanh, relu, gru, lstm };

// Rows [begin, begin + rows) belong to one step.
struct RecurrenceStep {
  int64_t begin = 0;
  int64_t rows = 0;
};

struct RecurrenceOptions {
  RecurrenceCell cell = RecurrenceCell::tanh;
  bool reverse = false;                   // from the last step to the first
  bool saves = true;                      // whether what a gradient needs is wanted
  std::vector<int64_t> batch_sizes = {};  // rows of each step; they do not grow

  // Gates; states; and what is kept of each row: LSTM's i, f, g, o and c', GRU's r, z, n and y_n.
  int64_t gates() const {
    return cell == RecurrenceCell::lstm ? 4 : cell == RecurrenceCell::gru ? 3 : 1;
  }
  int64_t states() const { return cell == RecurrenceCell::lstm ? 2 : 1; }
  int64_t kept() const {
    return cell == RecurrenceCell::lstm ? 5 : cell == RecurrenceCell::gru ? 4 : 0;
  }
  int64_t rows() const;
  // In the order in which they are computed.
  std::vector<RecurrenceStep> steps() const;
};

}  // namespace kiln
