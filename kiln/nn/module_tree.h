// ModuleTree: what the one visit finds, laid out flat for everything that is done to whole models.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "kiln/nn/module.h"

namespace kiln::nn::detail {

// A module, or a std container among a module's members, with its parts in PyTorch's order of
// kinds.
struct ModuleTree {
  std::string name;          // among its owner's parts; "" for the root
  Module* module = nullptr;  // null for a container
  std::vector<std::pair<std::string, Param<Tensor>*>> params;  // also those that are undefined
  std::vector<std::pair<std::string, Buffer*>> buffers;
  std::vector<ModuleTree> children;

  // f(prefix, node) for the root and everything below it, owners first. The prefix ends in a dot
  // unless it is empty.
  template <class F>
  void for_each(const std::string& prefix, const F& f) const {
    f(prefix, *this);
    for (const ModuleTree& child : children) child.for_each(prefix + child.name + ".", f);
  }
};

// The tree below a module; without `recurse` only its own parameters and buffers. The module is not
// changed.
ModuleTree tree_of(const Module& root, bool recurse = true);
// One level of it: the nodes of modules below the root are empty.
ModuleTree parts_of(const Module& root);

// What a state dict has an entry for: parameters and persistent buffers that are not None, in
// PyTorch's order.
struct StateEntry {
  std::string key;
  Param<Tensor>* param = nullptr;  // one of the two
  Buffer* buffer = nullptr;
};
std::vector<StateEntry> state_entries(const Module& root, const std::string& prefix);

// Deep copies of shared modules, each made once.
class CloneMemo {
 public:
  std::shared_ptr<Module> clone(const std::shared_ptr<Module>& original);

 private:
  std::vector<std::pair<std::shared_ptr<Module>, std::shared_ptr<Module>>> made_;
};

// All parameters of the tree, also those that are undefined.
std::vector<Param<Tensor>*> all_params(const Module& root, bool recurse = true);

}  // namespace kiln::nn::detail
