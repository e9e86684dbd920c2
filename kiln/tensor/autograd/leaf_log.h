// Which leaves a captured function gives gradients to: a backward pass writes them into the leaves
// themselves, where no row sees it. Internal.
#pragma once

#include <functional>
#include <vector>

#include "kiln/tensor/tensor_impl.h"

namespace kiln::detail {

struct LeafLog {
  using Leaf = autodiff::LeafNode<Dispatch>;

  enum class First : unsigned char {
    added,   // its gradient was added to
    reset,   // it was set, or dropped: what was there before does not matter
    filled,  // it was filled with zeros, in its own memory
  };
  struct Entry {
    Handle<autodiff::Node<Dispatch>> node;
    First first;
    std::optional<Value> before;  // its gradient at the beginning
    size_t at = 0;                // how many rows were recorded by then
    Leaf& leaf() const { return static_cast<Leaf&>(*node); }
  };
  std::vector<Entry> entries;
  std::function<size_t()> rows;  // how many are recorded

  void note(const Handle<autodiff::Node<Dispatch>>& node, First first);
  // Every leaf that a pass from x reaches.
  void note_pass(const Value& x);
};

// Null unless this thread captures.
inline constinit thread_local LeafLog* leaf_log = nullptr;

}  // namespace kiln::detail
