#include "kiln/onnx/write/writer.h"

#include <array>
#include <set>

#include "kiln/core/error.h"
#include "kiln/graph/passes/effects.h"
#include "kiln/onnx/onnx.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/tensor_impl.h"

namespace kiln::onnx {

namespace {

using Translate = void (*)(Writer&, const Node&);

const std::array<Translate, graph::kRows>& translations() {
  static const auto all = [] {
    std::array<Translate, graph::kRows> out{};
    for (const auto family :
         {elementwise_translations(), shape_translations(), reduction_translations(),
          layer_translations(), recurrence_translations()}) {
      for (const Translation& one : family) out[static_cast<size_t>(one.row)] = one.write;
    }
    return out;
  }();
  return all;
}

void set_data(wire::Tensor& tensor, const TensorData& data) {
  tensor.dims = data.shape().to_vector();
  tensor.data_type = data_type_of(data.dtype());
  tensor.raw_data.assign(reinterpret_cast<const char*>(data.data()), data.bytes());
}

}  // namespace

int data_type_of(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return 1;
    case DType::u8:
      return 2;
    case DType::i8:
      return 3;
    case DType::i16:
      return 5;
    case DType::i32:
      return 6;
    case DType::i64:
      return 7;
    case DType::boolean:
      return 9;
    case DType::f16:
      return 10;
    case DType::f64:
      return 11;
    case DType::bf16:
      return 16;
    default:
      throw_error<NotImplementedError>("onnx: a graph has no tensors of dtype ", dtype);
  }
}

Writer::Writer(const graph::Graph& graph, const std::vector<std::string>& output_names,
               bool has_free_sizes, bool leaves_values_out)
    : graph_(graph),
      output_names_(output_names),
      has_free_sizes_(has_free_sizes),
      leaves_values_out_(leaves_values_out) {}

wire::Model Writer::run() {
  model_.ir_version = 9;
  model_.producer_name = "kiln";
  model_.producer_version = KILN_VERSION;
  model_.opset_import.push_back({"", kWrittenOpset});
  body_.name = "graph";
  const graph::Effects effects(graph_);
  for (const std::string& name : output_names_) taken_[name] = 1;
  add_inputs();
  for (const ValueId id : graph_.constants()) {
    if (effects.is_written(id)) {
      throw_error<NotImplementedError>("onnx: the graph writes to its constant '",
                                       graph_.name_of(id),
                                       "', which no ONNX graph can; expected a model in eval()");
    }
    const std::string& called = graph_[id].name;
    wire::Tensor& tensor = body_.initializer.emplace_back();
    tensor.name = names_[id] = own(called.empty() ? concat("constant.", id) : called);
    if (leaves_values_out_) {
      tensor.dims = graph_[id].shape.to_vector();
      tensor.data_type = data_type_of(graph_[id].dtype);
      continue;
    }
    set_data(tensor, kiln::detail::wrap(graph_[id].constant).to_data());
  }
  for (const Node& node : graph_.nodes) translate(node);
  Names outputs;
  const Node end;
  for (const ValueId id : graph_.outputs) outputs.push_back(read(end, id));
  add_outputs(outputs);
  prune();
  model_.graph.push_back(std::move(body_));
  return std::move(model_);
}

void Writer::translate(const Node& node) {
  if (node.kind == graph::NodeKind::check) return;
  if (node.kind == graph::NodeKind::row) {
    if (const Translate write = translations()[static_cast<size_t>(node.row)]) {
      write(*this, node);
      for (const ValueId id : node.results) {
        if (!makers_.contains(id)) makers_[id] = &node;
      }
      return;
    }
  }
  if (node.kind == graph::NodeKind::as_strided) return translate_window(node);
  refuse(node, "no ONNX operators stand for this row");
}

