// Which memory a graph writes to. Internal to the passes.
#pragma once

#include <vector>

#include "kiln/graph/graph.h"
#include "kiln/graph/rows.h"

namespace kiln::graph {

// Calls f(value) for each value whose memory the node writes to.
template <class F>
void each_write(const Node& node, F&& f) {
  node.each_operand([&](const Operand& o) {
    if (o.in_place) f(o.value);
  });
  if (node.kind != NodeKind::row || !node.results.empty()) return;
  // assign and fill write their first operand; of other rows without results all may be written.
  const bool first_alone = node.name.ends_with("_assign") || node.name.ends_with("_fill");
  bool is_first = true;
  node.each_operand([&](const Operand& o) {
    if ((is_first || !first_alone) && !o.in_place) f(o.value);
    is_first = false;
  });
}

class Effects {
 public:
  explicit Effects(const Graph& graph);

  // Whether a node writes to memory that the value may share.
  bool is_written(ValueId id) const { return written_[memory(id)] != 0; }
  // Whether the value may share memory with an input or a constant.
  bool is_outside(ValueId id) const { return outside_[memory(id)] != 0; }
  // Whether the value may share memory with an output.
  bool is_given_out(ValueId id) const { return given_out_[memory(id)] != 0; }

 private:
  size_t memory(ValueId id) const { return static_cast<size_t>((*graph_)[id].memory); }

  const Graph* graph_;
  std::vector<char> written_, outside_, given_out_;
};

}  // namespace kiln::graph
