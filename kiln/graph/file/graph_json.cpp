#include "kiln/graph/file/graph_json.h"

#include <algorithm>
#include <unordered_map>

#include "kiln/backend/dispatch/views.h"
#include "kiln/backend/meta/meta_tensor.h"
#include "kiln/core/utf8.h"
#include "kiln/graph/file/attribute_json.h"
#include "kiln/graph/file/rules.h"
#include "kiln/graph/file/signature.h"

namespace kiln::graph {

namespace {

// What files are written as, and the newest that is read.
constexpr int64_t kVersion = 1;
constexpr Device kNowhere{kMeta};

// ---- Writing

class Writer {
 public:
  Writer(const Graph& graph, const std::vector<std::string>& tensors,
         const std::vector<std::string>& outputs)
      : graph_(graph), tensors_(tensors), outputs_(outputs) {}

  Json run() {
    Json out = Json::Object{};
    out.add("version", kVersion);
    out.add("inputs", inputs());
    out.add("constants", constants());
    Json nodes = Json::Array{};
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      const Node& node = graph_.nodes[n];
      if (node.kind == NodeKind::check) continue;  // rows look at their indices themselves
      try {
        nodes.add(node_json(node));
      } catch (const ValueError& error) {
        throw_error<ValueError>("save: node ", n, " (", node.name, "): ", error.what());
      }
    }
    out.add("nodes", std::move(nodes));
    Json outputs = Json::Array{};
    for (size_t i = 0; i < graph_.outputs.size(); ++i) {
      outputs.add(Json::Object{{"name", outputs_[i]}, {"value", number(graph_.outputs[i])}});
    }
    out.add("outputs", std::move(outputs));
    return out;
  }

 private:
  Json description(const Value& value) {
    Json out = Json::Object{};
    out.add("dtype", name_of(value.dtype));
    out.add("shape", to_json(Attribute(value.shape)));
    return out;
  }

  Json inputs() {
    Json out = Json::Array{};
    for (const ValueId id : graph_.inputs) {
      give(id);
      Json one = description(graph_[id]);
      one.add("name", graph_[id].name);
      out.add(std::move(one));
    }
    return out;
  }

  Json constants() {
    Json out = Json::Array{};
    const std::vector<ValueId> ids = graph_.constants();
    for (size_t i = 0; i < ids.size(); ++i) {
      give(ids[i]);
      Json one = description(graph_[ids[i]]);
      one.add("tensor", tensors_[i]);
      out.add(std::move(one));
    }
    return out;
  }

  Json node_json(const Node& node) {
    Json out = Json::Object{};
    if (node.kind != NodeKind::as_strided && node.kind != NodeKind::row) {
      throw_error<ValueError>("it runs on the host or reads values; expected rows of the op table");
    }
    if (node.kind == NodeKind::row && !has_rule(node.row)) {
      throw_error<ValueError>(
          "no file holds this row; expected none that draws random numbers (eval() turns dropout "
          "off), steps an optimizer, differentiates a recurrence or reshapes quantized tensors");
    }
    out.add("row", node.name);
    Json arguments = Json::Array{};
    bool in_place = false;
    for (size_t i = 0; i < node.arguments.size(); ++i) {
      const Argument& a = node.arguments[i];
      for (const Operand& o : a.operands) {
        if (o.in_place && i != 0)
          throw_error<ValueError>("it writes to another than its first operand");
        in_place = in_place || o.in_place;
      }
      if (a.kind == Argument::Kind::attribute) {
        arguments.add(to_json(a.attribute));
      } else if (a.kind == Argument::Kind::tensor) {
        arguments.add(number(a.operands[0].value));
      } else {
        Json list = Json::Array{};
        for (const Operand& o : a.operands) list.add(number(o.value));
        arguments.add(std::move(list));
      }
    }
    out.add("arguments", std::move(arguments));
    if (in_place) out.add("in_place", true);
    Json results = Json::Array{};
    for (const ValueId id : node.results) {
      if (!numbers_.contains(id)) give(id);
      results.add(number(id));
    }
    out.add("results", std::move(results));
    return out;
  }

