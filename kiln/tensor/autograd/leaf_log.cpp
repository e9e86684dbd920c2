#include "kiln/tensor/autograd/leaf_log.h"

#include <algorithm>
#include <unordered_set>

#include "kiln/graph/capture.h"

namespace kiln::detail {

void LeafLog::note(const Handle<autodiff::Node<Dispatch>>& node, First first) {
  if (!node || !node->is_leaf() || !graph::is_capturing()) return;
  const bool known = std::any_of(entries.begin(), entries.end(),
                                 [&](const Entry& entry) { return entry.node == node; });
  if (known) return;
  const auto& leaf = static_cast<const Leaf&>(*node);
  entries.push_back({node, first, leaf.grad, rows ? rows() : 0});
}

void LeafLog::note_pass(const Value& x) {
  std::unordered_set<const autodiff::Node<Dispatch>*> seen;
  std::vector<Handle<autodiff::Node<Dispatch>>> stack{x.node};
  while (!stack.empty()) {
    const auto node = std::move(stack.back());
    stack.pop_back();
    if (!node || !seen.insert(node.get()).second) continue;
    note(node, First::added);
    for (const auto& edge : node->edges()) stack.push_back(edge.node);
  }
}

}  // namespace kiln::detail
