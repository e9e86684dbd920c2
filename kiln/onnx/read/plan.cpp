// From names to slots.
#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "kiln/core/utf8.h"
#include "kiln/onnx/model.h"
#include "kiln/onnx/read/program.h"

namespace kiln::onnx {

namespace {

constexpr int kMostNested = 32;                 // graphs in graphs, and functions in functions
constexpr size_t kMostSteps = size_t{1} << 18;  // what functions become when they are inlined
constexpr size_t kMostCopied = size_t{1} << 28;

std::string label(const wire::Node& node, size_t n) {
  return concat("node ", n, node.name.empty() ? "" : " '" + printable(node.name, 60) + "'", " (",
                printable(node.op_type, 40), ")");
}

bool is_default(const std::string& domain) { return domain.empty() || domain == "ai.onnx"; }

// Whether a float that a node takes here is a weight, and not a number that says what it does.
bool is_weight(const std::string& op, size_t input) {
  static const std::set<std::string> layers = {"Conv",
                                               "ConvTranspose",
                                               "Gemm",
                                               "MatMul",
                                               "Add",
                                               "Mul",
                                               "Sub",
                                               "Div",
                                               "LayerNormalization",
                                               "InstanceNormalization",
                                               "GroupNormalization",
                                               "RMSNormalization",
                                               "SimplifiedLayerNormalization",
                                               "PRelu",
                                               "LSTM",
                                               "GRU",
                                               "RNN",
                                               "Gather",
                                               "Identity",
                                               "Transpose",
                                               "Reshape",
                                               "Unsqueeze",
                                               "Squeeze",
                                               "Concat",
                                               "Expand",
                                               "Slice",
                                               "Cast",
                                               "Split",
                                               "Einsum"};
  if (op == "BatchNormalization") return input == 1 || input == 2;
  if (op == "com.microsoft.RotaryEmbedding") return false;
  return layers.contains(op) || op.starts_with("com.microsoft.");
}

class Scope {
 public:
  explicit Scope(const Scope* outer) : outer_(outer) {}

  // The slot of a name, -1 of an absent input of a function, nothing when it is unknown.
  const int* find(const std::string& name) const {
    for (const Scope* s = this; s != nullptr; s = s->outer_) {
      const auto found = s->slots_.find(name);
      if (found != s->slots_.end()) return &found->second;
    }
    return nullptr;
  }
  bool has_own(const std::string& name) const { return slots_.contains(name); }
  void add(const std::string& name, int slot, const char* what) {
    if (!slots_.try_emplace(name, slot).second) {
      throw_error<ValueError>(what, " '", printable(name, 60), "' is there twice");
    }
  }

 private:
  const Scope* outer_;
  std::unordered_map<std::string, int> slots_;
};

// Where nodes stand: in a model, or in a function with the attributes of a call.
struct Place {
  int version = 0;
  const wire::Function* function = nullptr;
  const wire::Node* call = nullptr;
  std::string where = {};  // "node 3 (Loop): "
  int depth = 0;
};

class Planner {
 public:
  Planner(Program& program, ExternalData& data) : program_(program), data_(data) {}
  void plan();

 private:
  int slot() { return program_.slots++; }
  Tensor initializer(wire::Tensor& tensor);
  void add_nodes(std::vector<wire::Node>& nodes, Scope& scope, Block& block, const Place& place);
  void add_node(wire::Node& node, size_t n, Scope& scope, Block& block, const Place& place);
  void add_call(wire::Function& function, const wire::Node& node, const std::vector<int>& inputs,
                Scope& scope, Block& block, const Place& place, const std::string& where);
  std::unique_ptr<Block> inner(wire::Graph& graph, const Scope& outer, const Place& place,
                               const std::string& where);
  void find_outputs(const std::vector<wire::ValueInfo>& declared, const Scope& scope, Block& block);
  wire::Node& with_attributes(wire::Node& node, const Place& place);
  void count_uses(const Block& block);

