// The program of a file: its graph, what its signature says of inputs and outputs, and its modules.
#include <algorithm>

#include "kiln/core/utf8.h"
#include "kiln/pt2/archive.h"
#include "kiln/pt2/fields.h"
#include "kiln/pt2/graph_planner.h"

namespace kiln::pt2 {

namespace {

constexpr int64_t kMajorVersion = 8;
constexpr size_t kMostModules = 1 << 16;

using Tensors = std::map<std::string, Tensor>;

class Planner {
 public:
  Planner(Program& program, const Json& file, Tensors weights, Tensors constants)
      : program_(program),
        file_(file),
        module_(member(file, "graph_module")),
        graph_(member(module_, "graph")),
        weights_(std::move(weights)),
        constants_(std::move(constants)),
        nodes_(program) {}

  void plan();

 private:
  void check_version() const;
  void add_input(const Json& spec);
  void add_held(const std::string& argument, const std::string& name, Held::Kind kind,
                bool persistent);
  void add_user_input(const Json& argument);
  void add_output(const Json& spec);
  void add_mutation(const Json& value, bool is_held, const std::string& target);
  void find_trees();
  void find_modules();

  Program& program_;
  const Json& file_;
  const Json& module_;
  const Json& graph_;
  Tensors weights_, constants_;
  GraphPlanner nodes_;
  GraphPlanner::Scope scope_;
};

void Planner::check_version() const {
  const Json& version = member(file_, "schema_version");
  const int64_t major = integer_of(member(version, "major"), "major");
  if (major != kMajorVersion) {
    throw_error<NotImplementedError>("schema version ", major, ".",
                                     integer_of(member(version, "minor"), "minor"), "; expected ",
                                     kMajorVersion, ".x");
  }
}

const std::string& name_of(const Json& argument) {
  return text_of(member(argument, "name"), "name");
}

void Planner::add_held(const std::string& argument, const std::string& name, Held::Kind kind,
                       bool persistent) {
  Tensors& first = kind == Held::Kind::constant || !persistent ? constants_ : weights_;
  Tensors& second = &first == &weights_ ? constants_ : weights_;
  auto found = first.find(name);
  if (found == first.end() && (found = second.find(name)) == second.end()) {
    throw_error<ValueError>("the archive does not hold '", printable(name, 80), "'");
  }
  Tensor& x = found->second;
  if (kind == Held::Kind::parameter && x.is_floating_point() && !x.requires_grad()) {
    const Json* metas = find(graph_, "tensor_values");
    const Json* meta = metas == nullptr ? nullptr : find(*metas, argument.c_str());
    const Json* wants = meta == nullptr ? nullptr : find(*meta, "requires_grad");
    if (wants == nullptr || bool_of(*wants, "requires_grad")) x.requires_grad_();
  }
  program_.held.push_back({name, kind, persistent, x});
  program_.held_slots.push_back(nodes_.define(argument, scope_));
}

Value constant_of(const Json& value) {
  const auto& [kind, inside] = only_member(value, "a constant");
  if (kind == "as_none") return {};
  if (kind == "as_int") return {Scalar(integer_of(inside, "as_int"))};
  if (kind == "as_float") return {Scalar(number_of(inside, "as_float"))};
  if (kind == "as_bool") return {Scalar(bool_of(inside, "as_bool"))};
  if (kind == "as_string") return {text_of(inside, "as_string")};
  throw_error<ValueError>("a constant input is '", printable(kind, 40), "'");
}

void Planner::add_user_input(const Json& argument) {
  const auto& [kind, value] = only_member(argument, "an input");
  Program::Input input;
  if (kind == "as_tensor") {
    input.name = name_of(value);
    input.slot = nodes_.define(input.name, scope_);
    input.is_tensor = true;
    const Json& meta = member(member(graph_, "tensor_values"), input.name.c_str());
    input.dtype = dtype_of_number(integer_of(member(meta, "dtype"), "dtype"));
    input.shape = declared_shape(member(meta, "sizes"));
  } else if (kind.starts_with("as_sym_") && find(value, "as_name") != nullptr) {
    input.name = text_of(member(value, "as_name"), "as_name");
    input.slot = nodes_.define(input.name, scope_);
  } else {
    input.constant = constant_of(argument);
  }
  program_.inputs.push_back(std::move(input));
}

void Planner::add_input(const Json& spec) {
  const auto& [kind, value] = only_member(spec, "an input");
  if (kind == "user_input") return add_user_input(member(value, "arg"));
  if (kind == "constant_input") {
    const Json* given = find(value, "value");
    program_.inputs.push_back(
        {.name = name_of(value), .constant = given == nullptr ? Value{} : constant_of(*given)});
    return;
  }
  if (kind == "parameter") {
    return add_held(name_of(member(value, "arg")),
                    text_of(member(value, "parameter_name"), "parameter_name"),
                    Held::Kind::parameter, true);
  }
  if (kind == "buffer") {
    return add_held(name_of(member(value, "arg")),
                    text_of(member(value, "buffer_name"), "buffer_name"), Held::Kind::buffer,
                    bool_of(member(value, "persistent"), "persistent"));
  }
  if (kind == "tensor_constant") {
    return add_held(name_of(member(value, "arg")),
                    text_of(member(value, "tensor_constant_name"), "tensor_constant_name"),
                    Held::Kind::constant, false);
  }
  throw_error<NotImplementedError>("an input of kind '", printable(kind, 40), "'");
}

void Planner::add_mutation(const Json& value, bool is_held, const std::string& target) {
  Program::Mutation out;
  const std::string& name = name_of(member(value, "arg"));
  const auto made = scope_.find(name);
  if (made == scope_.end()) {
    throw_error<ValueError>("no node makes '", printable(name, 60), "'");
  }
  out.slot = made->second;
  out.is_held = is_held;
  const auto place = [&](const auto& all) {
    const auto found = std::ranges::find(all, target, [](const auto& one) { return one.name; });
    if (found == all.end()) {
      throw_error<ValueError>("there is no '", printable(target, 60), "' to write to");
    }
    return static_cast<size_t>(found - all.begin());
  };
  out.target = is_held ? place(program_.held) : place(program_.inputs);
  if (!is_held && !program_.inputs[out.target].is_tensor) {
    throw_error<ValueError>("the input '", printable(target, 60), "' is no tensor to write to");
  }
  program_.mutations.push_back(out);
}

void Planner::add_output(const Json& spec) {
  const auto& [kind, value] = only_member(spec, "an output");
  if (kind == "user_output") {
    const Json& argument = member(value, "arg");
    const auto& [what, inside] = only_member(argument, "an output");
    const Json* name = what == "as_tensor" ? find(inside, "name") : find(inside, "as_name");
    program_.outputs.push_back(
        {name == nullptr ? concat("output", program_.outputs.size()) : text_of(*name, "name"),
         nodes_.argument(argument, scope_, 0)});
  } else if (kind == "loss_output") {
    const std::string& name = name_of(member(value, "arg"));
    const auto made = scope_.find(name);
    if (made == scope_.end()) throw_error<ValueError>("no node makes '", printable(name, 60), "'");
    Argument argument;
    argument.slot = made->second;
    program_.outputs.push_back({name, std::move(argument)});
  } else if (kind == "buffer_mutation") {
    add_mutation(value, true, text_of(member(value, "buffer_name"), "buffer_name"));
  } else if (kind == "parameter_mutation") {
    add_mutation(value, true, text_of(member(value, "parameter_name"), "parameter_name"));
  } else if (kind == "user_input_mutation") {
    add_mutation(value, false, text_of(member(value, "user_input_name"), "user_input_name"));
  } else {
    throw_error<NotImplementedError>("an output of kind '", printable(kind, 40), "'");
  }
}

Tree row_of_leaves(size_t count) {
  Tree out;
  out.kind = Tree::Kind::tuple;
  out.type = "builtins.tuple";
  out.items.resize(count);
  return out;
}

void Planner::find_trees() {
  const size_t inputs = program_.inputs.size(), outputs = program_.outputs.size();
  program_.input_tree = row_of_leaves(2);
  program_.input_tree.items[0] = row_of_leaves(inputs);
  program_.input_tree.items[1] = {.kind = Tree::Kind::dict, .type = "builtins.dict"};
  program_.output_tree = row_of_leaves(outputs);
  const Json* calls = find(module_, "module_call_graph");
  if (calls == nullptr) return;
  for (const Json& entry : list_of(*calls, "module_call_graph")) {
    const Json* signature = find(entry, "signature");
    if (signature == nullptr || !text_of(member(entry, "fqn"), "fqn").empty()) continue;
    const Json* fields = find(module_, "treespec_namedtuple_fields");
    program_.input_tree = read_tree(member(*signature, "in_spec"), fields);
    program_.output_tree = read_tree(member(*signature, "out_spec"), fields);
    if (const Json* names = find(*signature, "forward_arg_names")) {
      for (const Json& name : list_of(*names, "forward_arg_names")) {
        program_.argument_names.push_back(text_of(name, "forward_arg_names"));
      }
    }
    break;
  }
  const auto check = [](const char* what, const Tree& tree, size_t count) {
    if (tree.leaves() != count) {
      throw_error<ValueError>("the tree of ", what, " has ", tree.leaves(), " leaves; expected ",
                              count);
    }
  };
  check("inputs", program_.input_tree, inputs);
  check("outputs", program_.output_tree, outputs);
  const Tree& given = program_.input_tree;
  if (given.items.size() != 2 || given.items[0].kind == Tree::Kind::dict ||
      given.items[0].kind == Tree::Kind::leaf || given.items[1].kind != Tree::Kind::dict) {
    throw_error<ValueError>("the tree of inputs is no tuple of arguments and keyword arguments");
  }
}

// "L__self___fc,fc,torch.nn.modules.linear.Linear;...": the modules in which a node stands.
void Planner::find_modules() {
  std::map<std::string, std::string> found;
  std::vector<std::string> order;
  for (const Json& node : list_of(member(graph_, "nodes"), "nodes")) {
    const Json* metadata = find(node, "metadata");
    const Json* stack = metadata == nullptr ? nullptr : find(*metadata, "nn_module_stack");
    const auto* text = stack == nullptr ? nullptr : stack->as<std::string>();
    if (text == nullptr) continue;
    for (size_t begin = 0; begin < text->size();) {
      const size_t end = std::min(text->find(';', begin), text->size());
      const std::string entry = text->substr(begin, end - begin);
      begin = end + 1;
      const size_t first = entry.find(','), last = entry.rfind(',');
      if (first == std::string::npos || last == first) continue;
      std::string path = entry.substr(first + 1, last - first - 1);
      path = path.substr(0, path.find('@'));  // its second call and so on
      const std::string type = entry.substr(entry.rfind('.') + 1);
      if (path.empty() || type.empty() || !is_utf8(path) || !is_utf8(type)) continue;
      if (order.size() < kMostModules && found.try_emplace(path, type).second) {
        order.push_back(path);
      }
    }
  }
  for (const std::string& path : order) program_.modules.emplace_back(path, found[path]);
}

void Planner::plan() {
  check_version();
  if (const Json* ranges = find(file_, "range_constraints")) {
    program_.ranges = declared_ranges(*ranges);
  }
  const Json& signature = member(module_, "signature");
  const Json::Array& specs = list_of(member(signature, "input_specs"), "input_specs");
  const size_t declared = list_of(member(graph_, "inputs"), "inputs").size();
  if (declared != specs.size()) {
    throw_error<ValueError>("the signature has ", specs.size(), " inputs; the graph has ",
                            declared);
  }
  for (size_t i = 0; i < specs.size(); ++i) {
    try {
      add_input(specs[i]);
    } catch (const NotImplementedError& error) {
      throw_error<NotImplementedError>("input ", i, ": ", error.what());
    } catch (const Error& error) {
      throw_error<ValueError>("input ", i, ": ", error.what());
    }
  }
  nodes_.add_nodes(member(graph_, "nodes"), scope_, program_.main, 0);
  nodes_.check_unknown();
  const Json::Array& outputs = list_of(member(signature, "output_specs"), "output_specs");
  for (size_t i = 0; i < outputs.size(); ++i) {
    try {
      add_output(outputs[i]);
    } catch (const NotImplementedError& error) {
      throw_error<NotImplementedError>("output ", i, ": ", error.what());
    } catch (const Error& error) {
      throw_error<ValueError>("output ", i, ": ", error.what());
    }
  }
  std::set<int> kept;
  for (const auto& one : program_.outputs) GraphPlanner::collect(one.value, kept);
  for (const auto& one : program_.mutations) kept.insert(one.slot);
  GraphPlanner::find_dying(program_.main, kept);
  find_trees();
  find_modules();
}

}  // namespace

void plan(Program& program, const Json& file, Tensors weights, Tensors constants) {
  Planner(program, file, std::move(weights), std::move(constants)).plan();
}

}  // namespace kiln::pt2
