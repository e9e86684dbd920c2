// Modules as text, in PyTorch's layout.
#include "kiln/nn/module_print.h"

#include <algorithm>
#include <ostream>

#include "kiln/core/error.h"
#include "kiln/nn/module_tree.h"

namespace kiln::nn {
namespace {

using detail::ModuleTree;

// Every line but the first two columns further right.
std::string indented(const std::string& text) {
  std::string out;
  for (const char c : text) {
    out += c;
    if (c == '\n') out += "  ";
  }
  return out;
}

void split_lines(const std::string& text, std::vector<std::string>& out) {
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    out.push_back(text.substr(at, end - at));
    at = end + 1;
  }
}

std::string print(const ModuleTree& node) {
  std::vector<std::string> extra;
  std::string type = "ModuleList";
  if (node.module != nullptr) {
    type = node.module->type_name();
    split_lines(node.module->extra_repr(), extra);
  } else {
    if (node.children.empty() && !node.params.empty()) type = "ParameterList";
    for (const auto& [name, param] : node.params) {
      if (param->defined()) extra.push_back(detail::describe_parameter(name, *param));
    }
  }
  if (node.children.empty()) {
    if (extra.empty()) return type + "()";
    if (extra.size() == 1) return type + "(" + extra[0] + ")";
  }
  std::string out = type + "(\n";
  for (const std::string& line : extra) out += concat("  ", line, "\n");

  const bool fold = node.module == nullptr || node.module->folds_equal_children();
  const auto& children = node.children;
  for (size_t i = 0; i < children.size();) {
    const std::string text = print(children[i]);
    size_t end = i + 1;
    while (fold && end < children.size() && print(children[end]) == text) ++end;
    const std::string item = end == i + 1
                                 ? concat("(", children[i].name, "): ", text)
                                 : concat("(", children[i].name, "-", children[end - 1].name,
                                          "): ", end - i, " x ", text);
    out += concat("  ", indented(item), "\n");
    i = end;
  }
  return out + ")";
}

}  // namespace

std::string detail::describe_parameter(const std::string& name, const Param<Tensor>& param) {
  std::string size;
  for (const int64_t n : param.lazy_shape()) {
    if (!size.empty()) size += 'x';
    size += std::to_string(n);
  }
  const std::optional<DType> dtype = param.lazy_dtype();
  return concat("  (", name, "): Parameter containing: [", dtype ? name_of(*dtype) : "?",
                " of size ", size, "]");
}

std::string to_string(const Module& module) { return print(detail::tree_of(module)); }

std::ostream& operator<<(std::ostream& out, const Module& module) {
  return out << to_string(module);
}

}  // namespace kiln::nn
