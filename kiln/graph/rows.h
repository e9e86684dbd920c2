// The rows of the op table, by number: their names, and how a node that holds one runs.
#pragma once

#include <string_view>
#include <vector>

#include "kiln/core/random_tape.h"
#include "kiln/graph/graph.h"

namespace kiln::graph {

enum Row : int32_t {
#define KILN_OP(level, name, ...) kRow_##name,
#include "kiln/backend/ops.def"
  kRows,
};

// The values of one replay, by number, and its random numbers.
struct Frame {
  std::vector<ErasedTensor> slots;
  const RandomTape* tape = nullptr;
  std::vector<int64_t> nanoseconds = {};  // of each node, in a replay that is measured

  ErasedTensor& operator[](ValueId id) { return slots[static_cast<size_t>(id)]; }
};

const char* row_name(int32_t row);
// -1 when there is none.
int32_t row_of(std::string_view name);

// Calls the node's row on the frame's values, and puts the results into the frame.
void run_row(const Node& node, Frame& frame);
// Throws ValueError unless a view of this shape lies within x's memory.
void check_window(const Shape& shape, const Strides& strides, int64_t offset,
                  const ErasedTensor& x);
// The values that a row *_into_data reads.
TensorData read_values(int32_t row, const ErasedTensor& x);

}  // namespace kiln::graph