// A window of the memory of a tensor that fills it and is alone in it: elements by their places.
void Writer::translate_window(const Node& node) {
  const ValueId id = node.arguments[0].operands[0].value;
  const graph::Value& x = graph_[id];
  if (views_.contains(id) || (!x.row_major && x.order.rank() == 0) || writes_.contains(x.memory)) {
    refuse(node, "a window of memory that other tensors share");
  }
  const std::string memory = x.order.rank() == 0 ? in(node, 0) : permuted(in(node, 0), x.order);
  const std::string flat = reshaped(memory, {x.shape.numel()});
  const Shape &shape = get<Shape>(node, 1), &strides = get<Shape>(node, 2);
  if (has_free_sizes_) {
    const auto place = [&](int64_t v) { return number_of(Scalar(v), DType::i64); };
    std::string picks = place(get<int64_t>(node, 3));
    for (int d = 0; d < shape.rank(); ++d) {
      Shape along = Shape::filled(shape.rank(), 1);
      along[d] = shape[d];
      const std::string i = add("Range", {place(0), place(shape[d]), place(1)});
      picks = add("Add", {picks, reshaped(add("Mul", {i, place(strides[d])}), along)});
    }
    return out(node, add("Gather", {flat, picks}, {{"axis", int64_t{0}}}));
  }
  std::vector<int64_t> places(static_cast<size_t>(shape.numel()));
  Shape at = Shape::filled(shape.rank(), 0);
  for (int64_t& place : places) {
    place = get<int64_t>(node, 3);
    for (int d = 0; d < shape.rank(); ++d) place += at[d] * strides[d];
    for (int d = shape.rank() - 1; d >= 0 && ++at[d] == shape[d]; --d) at[d] = 0;
  }
  const std::string picks = constant(TensorData(places, shape));
  out(node, add("Gather", {flat, picks}, {{"axis", int64_t{0}}}));
}

void Writer::refuse(const Node& node, const std::string& why) const {
  std::string line;
  for (const ValueId id : node.results)
    line += concat(line.empty() ? "" : ", ", graph_.name_of(id));
  line += concat(line.empty() ? "" : " = ", node.name, "(");
  bool first = true;
  node.each_operand([&](const graph::Operand& o) {
    const graph::Value& v = graph_[o.value];
    line += concat(first ? "" : ", ", graph_.name_of(o.value), ": ", v.dtype, " ", v.shape);
    first = false;
  });
  throw_error<NotImplementedError>("onnx: ", node.name, ": ", why, "; at ", line, ")");
}

// ---- Names

std::string Writer::own(const std::string& name) {
  std::string out = name;
  while (taken_[out]++ != 0) out = concat(name, "_", taken_[name]);
  return out;
}
std::string Writer::fresh(const char* op) {
  std::string out;
  do {
    out = concat(op, "_", numbers_++);
  } while (taken_.contains(out));
  return out;
}

std::string Writer::in(const Node& node, size_t argument) {
  const ValueId id = node.arguments[argument].operands[0].value;
  return id == graph::kNoValue ? "" : read(node, id);
}
Writer::Names Writer::list(const Node& node, size_t argument) {
  Names out;
  for (const graph::Operand& o : node.arguments[argument].operands) {
    out.push_back(read(node, o.value));
  }
  return out;
}
bool Writer::has(const Node& node, size_t argument) const {
  return node.arguments[argument].operands[0].value != graph::kNoValue;
}
const graph::Value& Writer::value(const Node& node, size_t argument) const {
  return graph_[node.arguments[argument].operands[0].value];
}
const graph::Value& Writer::result(const Node& node, size_t i) const {
  return graph_[node.results[i]];
}
const Node* Writer::maker(ValueId id) const {
  const auto found = makers_.find(id);
  const bool written = writes_.contains(graph_[id].memory);
  return found == makers_.end() || written ? nullptr : found->second;
}

// ---- Values, views and writes (Note [Writing])

std::string Writer::read(const Node& node, ValueId id) {
  if (const auto why = left_out_.find(id); why != left_out_.end()) refuse(node, why->second);
  const auto view = views_.find(id);
  const auto writes = writes_.find(graph_[id].memory);
  if (view != views_.end() && writes != writes_.end() && seen_[id] < writes->second) {
    names_[id] = view_of(node, view->second);
    seen_[id] = writes->second;
  }
  return names_.at(id);
}

void Writer::out(const Node& node, const std::string& name, size_t i) {
  const ValueId id = node.results[i];
  if (names_.contains(id)) return write(node, id, name);  // in place
  names_[id] = name;
  const auto writes = writes_.find(graph_[id].memory);
  seen_[id] = writes == writes_.end() ? 0 : writes->second;
  // Other rows may have taken over the memory of an operand that nobody reads any more.
  bool view = false;
  for (const char* row : {"_reshape", "_permute", "_slice", "_expand", "_contiguous"}) {
    view = view || node.name.ends_with(row);
  }
  const auto& operands = node.arguments[0].operands;
  if (view && operands.size() == 1 && operands[0].value != graph::kNoValue &&
      graph_[operands[0].value].memory == graph_[id].memory) {
    views_[id] = {&node, operands[0].value};
  }
}

