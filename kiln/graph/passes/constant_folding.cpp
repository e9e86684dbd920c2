#include <algorithm>

#include "kiln/graph/passes/effects.h"
#include "kiln/graph/passes/passes.h"

namespace kiln::graph {

namespace {

// A folded result stays in memory: only what is small, or smaller than what it is made of.
constexpr int64_t kMostBytes = 1 << 20;

bool draws(const Node& node) {
  return std::any_of(node.arguments.begin(), node.arguments.end(), [](const Argument& a) {
    if (const auto* options = std::get_if<AttentionOptions>(&a.attribute)) {
      return options->dropout > 0.0;
    }
    return std::holds_alternative<RandomStream>(a.attribute);
  });
}

// What only moves all elements of a tensor.
bool keeps_elements(const Node& node) {
  return node.row == kRow_float_reshape || node.row == kRow_float_permute ||
         node.row == kRow_float_contiguous;
}

}  // namespace

void fold_constants(Graph& graph, bool freeze, PassReport* report, ValueId own_from) {
  const Effects effects(graph);
  std::vector<char> constant(graph.values.size(), 0);
  if (freeze) {
    for (const ValueId id : graph.constants()) {
      if (!effects.is_written(id)) constant[static_cast<size_t>(id)] = 1;
    }
  }
  Frame frame;
  frame.slots.resize(graph.values.size());
  for (const ValueId id : graph.constants()) frame[id] = graph[id].constant;
  std::vector<Node> kept;
  size_t folded = 0;
  for (Node& node : graph.nodes) {
    bool fold = node.kind == NodeKind::row && !node.has_effect() && !draws(node);
    fold = fold && (own_from < 0 || keeps_elements(node) || node.results[0] >= own_from);
    int64_t given = 0, made = 0;
    node.each_operand([&](const Operand& o) {
      fold = fold && constant[static_cast<size_t>(o.value)] != 0;
      given += graph[o.value].bytes();
    });
    for (const ValueId id : node.results) {
      fold = fold && graph[id].origin == Origin::node && !effects.is_written(id) &&
             !effects.is_given_out(id);
      made += graph[id].bytes();
    }
    if (!fold || (made > kMostBytes && made > given)) {
      kept.push_back(std::move(node));
      continue;
    }
    node.each_operand([&](Operand& o) { o.last = false; });
    run_row(node, frame);
    for (const ValueId id : node.results) {
      constant[static_cast<size_t>(id)] = 1;
      graph[id].origin = Origin::constant;
      graph[id].constant = frame[id];
    }
    ++folded;
  }
  graph.nodes = std::move(kept);
  // Those that nothing reads any more.
  std::vector<char> read(graph.values.size(), 0);
  for (const Node& node : graph.nodes) {
    node.each_operand([&](const Operand& o) { read[static_cast<size_t>(o.value)] = 1; });
  }
  for (const ValueId id : graph.outputs) read[static_cast<size_t>(id)] = 1;
  for (size_t i = 0; i < graph.values.size(); ++i) {
    Value& value = graph.values[i];
    if (value.origin != Origin::constant || read[i] != 0) continue;
    value.origin = Origin::node;
    value.constant.reset();
  }
  if (report != nullptr && folded != 0) {
    report->lines.push_back(concat("constants: ", folded, " nodes computed beforehand"));
  }
}

}  // namespace kiln::graph