  void give(ValueId id) { numbers_.emplace(id, static_cast<int64_t>(numbers_.size())); }
  Json number(ValueId id) {
    if (id == kNoValue) return {};
    const auto found = numbers_.find(id);
    if (found == numbers_.end()) throw_error<ValueError>("it reads a value that nothing makes");
    return found->second;
  }

  const Graph& graph_;
  const std::vector<std::string>& tensors_;
  const std::vector<std::string>& outputs_;
  std::unordered_map<ValueId, int64_t> numbers_;
};

// ---- Reading

const Json& member(const Json& object, const char* key) {
  const Json* found = object.find(key);
  if (found == nullptr) throw_error<ValueError>("expected a member '", key, "'");
  return *found;
}
const Json::Array& list_of(const Json& json) {
  const auto* found = json.as<Json::Array>();
  if (found == nullptr) throw_error<ValueError>("got ", json.describe(), "; expected a list");
  return *found;
}
const std::string& text_of(const Json& json) {
  const auto* found = json.as<std::string>();
  if (found == nullptr) throw_error<ValueError>("got ", json.describe(), "; expected a string");
  return *found;
}

class Reader {
 public:
  explicit Reader(const std::function<TensorInfo(const std::string&)>& tensors)
      : tensors_(tensors) {}

  StoredGraph run(const Json& json) {
    if (json.as<Json::Object>() == nullptr) throw_error<ValueError>("expected an object");
    const int64_t version = integer_of(member(json, "version"));
    if (version != kVersion) {
      throw_error<ValueError>("got version ", version, "; expected version ", kVersion,
                              ": a newer Kiln wrote it");
    }
    for (const Json& one : list_of(member(json, "inputs"))) {
      const ValueId id = add(described(one), Origin::input);
      graph()[id].name = text_of(member(one, "name"));
      graph().inputs.push_back(id);
    }
    for (const Json& one : list_of(member(json, "constants"))) read_constant(one);
    const Json::Array& nodes = list_of(member(json, "nodes"));
    for (size_t n = 0; n < nodes.size(); ++n) {
      std::string row;
      try {
        row = text_of(member(nodes[n], "row"));
        read_node(nodes[n], row);
      } catch (const Error& error) {
        throw_error<ValueError>("node ", n, " (", printable(row), "): ", error.what());
      }
    }
    for (const Json& one : list_of(member(json, "outputs"))) {
      out_.outputs.push_back(text_of(member(one, "name")));
      graph().outputs.push_back(known(member(one, "value")));
    }
    return std::move(out_);
  }

 private:
  Graph& graph() { return out_.graph; }

  TensorInfo described(const Json& json) {
    TensorInfo out;
    out.shape = shape_of(member(json, "shape"));
    checked_numel(out.shape);
    try {
      out.dtype = parse_dtype(text_of(member(json, "dtype")));
    } catch (const DTypeError& error) {
      throw ValueError(error.what());
    }
    if (kind_of(out.dtype) == Kind::quantized || out.dtype == DType::c64 ||
        out.dtype == DType::c128) {
      throw_error<ValueError>("got dtype ", out.dtype, "; expected a plain one");
    }
    return out;
  }

  void read_constant(const Json& json) {
    const std::string& name = text_of(member(json, "tensor"));
    const TensorInfo said = described(json), there = tensors_(name);
    if (!(said.shape == there.shape) || said.dtype != there.dtype) {
      throw_error<ValueError>("constant '", printable(name), "': the file's tensor is ",
                              there.dtype, " ", there.shape, "; expected ", said.dtype, " ",
                              said.shape);
    }
    graph()[add(said, Origin::constant)].name = name;
    out_.tensors.push_back(name);
  }