  Program& program_;
  ExternalData& data_;
  std::map<std::tuple<std::string, std::string, std::string>, wire::Function*> functions_;
  std::map<const wire::Tensor*, Tensor> made_;  // initializers of inner graphs
  std::vector<char> weight_, used_;             // by slot
  size_t steps_ = 0, copied_ = 0;
};

// What a copy of a node's attributes holds, about.
size_t bytes_of(const std::vector<wire::Attribute>& attributes);
size_t bytes_of(const wire::Tensor& t) {
  size_t out = t.raw_data.size() + t.float_data.size() * 4 + t.double_data.size() * 8;
  out += (t.int32_data.size() + t.int64_data.size() + t.uint64_data.size()) * 8;
  for (const std::string& text : t.string_data) out += 32 + text.size();
  return out + sizeof t;
}
size_t bytes_of(const wire::Graph& g) {
  size_t out = sizeof g;
  for (const wire::Tensor& t : g.initializer) out += bytes_of(t);
  for (const wire::Node& n : g.node) out += sizeof n + bytes_of(n.attribute);
  return out;
}
size_t bytes_of(const std::vector<wire::Attribute>& attributes) {
  size_t out = 0;
  for (const wire::Attribute& a : attributes) {
    out += sizeof a + a.s.size() + 4 * a.floats.size() + 8 * a.ints.size();
    for (const std::string& text : a.strings) out += 32 + text.size();
    for (const wire::Tensor& t : a.t) out += bytes_of(t);
    for (const wire::Tensor& t : a.tensors) out += bytes_of(t);
    for (const wire::Graph& g : a.g) out += bytes_of(g);
    for (const wire::Graph& g : a.graphs) out += bytes_of(g);
  }
  return out;
}

int version_of(const std::vector<wire::OperatorSet>& sets, int otherwise) {
  int version = otherwise;
  for (const wire::OperatorSet& set : sets) {
    if (is_default(set.domain)) {
      version = static_cast<int>(std::clamp<int64_t>(set.version, -1, 1 << 20));
    }
  }
  return version;
}

void check_version(int version) {
  if (version < kOldestOpset || version > kNewestOpset) {
    throw_error<NotImplementedError>("operator set ", version, "; expected ", kOldestOpset, " to ",
                                     kNewestOpset);
  }
}

Tensor Planner::initializer(wire::Tensor& tensor) {
  try {
    data_.fill(tensor);
    Tensor x = tensor_of(tensor);
    tensor.raw_data = {};
    return x;
  } catch (const NotImplementedError& error) {
    throw_error<NotImplementedError>("initializer '", printable(tensor.name, 60),
                                     "': ", error.what());
  } catch (const Error& error) {
    throw_error<ValueError>("initializer '", printable(tensor.name, 60), "': ", error.what());
  }
}

void Planner::find_outputs(const std::vector<wire::ValueInfo>& declared, const Scope& scope,
                           Block& block) {
  for (const wire::ValueInfo& info : declared) {
    const int* found = scope.find(info.name);
    if (found == nullptr) {
      throw_error<ValueError>("no node makes the output '", printable(info.name, 60), "'");
    }
    block.outputs.push_back(*found);
    block.declared.push_back(&info);
  }
}

// A node of a function with what its attributes refer to.
wire::Node& Planner::with_attributes(wire::Node& node, const Place& place) {
  const auto refers = [](const wire::Attribute& a) { return !a.reference.empty(); };
  if (place.function == nullptr || std::ranges::none_of(node.attribute, refers)) return node;
  wire::Node& out = program_.made.emplace_back();
  out = {node.input, node.output, node.name, node.op_type, {}, node.domain, node.overload};
  for (const wire::Attribute& a : node.attribute) {
    if (!refers(a)) {
      out.attribute.push_back(a);
      continue;
    }
    const auto by_name = [&](const wire::Attribute& b) { return b.name == a.reference; };
    const auto given = std::ranges::find_if(place.call->attribute, by_name);
    const auto otherwise = std::ranges::find_if(place.function->defaults, by_name);
    const bool is_given = given != place.call->attribute.end();
    if (!is_given && otherwise == place.function->defaults.end()) continue;  // it is absent, too
    out.attribute.push_back(is_given ? *given : *otherwise);
    out.attribute.back().name = a.name;
  }
  copied_ += bytes_of(out.attribute);
  if (copied_ > kMostCopied) throw_error<ValueError>("functions that become too many bytes");
  return out;
}

std::unique_ptr<Block> Planner::inner(wire::Graph& graph, const Scope& outer, const Place& place,
                                      const std::string& where) {
  if (place.depth >= kMostNested) throw_error<ValueError>("graphs nested more than 32 deep");
  auto block = std::make_unique<Block>();
  Scope scope(&outer);
  for (wire::Tensor& tensor : graph.initializer) {
    const int at = slot();
    scope.add(tensor.name, at, "initializer");
    const auto [made, is_new] = made_.try_emplace(&tensor);  // a function may stand in many places
    if (is_new) made->second = initializer(tensor);
    block->constants.emplace_back(at, made->second);
  }
  for (const wire::ValueInfo& info : graph.input) {
    if (scope.has_own(info.name)) continue;
    block->inputs.push_back(slot());
    scope.add(info.name, block->inputs.back(), "input");
  }
  Place here = place;
  here.where = where + ": ";
  ++here.depth;
  add_nodes(graph.node, scope, *block, here);
  try {
    find_outputs(graph.output, scope, *block);
  } catch (const ValueError& error) {
    throw_error<ValueError>(where, ": ", error.what());
  }
  return block;
}

void Planner::add_call(wire::Function& function, const wire::Node& node,
                       const std::vector<int>& inputs, Scope& scope, Block& block,
                       const Place& place, const std::string& where) {
  if (place.depth >= kMostNested) {
    throw_error<ValueError>(where, ": functions nested more than 32 deep");
  }
  if (inputs.size() > function.input.size() || node.output.size() > function.output.size()) {
    throw_error<ValueError>(where, ": got ", inputs.size(), " inputs and ", node.output.size(),
                            " outputs; the function has ", function.input.size(), " and ",
                            function.output.size());
  }
  Scope own(nullptr);
  for (size_t i = 0; i < function.input.size(); ++i) {
    own.add(function.input[i], i < inputs.size() ? inputs[i] : -1, "input");
  }
  Place here{version_of(function.opset_import, place.version), &function, &node, where + ": ",
             place.depth + 1};
  check_version(here.version);
  add_nodes(function.node, own, block, here);
  for (size_t i = 0; i < node.output.size(); ++i) {
    if (node.output[i].empty()) continue;
    const int* made = own.find(function.output[i]);
    if (made == nullptr) {
      throw_error<ValueError>(where, ": the function does not make '",
                              printable(function.output[i], 60), "'");
    }
    scope.add(node.output[i], *made < 0 ? slot() : *made, "value");
  }
}

void Planner::add_node(wire::Node& given, size_t n, Scope& scope, Block& block,
                       const Place& place) {
  if (++steps_ > kMostSteps) throw_error<ValueError>("functions that become too many nodes");
  wire::Node& node = with_attributes(given, place);
  std::string where = place.where + label(node, n);
  std::vector<int> inputs;
  for (const std::string& name : node.input) {
    const int* found = name.empty() ? nullptr : scope.find(name);
    if (!name.empty() && found == nullptr) {
      throw_error<ValueError>(where, ": nothing before it makes '", printable(name, 60),
                              "'; expected nodes in order, without circles");
    }
    inputs.push_back(found == nullptr ? -1 : *found);
  }
  const std::string domain = is_default(node.domain) ? "" : node.domain;
  const auto function = functions_.find({domain, node.op_type, node.overload});
  if (function != functions_.end()) {
    return add_call(*function->second, node, inputs, scope, block, place, where);
  }
  const Operator* op = find_operator(domain, node.op_type);
  if (op == nullptr) {
    throw_error<NotImplementedError>(where, ": Kiln lacks this operator",
                                     domain.empty() ? "" : " of domain ", printable(domain, 40));
  }
  Step step{&node, op, place.version, std::move(inputs), {}, {}, where};
  for (wire::Attribute& a : node.attribute) {
    for (wire::Graph& graph : a.g)
      step.blocks.emplace_back(a.name, inner(graph, scope, place, where));
  }
  for (const std::string& name : node.output) {
    step.outputs.push_back(name.empty() ? -1 : slot());
    if (!name.empty()) scope.add(name, step.outputs.back(), "value");
  }
  block.steps.push_back(std::move(step));
}

void Planner::add_nodes(std::vector<wire::Node>& nodes, Scope& scope, Block& block,
                        const Place& place) {
  for (size_t n = 0; n < nodes.size(); ++n) add_node(nodes[n], n, scope, block, place);
}

void Planner::count_uses(const Block& block) {
  for (const Step& step : block.steps) {
    for (size_t i = 0; i < step.inputs.size(); ++i) {
      if (step.inputs[i] < 0) continue;
      const auto at = static_cast<size_t>(step.inputs[i]);
      const bool weight = is_weight(step.op->name, i);
      weight_[at] = static_cast<char>(weight && (used_[at] == 0 || weight_[at] != 0));
      used_[at] = 1;
    }
    for (const auto& [name, inside] : step.blocks) count_uses(*inside);
  }
}

void Planner::plan() {
  wire::Model& file = program_.file;
  if (file.graph.size() != 1) throw_error<ValueError>("expected one graph; got none");
  const int version = version_of(file.opset_import, 0);
  check_version(version);
  wire::Graph& graph = file.graph[0];
  data_.fill_attributes(graph.node);
  for (wire::Function& f : file.function) {
    data_.fill_attributes(f.node);
    functions_[{is_default(f.domain) ? "" : f.domain, f.name, f.overload}] = &f;
  }
  Block& block = program_.main;
  Scope scope(nullptr);
  std::vector<int> held;
  for (const wire::Tensor& tensor : graph.initializer) {
    held.push_back(slot());
    scope.add(tensor.name, held.back(), "initializer");
  }
  for (const wire::ValueInfo& info : graph.input) {
    if (scope.has_own(info.name)) continue;  // an initializer is its default
    block.inputs.push_back(slot());
    scope.add(info.name, block.inputs.back(), "input");
    program_.inputs.push_back(info.name);
  }
  add_nodes(graph.node, scope, block, Place{.version = version});
  find_outputs(graph.output, scope, block);
  for (const wire::ValueInfo& info : graph.output) program_.outputs.push_back(info.name);
  weight_.resize(static_cast<size_t>(program_.slots));
  used_.resize(static_cast<size_t>(program_.slots));
  count_uses(block);
  for (size_t i = 0; i < held.size(); ++i) {
    const std::string name = graph.initializer[i].name;
    Tensor x = initializer(graph.initializer[i]);
    if (x.is_floating_point() && x.dim() > 0 && weight_[static_cast<size_t>(held[i])] != 0) {
      program_.parameters.emplace_back(name, x.requires_grad_());
      program_.parameter_slots.push_back(held[i]);
    } else {
      block.constants.emplace_back(held[i], x);
    }
    graph.initializer[i] = {};  // it is a tensor now
  }
}

}  // namespace

void plan(Program& program, ExternalData& data) { Planner(program, data).plan(); }

}  // namespace kiln::onnx
