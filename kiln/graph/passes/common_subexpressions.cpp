#include <algorithm>
#include <map>
#include <unordered_map>

#include "kiln/graph/passes/effects.h"
#include "kiln/graph/passes/passes.h"

namespace kiln::graph {

namespace {

bool same_arguments(const Node& a, const Node& b) {
  if (a.kind != b.kind || a.row != b.row || a.arguments.size() != b.arguments.size()) return false;
  for (size_t i = 0; i < a.arguments.size(); ++i) {
    const Argument& x = a.arguments[i];
    const Argument& y = b.arguments[i];
    if (x.kind != y.kind || x.operands.size() != y.operands.size()) return false;
    for (size_t k = 0; k < x.operands.size(); ++k) {
      if (x.operands[k].value != y.operands[k].value) return false;
    }
    if (x.kind == Argument::Kind::attribute && !are_equal(x.attribute, y.attribute)) return false;
  }
  return true;
}

size_t hash_of(const Node& node) {
  size_t hash = static_cast<size_t>(node.row) + static_cast<size_t>(node.kind) * 1000;
  node.each_operand([&](const Operand& o) { hash = hash * 31 + static_cast<size_t>(o.value) + 1; });
  return hash;
}

}  // namespace

void share_common_subexpressions(Graph& graph, PassReport* report) {
  const Effects effects(graph);
  std::vector<ValueId> now(graph.values.size());
  for (size_t i = 0; i < now.size(); ++i) now[i] = static_cast<ValueId>(i);
  std::unordered_multimap<size_t, size_t> seen;  // nodes by hash
  std::vector<Node> kept;
  size_t shared = 0;
  for (Node& node : graph.nodes) {
    node.each_operand([&](Operand& o) { o.value = now[static_cast<size_t>(o.value)]; });
    bool pure = (node.kind == NodeKind::row || node.kind == NodeKind::as_strided) &&
                !node.has_effect() && !node.results.empty();
    // What is written to, or given out, has to have memory of its own.
    for (const ValueId id : node.results) {
      pure = pure && graph[id].origin == Origin::node && !effects.is_written(id) &&
             !effects.is_given_out(id);
    }
    node.each_operand([&](const Operand& o) {
      pure = pure && !effects.is_written(o.value) &&
             std::count(node.results.begin(), node.results.end(), o.value) == 0;
    });
    if (pure) {
      const size_t hash = hash_of(node);
      const auto [begin, end] = seen.equal_range(hash);
      const auto found = std::find_if(
          begin, end, [&](const auto& entry) { return same_arguments(kept[entry.second], node); });
      if (found != end) {
        for (size_t i = 0; i < node.results.size(); ++i) {
          now[static_cast<size_t>(node.results[i])] = kept[found->second].results[i];
        }
        ++shared;
        continue;
      }
      seen.emplace(hash, kept.size());
    }
    kept.push_back(std::move(node));
  }
  for (ValueId& id : graph.outputs) id = now[static_cast<size_t>(id)];
  graph.nodes = std::move(kept);
  if (report != nullptr && shared != 0) {
    report->lines.push_back(concat("common subexpressions: ", shared, " nodes shared"));
  }
}

}  // namespace kiln::graph
