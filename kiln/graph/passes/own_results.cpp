#include <algorithm>
#include <numeric>
#include <vector>

#include "kiln/graph/passes/passes.h"

namespace kiln::graph {

namespace {

// The value that a row writes and gives back, when it does nothing else to memory; else kNoValue.
ValueId written_by(const Node& node) {
  if (node.kind != NodeKind::row || node.results.size() != 1) return kNoValue;
  int writes = 0;
  ValueId written = kNoValue;
  node.each_operand([&](const Operand& o) {
    if (!o.in_place) return;
    ++writes;
    written = o.value;
  });
  return writes == 1 && node.results[0] == written ? written : kNoValue;
}

}  // namespace

void give_own_results(Graph& graph, PassReport* report) {
  const size_t values = graph.values.size();
  int32_t memories = 0;
  for (const Value& value : graph.values) memories = std::max(memories, value.memory + 1);
  // Values that share memory with no other, and that no node writes to in another way.
  std::vector<int> sharing(static_cast<size_t>(memories), 0);
  for (const Value& value : graph.values) ++sharing[static_cast<size_t>(value.memory)];
  std::vector<char> plain(values, 0);
  for (size_t i = 0; i < values; ++i) {
    const Value& value = graph.values[i];
    plain[i] = value.origin == Origin::node && value.row_major &&
               sharing[static_cast<size_t>(value.memory)] == 1;
  }
  for (const Node& node : graph.nodes) {
    const ValueId written = written_by(node);
    node.each_operand([&](const Operand& o) {
      const bool other_write = o.in_place && o.value != written;
      const bool may_write =
          node.kind == NodeKind::call || (node.kind == NodeKind::row && node.results.empty());
      if (other_write || may_write) plain[static_cast<size_t>(o.value)] = 0;
    });
  }

  // What each value is called from here on.
  std::vector<ValueId> now(values);
  std::iota(now.begin(), now.end(), 0);
  int count = 0;
  for (Node& node : graph.nodes) {
    const ValueId written = written_by(node);
    const bool own = written != kNoValue && plain[static_cast<size_t>(written)] != 0;
    node.each_operand([&](Operand& o) {
      if (own && o.value == written) o.in_place = false;
      o.value = now[static_cast<size_t>(o.value)];
    });
    if (!own) continue;
    Value result = graph[written];
    result.memory = memories++;
    const auto id = static_cast<ValueId>(graph.values.size());
    graph.values.push_back(std::move(result));
    node.results[0] = id;
    now[static_cast<size_t>(written)] = id;
    ++count;
  }
  for (ValueId& id : graph.outputs) id = now[static_cast<size_t>(id)];
  if (count != 0 && report != nullptr) {
    report->lines.push_back(concat("own results: ", count, " rows no longer write in place"));
  }
}

}  // namespace kiln::graph