void Writer::leave_out(const Node& node, size_t i, const char* why) {
  left_out_[node.results[i]] = why;
}

void Writer::write(const Node& node, ValueId id, const std::string& name) {
  // The parents' values from before this write.
  std::vector<std::pair<ValueId, View>> chain;
  for (ValueId at = id; views_.contains(at); at = views_.at(at).parent) {
    chain.emplace_back(at, views_.at(at));
    read(node, views_.at(at).parent);
  }
  const int version = ++writes_[graph_[id].memory];
  names_[id] = name;
  seen_[id] = version;
  std::string now = name;
  for (const auto& [child, view] : chain) {
    now = undone(node, view, now);
    names_[view.parent] = now;
    seen_[view.parent] = version;
  }
}

std::string Writer::view_of(const Node& reader, const View& view) {
  std::string x = read(reader, view.parent);
  const std::string& row = view.node->name;
  const ValueId result = view.node->results[0];
  if (row.ends_with("_reshape")) return reshaped(x, graph_[result].shape);
  if (row.ends_with("_permute")) return permuted(x, get<Shape>(*view.node, 1));
  if (row.ends_with("_slice")) {
    const Range& r = get<Range>(*view.node, 2);
    return sliced(x, get<int>(*view.node, 1), r.start, r.end, r.step);
  }
  if (row.ends_with("_expand")) return add("Expand", {x, ints(graph_[result].shape.to_vector())});
  if (row.ends_with("_contiguous") || graph_[result].shape == graph_[view.parent].shape) return x;
  refuse(reader, concat("it reads a view by ", row, " of memory that was written"));
}

std::string Writer::undone(const Node& reader, const View& view, const std::string& now) {
  const std::string& row = view.node->name;
  const Shape& whole = graph_[view.parent].shape;
  if (row.ends_with("_reshape")) return reshaped(now, whole);
  if (row.ends_with("_permute")) {
    const Dims& dims = get<Shape>(*view.node, 1);
    Dims back = dims;
    for (int i = 0; i < dims.rank(); ++i) back[static_cast<int>(dims[i])] = i;
    return permuted(now, back);
  }
  if (row.ends_with("_slice") && get<Range>(*view.node, 2).step == 1) {
    const Range& r = get<Range>(*view.node, 2);
    const int dim = get<int>(*view.node, 1);
    Names parts;
    const std::string before = names_.at(view.parent);
    if (r.start > 0) parts.push_back(sliced(before, dim, 0, r.start));
    parts.push_back(now);
    if (r.end < whole[dim]) parts.push_back(sliced(before, dim, r.end, whole[dim]));
    return parts.size() == 1 ? now : add("Concat", parts, {{"axis", int64_t{dim}}});
  }
  if (row.ends_with("_contiguous")) return now;
  refuse(reader, concat("it writes through a view by ", row));
}

// ---- Nodes and constants

std::string Writer::add(const char* op, const Names& inputs, const Attributes& attributes) {
  return add_many(op, inputs, attributes, 1)[0];
}

Writer::Names Writer::add_many(const char* op, const Names& inputs, const Attributes& attributes,
                               int outputs) {
  Names out;
  for (int i = 0; i < outputs; ++i) out.push_back(fresh(op));
  wire::Node& node = body_.node.emplace_back();
  node.op_type = op;
  node.name = out[0];
  node.input = inputs;
  node.output = out;
  for (const Attribute& a : attributes) {
    wire::Attribute& to = node.attribute.emplace_back();
    to.name = a.name;
    if (const auto* i = std::get_if<int64_t>(&a.value)) {
      to.type = 2;
      to.i = *i;
    } else if (const auto* f = std::get_if<float>(&a.value)) {
      to.type = 1;
      to.f = *f;
    } else if (const auto* s = std::get_if<std::string>(&a.value)) {
      to.type = 3;
      to.s = *s;
    } else if (const auto* all = std::get_if<std::vector<std::string>>(&a.value)) {
      to.type = 8;
      to.strings = *all;
    } else {
      to.type = 7;
      to.ints = std::get<std::vector<int64_t>>(a.value);
    }
  }
  return out;
}

