#include "kiln/graph/graph.h"

#include <algorithm>

#include "kiln/backend/flops.h"
#include "kiln/backend/result_layout.h"
#include "kiln/graph/rows.h"

namespace kiln::graph {

int64_t Value::bytes() const { return shape.numel() * static_cast<int64_t>(size_of(dtype)); }

void Value::set_layout(const Layout& layout) {
  if (!layout) return;
  row_major = is_contiguous(shape, *layout.strides);
  order = order_in_memory(shape, *layout.strides);
}

bool Node::has_effect() const {
  if (kind == NodeKind::check || kind == NodeKind::expect || kind == NodeKind::call) return true;
  if (kind == NodeKind::row && results.empty()) return true;  // assign, fill, an optimizer's step
  bool writes = false;
  each_operand([&](const Operand& o) { writes = writes || o.in_place; });
  return writes;
}

std::vector<ValueId> Graph::constants() const {
  std::vector<ValueId> out;
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i].origin == Origin::constant) out.push_back(static_cast<ValueId>(i));
  }
  return out;
}

// ---- What it costs

namespace {

int64_t results_numel(const Graph& graph, const Node& node) {
  int64_t n = 0;
  for (const ValueId id : node.results) n += graph[id].shape.numel();
  return n;
}

// The shapes of a row's tensors in its order, as flops_of() takes them.
std::vector<Shape> operand_shapes(const Graph& graph, const Node& node) {
  std::vector<Shape> out;
  for (const Argument& a : node.arguments) {
    if (a.kind == Argument::Kind::attribute || a.operands.empty()) continue;
    const ValueId id = a.operands[0].value;
    out.push_back(id == kNoValue ? Shape() : graph[id].shape);
  }
  return out;
}

// Multiplications and additions. A row that only moves elements has none; of an elementwise
// function each counts as one.
int64_t flops_of(const Graph& graph, const Node& node) {
  const int64_t out = results_numel(graph, node);
  if (const Product product = product_of(node.name); product != Product::none) {
    return kiln::flops_of(product, operand_shapes(graph, node), graph[node.results[0]].shape);
  }
  if (node.row == kRow_float_optimizer_step) {
    int64_t n = 0;
    for (const Operand& o : node.arguments[0].operands) n += graph[o.value].shape.numel();
    return 10 * n;
  }
  const std::string& name = node.name;
  for (const char* moves :
       {"reshape", "permute", "expand", "slice", "flip", "contiguous", "empty", "full", "cat",
        "from_data", "assign", "fill", "gather", "index_select", "to_device", "from_parts"}) {
    if (name.ends_with(moves)) return 0;
  }
  int64_t n = out;  // of a reduction what goes in
  node.each_operand([&](const Operand& o) { n = std::max(n, graph[o.value].shape.numel()); });
  return n;
}

}  // namespace

Cost Graph::cost(const Node& node) const {
  Cost out;
  if (node.kind == NodeKind::as_strided || node.kind == NodeKind::reinterpret) return out;
  node.each_operand([&](const Operand& o) { out.bytes += (*this)[o.value].bytes(); });
  bool views = node.kind == NodeKind::row && !node.results.empty();
  for (const ValueId id : node.results) {
    out.bytes += (*this)[id].bytes();
    bool shares = false;
    node.each_operand([&](const Operand& o) {
      shares = shares || (*this)[o.value].memory == (*this)[id].memory;
    });
    views = views && shares;
  }
  if (views && !node.has_effect()) return {};
  if (node.kind == NodeKind::row || node.kind == NodeKind::fused) out.flops = flops_of(*this, node);
  return out;
}

Cost Graph::cost() const {
  Cost sum;
  for (const Node& node : nodes) {
    const Cost one = cost(node);
    sum.flops += one.flops;
    sum.bytes += one.bytes;
  }
  return sum;
}

// ---- Text

std::string Graph::name_of(ValueId id) const {
  if (id == kNoValue) return "none";
  const Value& value = (*this)[id];
  return value.name.empty() ? "%" + std::to_string(id) : value.name;
}

namespace {

std::string text_of(const Graph& graph, const Argument& argument) {
  if (argument.kind == Argument::Kind::attribute) return to_string(argument.attribute);
  std::string out;
  for (const Operand& o : argument.operands) {
    if (!out.empty()) out += ", ";
    out += graph.name_of(o.value);
    if (o.in_place) out += "!";
  }
  return argument.kind == Argument::Kind::list ? "[" + out + "]" : out;
}

std::string type_of(const Value& value) {
  std::string out = concat(value.dtype, " ", value.shape);
  if (value.device.type != kCpu) out += concat(" ", value.device);
  return out;
}

std::string call_of(const Graph& graph, const Node& node) {
  std::string out = node.name + "(";
  for (size_t i = 0; i < node.arguments.size(); ++i) {
    out += (i == 0 ? "" : ", ") + text_of(graph, node.arguments[i]);
  }
  return out + ")";
}

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

}  // namespace

std::string Graph::str() const {
  std::string out = "graph(";
  for (size_t i = 0; i < inputs.size(); ++i) {
    out += (i == 0 ? "" : ", ") + name_of(inputs[i]) + ": " + type_of((*this)[inputs[i]]);
  }
  out += ")\n";
  for (const ValueId id : constants()) {
    out += "  constant " + name_of(id) + ": " + type_of((*this)[id]) + "\n";
  }
  for (const Node& node : nodes) {
    out += "  ";
    for (size_t i = 0; i < node.results.size(); ++i) {
      out += (i == 0 ? "" : ", ") + name_of(node.results[i]);
    }
    out += (node.results.empty() ? "" : " = ") + call_of(*this, node);
    for (const ValueId id : node.results) out += "  " + type_of((*this)[id]);
    out += "\n";
  }
  out += "  return (";
  for (size_t i = 0; i < outputs.size(); ++i) out += (i == 0 ? "" : ", ") + name_of(outputs[i]);
  return out + ")\n";
}

std::string Graph::to_dot() const {
  std::string out = "digraph kiln {\n  node [shape=box, fontname=monospace];\n";
  std::vector<std::string> makers(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i].origin == Origin::node) continue;
    const auto id = static_cast<ValueId>(i);
    makers[i] = concat("v", id);
    out +=
        concat("  v", id,
               " [shape=ellipse, label=", quoted(name_of(id) + "\n" + type_of(values[i])), "];\n");
  }
  for (size_t n = 0; n < nodes.size(); ++n) {
    std::string label = nodes[n].name;
    for (const ValueId id : nodes[n].results) label += "\n" + type_of((*this)[id]);
    out += concat("  n", n, " [label=", quoted(label), "];\n");
    nodes[n].each_operand([&](const Operand& o) {
      out += concat("  ", makers[static_cast<size_t>(o.value)], " -> n", n,
                    o.in_place ? " [style=bold]" : "", ";\n");
    });
    for (const ValueId id : nodes[n].results) makers[static_cast<size_t>(id)] = concat("n", n);
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    out += concat("  out", i, " [shape=ellipse, label=", quoted(concat("output ", i)), "];\n  ",
                  makers[static_cast<size_t>(outputs[i])], " -> out", i, ";\n");
  }
  return out + "}\n";
}

}  // namespace kiln::graph
