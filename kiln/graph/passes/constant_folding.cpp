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

// Which nodes are computed beforehand, if their operands are: those whose results are small, or
// smaller than what they are made of, and those that only such nodes read, since their results do
// not stay.
std::vector<char> wanted_of(const Graph& graph, const Effects& effects, std::vector<char> constant,
                            ValueId own_from) {
  const std::vector<Node>& nodes = graph.nodes;
  std::vector<char> possible(nodes.size(), 0), fits(nodes.size(), 0);
  for (size_t n = 0; n < nodes.size(); ++n) {
    const Node& node = nodes[n];
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
    possible[n] = fold ? 1 : 0;
    fits[n] = made <= kMostBytes || made <= given ? 1 : 0;
    for (const ValueId id : node.results) constant[static_cast<size_t>(id)] |= possible[n];
  }
  std::vector<char> wanted(nodes.size(), 0), passes(graph.values.size(), 1);
  for (size_t n = nodes.size(); n-- > 0;) {
    const bool stays = std::any_of(nodes[n].results.begin(), nodes[n].results.end(),
                                   [&](auto id) { return passes[static_cast<size_t>(id)] == 0; });
    wanted[n] = possible[n] != 0 && (fits[n] != 0 || !stays) ? 1 : 0;
    nodes[n].each_operand(
        [&](const Operand& o) { passes[static_cast<size_t>(o.value)] &= wanted[n]; });
  }
  return wanted;
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
  const std::vector<char> wanted = wanted_of(graph, effects, constant, own_from);
  Frame frame;
  frame.slots.resize(graph.values.size());
  for (const ValueId id : graph.constants()) frame[id] = graph[id].constant;
  std::vector<Node> kept;
  size_t folded = 0;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    Node& node = graph.nodes[n];
    bool fold = wanted[n] != 0;
    node.each_operand(
        [&](const Operand& o) { fold = fold && constant[static_cast<size_t>(o.value)] != 0; });
    if (!fold) {
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