std::string Writer::constant(const TensorData& data) {
  std::string key = concat(data.dtype(), data.shape());
  if (has_free_sizes_) key = concat(numbers_, " ");  // what is equal here may differ elsewhere
  key.append(reinterpret_cast<const char*>(data.data()), data.bytes());
  const auto [found, is_new] = constants_.try_emplace(key);
  if (is_new) {
    found->second = fresh("const");
    wire::Tensor& tensor = body_.initializer.emplace_back();
    tensor.name = found->second;
    set_data(tensor, data);
  }
  return found->second;
}
std::string Writer::ints(const std::vector<int64_t>& values) {
  return constant(TensorData(values, {static_cast<int64_t>(values.size())}));
}
std::string Writer::number(double value, DType dtype) {
  return constant(TensorData(std::vector<double>{value}, Shape{}).cast(dtype));
}
std::string Writer::number_of(const Scalar& value, DType dtype) {
  if (value.is_floating_point()) return number(value.to_double(), dtype);
  return constant(TensorData(std::vector<int64_t>{value.to_int()}, Shape{}).cast(dtype));
}
std::string Writer::zeros_or_ones(const Shape& shape, DType dtype, double value) {
  if (has_free_sizes_) {
    return add("Expand", {number(value, dtype), ints(shape.to_vector())});
  }
  return constant(full(shape, value, {.dtype = dtype}).to_data());
}

std::string Writer::counted(double start, double step, int64_t count, DType dtype) {
  if (has_free_sizes_) {
    const auto place = [&](int64_t v) { return number_of(Scalar(v), DType::i64); };
    const std::string i = add("Range", {place(0), place(count), place(1)});
    const std::string real = add("Cast", {i}, {{"to", int64_t{data_type_of(DType::f64)}}});
    const std::string scaled = add("Mul", {real, number(step, DType::f64)});
    const std::string moved = add("Add", {scaled, number(start, DType::f64)});
    return add("Cast", {moved}, {{"to", int64_t{data_type_of(dtype)}}});
  }
  std::vector<double> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(start + static_cast<double>(i) * step);
  return constant(TensorData(values, {count}).cast(dtype));
}

std::string Writer::reshaped(const std::string& x, const Shape& shape) {
  Attributes attributes;
  if (shape.contains(0)) attributes.push_back({"allowzero", int64_t{1}});
  return add("Reshape", {x, ints(shape.to_vector())}, attributes);
}
std::string Writer::permuted(const std::string& x, const Dims& dims) {
  return add("Transpose", {x}, {{"perm", dims.to_vector()}});
}
std::string Writer::sliced(const std::string& x, int dim, int64_t start, int64_t end,
                           int64_t step) {
  return add("Slice", {x, ints({start}), ints({end}), ints({dim}), ints({step})});
}

// ---- What the model takes and gives

namespace {
wire::ValueInfo described(const std::string& name, const graph::Value& value) {
  wire::TensorShape shape;
  for (const int64_t d : value.shape) shape.dim.push_back({d, ""});
  return {name, {{{{data_type_of(value.dtype), {std::move(shape)}}}}}};
}
}  // namespace

void Writer::add_inputs() {
  for (const ValueId id : graph_.inputs) {
    names_[id] = own(graph_[id].name);
    body_.input.push_back(described(names_[id], graph_[id]));
  }
}

// Each output has its own name, whatever the value is called within.
void Writer::add_outputs(const Names& names) {
  for (size_t i = 0; i < names.size(); ++i) {
    wire::Node& node = body_.node.emplace_back();
    node.op_type = "Identity";
    node.name = "give_" + output_names_[i];
    node.input = {names[i]};
    node.output = {output_names_[i]};
    body_.output.push_back(described(output_names_[i], graph_[graph_.outputs[i]]));
  }
}

void Writer::prune() {
  std::set<std::string> needed(output_names_.begin(), output_names_.end());
  std::vector<wire::Node> kept;
  for (auto node = body_.node.rbegin(); node != body_.node.rend(); ++node) {
    bool used = false;
    for (const std::string& name : node->output) used = used || needed.contains(name);
    if (!used) continue;
    needed.insert(node->input.begin(), node->input.end());
    kept.push_back(std::move(*node));
  }
  body_.node.assign(std::make_move_iterator(kept.rbegin()), std::make_move_iterator(kept.rend()));
  std::erase_if(body_.initializer,
                [&](const wire::Tensor& tensor) { return !needed.contains(tensor.name); });
}

}  // namespace kiln::onnx
