#include "kiln/pt2/graph_planner.h"

#include "kiln/core/utf8.h"
#include "kiln/pt2/archive.h"
#include "kiln/pt2/fields.h"

namespace kiln::pt2 {

namespace {

constexpr int kMostNested = 16;        // graphs in graphs
constexpr size_t kMostArguments = 64;  // of a node
constexpr size_t kMostUnknown = 40;    // names in a message

Argument fixed(Value value) {
  Argument out;
  out.fixed = std::move(value);
  return out;
}

// A number of JSON by itself.
Value number_value(const Json& json, const char* what) {
  if (const auto* i = json.as<int64_t>()) return {Scalar(*i)};
  if (const auto* b = json.as<bool>()) return {Scalar(*b)};
  return {Scalar(number_of(json, what))};
}

// All items are values: then the list is one.
Argument joined(std::vector<Argument> items) {
  Argument out;
  const auto varies = [](const Argument& one) { return one.slot >= 0; };
  if (std::ranges::any_of(items, varies)) {
    out.is_list = true;
    out.items = std::move(items);
    return out;
  }
  Values values;
  for (Argument& one : items) values.push_back(std::move(one.fixed));
  return fixed({std::make_shared<const Values>(std::move(values))});
}

template <class F>
Argument list_of_values(const Json& json, const char* what, F&& f) {
  Values values;
  for (const Json& one : list_of(json, what)) values.push_back(f(one));
  return fixed({std::make_shared<const Values>(std::move(values))});
}

}  // namespace

int GraphPlanner::define(const std::string& name, Scope& scope) {
  const auto [at, is_new] = scope.try_emplace(name, program_.slots);
  if (!is_new) throw_error<ValueError>("the value '", printable(name, 60), "' is there twice");
  return slot();
}

Argument GraphPlanner::reference(const Json& name, const Scope& scope) {
  const std::string& text = text_of(name, "a name");
  const auto found = scope.find(text);
  if (found == scope.end()) {
    throw_error<ValueError>("nothing before it makes '", printable(text, 60),
                            "'; expected nodes in order, without circles");
  }
  Argument out;
  out.slot = found->second;
  return out;
}
Argument GraphPlanner::tensor(const Json& json, const Scope& scope) {
  return reference(member(json, "name"), scope);
}
Argument GraphPlanner::optional_tensor(const Json& json, const Scope& scope) {
  const auto& [kind, value] = only_member(json, "an optional tensor");
  if (kind == "as_none") return {};
  if (kind != "as_tensor") {
    throw_error<ValueError>("an optional tensor is '", printable(kind, 40), "'");
  }
  return tensor(value, scope);
}
Argument GraphPlanner::number(const Json& json, const Scope& scope) {
  const auto& [kind, value] = only_member(json, "a number");
  if (kind == "as_name") return reference(value, scope);
  if (kind == "as_int") return fixed({Scalar(integer_of(value, "as_int"))});
  if (kind == "as_float") return fixed({Scalar(number_of(value, "as_float"))});
  if (kind == "as_bool") return fixed({Scalar(bool_of(value, "as_bool"))});
  throw_error<ValueError>("a number is '", printable(kind, 40), "'");
}
Argument GraphPlanner::list(const Json& items, const char* what, const Scope& scope,
                            Argument (GraphPlanner::*one)(const Json&, const Scope&)) {
  std::vector<Argument> all;
  for (const Json& item : list_of(items, what)) all.push_back((this->*one)(item, scope));
  return joined(std::move(all));
}

Argument GraphPlanner::argument(const Json& json, const Scope& scope, int depth) {
  const auto& [kind, value] = only_member(json, "an argument");
  if (kind == "as_none") return {};
  if (kind == "as_tensor") return tensor(value, scope);
  if (kind == "as_tensors") return list(value, "as_tensors", scope, &GraphPlanner::tensor);
  if (kind == "as_optional_tensor") return optional_tensor(value, scope);
  if (kind == "as_optional_tensors") {
    return list(value, "as_optional_tensors", scope, &GraphPlanner::optional_tensor);
  }
  if (kind == "as_int") return fixed({Scalar(integer_of(value, "as_int"))});
  if (kind == "as_float") return fixed({Scalar(number_of(value, "as_float"))});
  if (kind == "as_bool") return fixed({Scalar(bool_of(value, "as_bool"))});
  if (kind == "as_string") return fixed({text_of(value, "as_string")});
  if (kind == "as_operator") return fixed({text_of(value, "as_operator")});
  if (kind == "as_ints" || kind == "as_floats" || kind == "as_bools") {
    return list_of_values(value, kind.c_str(),
                          [&](const Json& one) { return number_value(one, kind.c_str()); });
  }
  if (kind == "as_strings") {
    return list_of_values(value, "as_strings",
                          [](const Json& one) { return Value{text_of(one, "as_strings")}; });
  }
  if (kind == "as_sym_int" || kind == "as_sym_float" || kind == "as_sym_bool") {
    return number(value, scope);
  }
  if (kind == "as_sym_ints" || kind == "as_sym_floats" || kind == "as_sym_bools") {
    return list(value, kind.c_str(), scope, &GraphPlanner::number);
  }
  if (kind == "as_scalar_type") {
    return fixed({dtype_of_number(integer_of(value, "as_scalar_type"))});
  }
  if (kind == "as_memory_format") return fixed({Scalar(integer_of(value, "as_memory_format"))});
  if (kind == "as_layout") {
    if (integer_of(value, "as_layout") != 7) {
      throw_error<NotImplementedError>("a sparse layout; expected a dense one");
    }
    return fixed({Scalar(7)});
  }
  if (kind == "as_device") return fixed({text_of(member(value, "type"), "a device")});
  if (kind == "as_complex") {
    return fixed({std::complex<double>(number_of(member(value, "real"), "real"),
                                       number_of(member(value, "imag"), "imag"))});
  }
  if (kind == "as_graph") return inner(member(value, "graph"), depth);
  if (kind == "as_int_lists" || kind == "as_float_lists") {
    return list_of_values(value, kind.c_str(), [&](const Json& row) {
      return list_of_values(row, kind.c_str(),
                            [&](const Json& one) { return number_value(one, kind.c_str()); })
          .fixed;
    });
  }
  throw_error<NotImplementedError>("an argument of kind '", printable(kind, 40), "'");
}

Argument GraphPlanner::inner(const Json& graph, int depth) {
  if (depth >= kMostNested) {
    throw_error<ValueError>("graphs nested more than ", kMostNested, " deep");
  }
  auto block = std::make_shared<Block>();
  Scope scope;
  for (const Json& input : list_of(member(graph, "inputs"), "inputs")) {
    const auto& [kind, value] = only_member(input, "an input");
    if (kind == "as_tensor") {
      block->inputs.push_back(define(text_of(member(value, "name"), "name"), scope));
    } else if (kind.starts_with("as_sym_") && find(value, "as_name") != nullptr) {
      block->inputs.push_back(define(text_of(member(value, "as_name"), "as_name"), scope));
    } else {
      block->inputs.push_back(-1);  // a constant, which the nodes have themselves
    }
  }
  add_nodes(member(graph, "nodes"), scope, *block, depth + 1);
  std::set<int> kept;
  for (const Json& output : list_of(member(graph, "outputs"), "outputs")) {
    block->outputs.push_back(argument(output, scope, depth + 1));
    collect(block->outputs.back(), kept);
  }
  find_dying(*block, kept);
  Argument out;
  out.block = std::move(block);
  return out;
}

Output GraphPlanner::output(const Json& json, Scope& scope) {
  const auto& [kind, value] = only_member(json, "an output");
  Output out;
  const auto add = [&](const Json& name) {
    const std::string& text = text_of(name, "a name");
    out.slots.push_back(text.empty() ? -1 : define(text, scope));
  };
  if (kind == "as_tensor") {
    add(member(value, "name"));
  } else if (kind == "as_tensors") {
    out.is_list = true;
    for (const Json& one : list_of(value, "as_tensors")) add(member(one, "name"));
  } else if (kind == "as_sym_int" || kind == "as_sym_float" || kind == "as_sym_bool") {
    const Json* name = find(value, "as_name");
    if (name == nullptr) {
      out.slots.push_back(-1);
    } else {
      add(*name);
    }
  } else if (kind == "as_optional_tensor" && find(value, "as_tensor") != nullptr) {
    add(member(member(value, "as_tensor"), "name"));
  } else if (kind == "as_none" || kind == "as_optional_tensor" || kind == "as_int" ||
             kind == "as_bool" || kind == "as_float") {
    out.slots.push_back(-1);
  } else {
    throw_error<NotImplementedError>("an output of kind '", printable(kind, 40), "'");
  }
  return out;
}

void GraphPlanner::add_node(const Json& node, size_t n, Scope& scope, Block& block, int depth) {
  const std::string& target = text_of(member(node, "target"), "target");
  const Json* name = find(node, "name");
  Step step;
  step.target = target.starts_with("torch.ops.") ? target.substr(10) : target;
  step.label =
      concat("node ", n, name == nullptr ? "" : " '" + printable(text_of(*name, "name"), 60) + "'",
             " (", printable(step.target, 60), ")");
  try {
    const Target found = find_operator(target);
    if (found.op == nullptr) {
      if (unknown_.empty()) unknown_node_ = step.label;
      unknown_.insert(printable(step.target, 80));
    }
    step.op = found.op;
    step.form = found.form;
    const Json::Array& inputs = list_of(member(node, "inputs"), "inputs");
    if (inputs.size() > kMostArguments) {
      throw_error<ValueError>(inputs.size(), " arguments; expected at most ", kMostArguments);
    }
    for (const Json& input : inputs) {
      Argument one;
      try {
        one = argument(member(input, "arg"), scope, depth);
      } catch (const NotImplementedError&) {
        // What else the file has that Kiln lacks is said first.
        if (found.op != nullptr) throw;
      }
      if (const Json* given = find(input, "name")) one.name = text_of(*given, "name");
      step.arguments.push_back(std::move(one));
    }
    if (step.form == Form::in_place && (step.arguments.empty() || step.arguments[0].slot < 0)) {
      throw_error<ValueError>("expected a tensor as its first argument");
    }
    for (const Json& one : list_of(member(node, "outputs"), "outputs")) {
      step.outputs.push_back(output(one, scope));
    }
  } catch (const NotImplementedError& error) {
    throw_error<NotImplementedError>(step.label, ": ", error.what());
  } catch (const Error& error) {
    throw_error<ValueError>(step.label, ": ", error.what());
  }
  block.steps.push_back(std::move(step));
}

void GraphPlanner::add_nodes(const Json& nodes, Scope& scope, Block& block, int depth) {
  size_t n = 0;
  for (const Json& node : list_of(nodes, "nodes")) add_node(node, n++, scope, block, depth);
}

void GraphPlanner::check_unknown() const {
  if (unknown_.empty()) return;
  std::string names;
  size_t count = 0;
  for (const std::string& name : unknown_) {
    if (++count > kMostUnknown) {
      names += concat(" and ", unknown_.size() - kMostUnknown, " more");
      break;
    }
    names += (names.empty() ? "" : ", ") + name;
  }
  throw_error<NotImplementedError>("Kiln lacks ", unknown_.size(),
                                   unknown_.size() == 1 ? " operator: " : " operators: ", names,
                                   "; the first is at ", unknown_node_);
}

void GraphPlanner::collect(const Argument& argument, std::set<int>& slots) {
  if (argument.slot >= 0) slots.insert(argument.slot);
  for (const Argument& item : argument.items) collect(item, slots);
}

void GraphPlanner::find_dying(Block& block, const std::set<int>& kept) {
  std::set<int> seen = kept;
  for (size_t i = block.steps.size(); i-- > 0;) {
    Step& step = block.steps[i];
    std::set<int> used;
    for (const Argument& one : step.arguments) collect(one, used);
    for (const Output& one : step.outputs) {
      for (const int slot : one.slots) {
        if (slot >= 0) used.insert(slot);
      }
    }
    for (const int slot : used) {
      if (seen.insert(slot).second) step.dying.push_back(slot);
    }
  }
}

}  // namespace kiln::pt2
