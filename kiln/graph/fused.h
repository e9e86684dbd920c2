// Elementwise rows that run together, over one tile of their operands at a time.
#pragma once

#include "kiln/graph/rows.h"

namespace kiln::graph {

// Note [Tiles]
// A chain of elementwise rows on large tensors is bound by memory: each row reads and writes all of
// it. Run tile by tile, what a row writes is still in the cache when the next one reads it. The
// common shape is seen as a matrix [rows, inner], and a tile is a few of its rows; its parts of the
// operands are views, and each row of the op table is called on them as it is on whole tensors. So
// the kernels are the backend's, and the numbers those of eager computing, bit for bit.
struct FusedRows {
  // How an operand lies beside the matrix.
  enum class Source : uint8_t {
    matrix,  // [rows, inner]
    row,     // [inner], the same for each row
    column,  // [rows, 1]
    number,  // one element
  };
  Shape shape;                  // that of the results, with the dims as they lie in memory
  Dims order;                   // which dims these are; of rank 0 where they are all in order
  int64_t rows = 1, inner = 1;  // the shape as a matrix
  std::vector<Source> sources;  // of the node's operands, in their order
  // Values are numbered anew: first the sources, then the results in their order.
  int32_t values = 0;
  std::vector<Node> nodes;
  std::vector<ValueId> outputs;  // what the node results in
  std::vector<DType> dtypes;     // of these

  Shape result_shape() const;
};

void run_fused(const Node& node, Frame& frame);

}  // namespace kiln::graph