  ErasedTensor stand_in(const Shape& shape, DType dtype) {
    switch (kind_of(dtype)) {
      case Kind::integer:
        return Dispatch::int_empty(shape, dtype, kNowhere);
      case Kind::boolean:
        return Dispatch::bool_empty(shape, kNowhere);
      default:
        return Dispatch::float_empty(shape, dtype, kNowhere);
    }
  }

  ValueId add(const TensorInfo& info, Origin origin) {
    return add(stand_in(info.shape, info.dtype), origin);
  }
  ValueId add(ErasedTensor x, Origin origin) {
    const auto id = static_cast<ValueId>(graph().values.size());
    Value& value = graph().values.emplace_back();
    value.shape = x->shape();
    value.dtype = x->dtype();
    value.origin = origin;
    value.memory = id;
    if (const Layout layout = layout_of(x)) {
      value.memory = memories_.try_emplace(layout.storage, id).first->second;
      value.set_layout(layout);
    }
    frame_.slots.push_back(std::move(x));
    return id;
  }

  ValueId known(const Json& json) {
    const int64_t id = integer_of(json);
    if (id < 0 || id >= static_cast<int64_t>(graph().values.size())) {
      throw_error<ValueError>("got value ", id, "; expected one of the ", graph().values.size(),
                              " before it");
    }
    return static_cast<ValueId>(id);
  }

  Operand operand(const Json& json, Kind kind) {
    const ValueId id = known(json);
    if (kind_of(graph()[id].dtype) != kind) {
      throw_error<ValueError>("got a tensor of dtype ", graph()[id].dtype,
                              "; expected another kind of tensor");
    }
    return {id, false, false};
  }

  Argument argument(const Json& json, const Parameter& parameter) {
    Argument out;
    switch (parameter.type) {
      case Parameter::Type::attribute:
        out.attribute = attribute_of(json, parameter.attribute);
        break;
      case Parameter::Type::optional:
        out.kind = Argument::Kind::tensor;
        out.operands.push_back(json.is_null() ? Operand{} : operand(json, parameter.kind));
        break;
      case Parameter::Type::tensor:
        out.kind = Argument::Kind::tensor;
        out.operands.push_back(operand(json, parameter.kind));
        break;
      default:
        out.kind = Argument::Kind::list;
        for (const Json& one : list_of(json)) {
          out.operands.push_back(operand(one, parameter.kind));
        }
    }
    return out;
  }

  void read_node(const Json& json, const std::string& name) {
    Node node;
    node.name = name;
    const Json::Array& arguments = list_of(member(json, "arguments"));
    const Json::Array& results = list_of(member(json, "results"));
    if (name == "as_strided") return read_view(std::move(node), arguments, results);
    node.row = row_of(name);
    if (node.row < 0) throw_error<ValueError>("no such row");
    if (!has_rule(node.row)) throw_error<ValueError>("no file holds this row");
    const std::vector<Parameter>& parameters = parameters_of(node.row);
    if (arguments.size() != parameters.size()) {
      throw_error<ValueError>("got ", arguments.size(), " arguments; expected ", parameters.size());
    }
    for (size_t i = 0; i < parameters.size(); ++i) {
      try {
        node.arguments.push_back(argument(arguments[i], parameters[i]));
      } catch (const ValueError& error) {
        throw_error<ValueError>("argument ", i, ": ", error.what());
      }
    }
    const Json* writes = json.find("in_place");
    const bool in_place = writes != nullptr && *writes == Json(true);
    if (in_place) {
      if (node.arguments[0].kind != Argument::Kind::tensor) {
        throw_error<ValueError>("got in_place for a row that takes no tensor first");
      }
      if (parameters[0].kind == Kind::quantized) {
        throw_error<ValueError>("got in_place for a quantized tensor");
      }
      node.arguments[0].operands[0].in_place = true;
    }
    check_row(graph(), node);
    const int count = results_of(node.row);
    finish(std::move(node), results, count, in_place);
  }

