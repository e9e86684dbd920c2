// What a pass needs that puts rows of its own into a graph. Internal to the passes.
#pragma once

#include <vector>

#include "kiln/graph/graph.h"
#include "kiln/graph/passes/effects.h"

namespace kiln::graph {

// How often a graph reads each value; outputs count.
std::vector<int> uses_of(const Graph& graph);

// Whether a row is computed of tensors alone: no writes, no effects.
bool is_plain_row(const Node& node, int32_t row);

// Whether something between two nodes writes what the first reads, which moves to the second.
bool changes_between(const Graph& graph, size_t from, size_t to);

// The value of a node's argument; kNoValue for an optional one that is absent.
inline ValueId operand_of(const Node& node, size_t argument) {
  return node.arguments[argument].operands[0].value;
}

// Adds rows behind those that are in `nodes`, and their values to the graph.
class RowWriter {
 public:
  RowWriter(Graph& graph, std::vector<Node>& nodes);

  static Argument tensor(ValueId id);
  static Argument list(const std::vector<ValueId>& ids);
  static Argument attribute(Attribute value);

  // A row with one result of this shape, with the dtype and device of `like`.
  ValueId add(int32_t row, std::vector<Argument> arguments, const Shape& shape, ValueId like);

  ValueId reshape(ValueId x, const Shape& shape);
  ValueId binary(int32_t row, ValueId a, ValueId b);  // a has the result's shape

 private:
  Graph& graph_;
  std::vector<Node>& nodes_;
  int32_t next_memory_ = 0;
};

// Which values keep what they have: constants that nothing in the graph writes to.
class Frozen {
 public:
  explicit Frozen(const Graph& graph) : graph_(&graph), effects_(graph) {}
  bool operator()(ValueId id) const {
    return id != kNoValue && (*graph_)[id].origin == Origin::constant && !effects_.is_written(id);
  }

 private:
  const Graph* graph_;
  Effects effects_;
};

}  // namespace kiln::graph
