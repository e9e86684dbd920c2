#include "kiln/graph/passes/rewrite.h"

#include <algorithm>

namespace kiln::graph {

std::vector<int> uses_of(const Graph& graph) {
  std::vector<int> out(graph.values.size(), 0);
  for (const Node& node : graph.nodes) {
    node.each_operand([&](const Operand& o) { ++out[static_cast<size_t>(o.value)]; });
  }
  for (const ValueId id : graph.outputs) ++out[static_cast<size_t>(id)];
  return out;
}

bool is_plain_row(const Node& node, int32_t row) {
  return node.kind == NodeKind::row && node.row == row && !node.has_effect();
}

bool changes_between(const Graph& graph, size_t from, size_t to) {
  bool changes = false;
  const Node& first = graph.nodes[from];
  for (size_t n = from + 1; n < to; ++n) {
    const Node& node = graph.nodes[n];
    if (node.kind == NodeKind::call) return true;
    each_write(node, [&](ValueId id) {
      first.each_operand(
          [&](const Operand& o) { changes |= graph[o.value].memory == graph[id].memory; });
    });
  }
  return changes;
}

RowWriter::RowWriter(Graph& graph, std::vector<Node>& nodes) : graph_(graph), nodes_(nodes) {
  for (const Value& value : graph.values) next_memory_ = std::max(next_memory_, value.memory + 1);
}

Argument RowWriter::tensor(ValueId id) {
  Argument out;
  out.kind = Argument::Kind::tensor;
  out.operands.push_back({id, false, false});
  return out;
}
Argument RowWriter::list(const std::vector<ValueId>& ids) {
  Argument out;
  out.kind = Argument::Kind::list;
  for (const ValueId id : ids) out.operands.push_back({id, false, false});
  return out;
}
Argument RowWriter::attribute(Attribute value) {
  Argument out;
  out.attribute = std::move(value);
  return out;
}

ValueId RowWriter::add(int32_t row, std::vector<Argument> arguments, const Shape& shape,
                       ValueId like) {
  Value value;
  value.shape = shape;
  value.dtype = graph_[like].dtype;
  value.device = graph_[like].device;
  value.memory = next_memory_++;
  value.row_major = true;
  const auto id = static_cast<ValueId>(graph_.values.size());
  graph_.values.push_back(std::move(value));
  Node node;
  node.row = row;
  node.name = row_name(row);
  node.arguments = std::move(arguments);
  node.results = {id};
  nodes_.push_back(std::move(node));
  return id;
}

ValueId RowWriter::reshape(ValueId x, const Shape& shape) {
  return add(kRow_float_reshape, {tensor(x), attribute(shape)}, shape, x);
}

ValueId RowWriter::binary(int32_t row, ValueId a, ValueId b) {
  const Shape shape = graph_[a].shape;
  return add(row, {tensor(a), tensor(b)}, shape, a);
}

}  // namespace kiln::graph