  // A window of x's memory, checked against how much there is.
  void read_view(Node node, const Json::Array& arguments, const Json::Array& results) {
    node.kind = NodeKind::as_strided;
    if (arguments.size() != 4) throw_error<ValueError>("expected four arguments");
    const ValueId id = known(arguments[0]);
    if (kind_of(graph()[id].dtype) == Kind::quantized) {
      throw_error<ValueError>("got a quantized tensor; expected one whose elements lie in memory");
    }
    node.arguments.resize(4);
    node.arguments[0].kind = Argument::Kind::tensor;
    node.arguments[0].operands = {{id, false, false}};
    const Shape shape = shape_of(arguments[1]), strides = shape_of(arguments[2]);
    const int64_t offset = integer_of(arguments[3]);
    node.arguments[1].attribute = shape;
    node.arguments[2].attribute = strides;
    node.arguments[3].attribute = offset;
    check_window(shape, strides, offset, frame_[id]);
    finish(std::move(node), results, 1, false);
  }

  void finish(Node node, const Json::Array& results, int count, bool in_place) {
    if (static_cast<int>(results.size()) != count) {
      throw_error<ValueError>("got ", results.size(), " results; expected ", count);
    }
    std::vector<ErasedTensor> made = infer(node);
    for (size_t i = 0; i < made.size(); ++i) {
      const int64_t said = integer_of(results[i]);
      ValueId id = kNoValue;
      if (said == static_cast<int64_t>(graph().values.size())) {
        id = add(std::move(made[i]), Origin::node);
      } else {
        id = known(results[i]);
        const bool same = in_place && id == node.arguments[0].operands[0].value &&
                          graph()[id].shape == made[i]->shape() &&
                          graph()[id].dtype == made[i]->dtype();
        if (!same) throw_error<ValueError>("got result ", said, "; expected the next number");
      }
      node.results.push_back(id);
    }
    graph().nodes.push_back(std::move(node));
  }

  // What the node results in, computed on shapes alone.
  std::vector<ErasedTensor> infer(const Node& node) {
    if (node.kind == NodeKind::as_strided) {
      const ErasedTensor& x = frame_[node.arguments[0].operands[0].value];
      return {kiln::detail::views_of(x).as_strided(x, std::get<Shape>(node.arguments[1].attribute),
                                                   std::get<Shape>(node.arguments[2].attribute),
                                                   std::get<int64_t>(node.arguments[3].attribute))};
    }
    Node meta;
    meta.row = node.row;
    meta.arguments = node.arguments;
    for (Argument& a : meta.arguments) {
      if (std::holds_alternative<Device>(a.attribute)) a.attribute = kNowhere;
      for (Operand& o : a.operands) o.in_place = false;
    }
    const size_t values = frame_.slots.size();
    const auto results = static_cast<size_t>(results_of(node.row));
    frame_.slots.resize(values + results);
    for (size_t i = 0; i < results; ++i) meta.results.push_back(static_cast<ValueId>(values + i));
    struct Shrink {
      std::vector<ErasedTensor>& slots;
      size_t to;
      ~Shrink() { slots.resize(to); }
    } shrink{frame_.slots, values};
    run_row(meta, frame_);
    return {frame_.slots.begin() + static_cast<int64_t>(values), frame_.slots.end()};
  }

  const std::function<TensorInfo(const std::string&)>& tensors_;
  StoredGraph out_;
  Frame frame_;  // of tensors without values
  std::unordered_map<const void*, int32_t> memories_;
};

}  // namespace

Json to_json(const Graph& graph, const std::vector<std::string>& tensors,
             const std::vector<std::string>& outputs) {
  return Writer(graph, tensors, outputs).run();
}

StoredGraph graph_of(const Json& json,
                     const std::function<TensorInfo(const std::string&)>& tensors) {
  return Reader(tensors).run(json);
}

}  // namespace kiln::graph
