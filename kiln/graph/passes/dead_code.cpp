#include <algorithm>

#include "kiln/graph/passes/effects.h"
#include "kiln/graph/passes/passes.h"

namespace kiln::graph {

void remove_dead_code(Graph& graph, PassReport* report) {
  const Effects effects(graph);
  std::vector<char> value_needed(graph.values.size(), 0);
  std::vector<char> memory_needed(graph.values.size() + 1, 0);
  const auto need = [&](ValueId id) {
    value_needed[static_cast<size_t>(id)] = 1;
    memory_needed[static_cast<size_t>(graph[id].memory)] = 1;
  };
  for (const ValueId id : graph.outputs) need(id);
  std::vector<char> keep(graph.nodes.size(), 0);
  for (size_t n = graph.nodes.size(); n-- > 0;) {
    const Node& node = graph.nodes[n];
    bool needed = node.kind == NodeKind::check || node.kind == NodeKind::expect ||
                  node.kind == NodeKind::call;
    for (const ValueId id : node.results) needed = needed || value_needed[static_cast<size_t>(id)];
    // A write counts where somebody looks at the memory later, or may look from outside.
    each_write(node, [&](ValueId id) {
      needed = needed || effects.is_outside(id) ||
               memory_needed[static_cast<size_t>(graph[id].memory)] != 0;
    });
    if (!needed) continue;
    keep[n] = 1;
    node.each_operand([&](const Operand& o) { need(o.value); });
  }
  const size_t before = graph.nodes.size();
  std::vector<Node> kept;
  for (size_t n = 0; n < before; ++n) {
    if (keep[n] != 0) kept.push_back(std::move(graph.nodes[n]));
  }
  graph.nodes = std::move(kept);
  if (report != nullptr && graph.nodes.size() != before) {
    report->lines.push_back(concat("dead code: ", before - graph.nodes.size(), " nodes removed"));
  }
}

}  // namespace kiln::graph
