#include "kiln/graph/passes/effects.h"

#include <algorithm>

namespace kiln::graph {

Effects::Effects(const Graph& graph) : graph_(&graph) {
  int32_t most = 0;
  for (const Value& value : graph.values) most = std::max(most, value.memory);
  const auto size = static_cast<size_t>(most) + 1;
  written_.assign(size, 0);
  outside_.assign(size, 0);
  given_out_.assign(size, 0);
  for (const Value& value : graph.values) {
    if (value.origin != Origin::node) outside_[static_cast<size_t>(value.memory)] = 1;
  }
  for (const Node& node : graph.nodes) {
    each_write(node, [&](ValueId id) { written_[memory(id)] = 1; });
    // What a call on the host writes is not known: its tensors, parameters.
    if (node.kind != NodeKind::call) continue;
    node.each_operand([&](const Operand& o) { written_[memory(o.value)] = 1; });
    for (size_t i = 0; i < size; ++i) written_[i] = written_[i] | outside_[i];
  }
  for (const ValueId id : graph.outputs) given_out_[memory(id)] = 1;
}

}  // namespace kiln::graph
