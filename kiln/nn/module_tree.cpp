#include "kiln/nn/module_tree.h"

namespace kiln::nn::detail {
namespace {

enum class Depth { own, parts, all };

class TreeBuilder final : public MemberVisitor {
 public:
  TreeBuilder(ModuleTree& node, Depth depth) : node_(node), depth_(depth) {}

  void parameter(std::string_view name, Param<Tensor>& value) override {
    node_.params.emplace_back(name, &value);
  }
  void buffer(std::string_view name, Buffer& value) override {
    node_.buffers.emplace_back(name, &value);
  }
  void module(std::string_view name, Module& value) override {
    if (depth_ == Depth::own) return;
    ModuleTree& child = add_child(name);
    child.module = &value;
    if (depth_ == Depth::parts) return;
    TreeBuilder builder(child, depth_);
    value.visit_parts(builder);
  }
  void group(std::string_view name, MemberGroup& elements) override {
    if (depth_ == Depth::own) return;
    TreeBuilder builder(add_child(name), depth_);
    elements.visit_members(builder);
  }

 private:
  ModuleTree& add_child(std::string_view name) {
    node_.children.emplace_back();
    node_.children.back().name = name;
    return node_.children.back();
  }

  ModuleTree& node_;
  Depth depth_;
};

ModuleTree build(const Module& root, Depth depth) {
  ModuleTree tree;
  // The visit hands out references that can be written through; who asked for const does not.
  tree.module = const_cast<Module*>(&root);
  TreeBuilder builder(tree, depth);
  tree.module->visit_parts(builder);
  return tree;
}

}  // namespace

ModuleTree tree_of(const Module& root, bool recurse) {
  return build(root, recurse ? Depth::all : Depth::own);
}

ModuleTree parts_of(const Module& root) { return build(root, Depth::parts); }

std::vector<StateEntry> state_entries(const Module& root, const std::string& prefix) {
  std::vector<StateEntry> out;
  tree_of(root).for_each(prefix, [&out](const std::string& path, const ModuleTree& node) {
    for (const auto& [name, param] : node.params) {
      if (param->defined()) out.push_back({path + name, param, nullptr});
    }
    for (const auto& [name, buffer] : node.buffers) {
      if (buffer->defined() && buffer->persistent()) out.push_back({path + name, nullptr, buffer});
    }
  });
  return out;
}

std::shared_ptr<Module> CloneMemo::clone(const std::shared_ptr<Module>& original) {
  for (const auto& [before, copy] : made_) {
    if (before == original) return copy;
  }
  made_.emplace_back(original, original->clone());
  return made_.back().second;
}

std::vector<Param<Tensor>*> all_params(const Module& root, bool recurse) {
  std::vector<Param<Tensor>*> out;
  tree_of(root, recurse).for_each("", [&out](const std::string&, const ModuleTree& node) {
    for (const auto& [name, param] : node.params) out.push_back(param);
  });
  return out;
}

}  // namespace kiln::nn::detail
