#include "kiln/graph/passes/last_uses.h"

#include <algorithm>

namespace kiln::graph {

void find_last_uses(Graph& graph) {
  std::vector<char> needed(graph.values.size(), 0);
  for (size_t i = 0; i < graph.values.size(); ++i) {
    if (graph.values[i].origin == Origin::constant) needed[i] = 1;
  }
  for (const ValueId id : graph.outputs) needed[static_cast<size_t>(id)] = 1;
  for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node) {
    node->released.clear();
    for (const ValueId id : node->results) {
      if (needed[static_cast<size_t>(id)] == 0) node->released.push_back(id);
    }
    node->each_operand([&](Operand& o) {
      o.last = false;
      int times = 0;
      node->each_operand([&](const Operand& other) { times += other.value == o.value; });
      const bool again = std::count(node->results.begin(), node->results.end(), o.value) != 0;
      if (needed[static_cast<size_t>(o.value)] != 0 || again) return;
      o.last = times == 1 && !o.in_place;
      if (std::count(node->released.begin(), node->released.end(), o.value) == 0) {
        node->released.push_back(o.value);
      }
    });
    node->each_operand([&](const Operand& o) { needed[static_cast<size_t>(o.value)] = 1; });
  }
}

}  // namespace kiln::graph
