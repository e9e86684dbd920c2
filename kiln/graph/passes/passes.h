// The passes: what changes a graph and keeps what it computes, bit for bit.
#pragma once

#include <string>
#include <vector>

#include "kiln/graph/graph.h"

namespace kiln::graph {

// A switch for each pass.
struct PassOptions {
  bool dead_code = true;
  bool common_subexpressions = true;
  bool constant_folding = true;
  // Constants that nothing in the graph writes to keep the values that they have now: for
  // inference with weights that nobody changes.
  bool freeze = false;
  bool fusion = true;
};

// What the passes did, for people to read.
struct PassReport {
  std::vector<std::string> lines;
};

Graph optimized(Graph graph, const PassOptions& options = {}, PassReport* report = nullptr);

// Nodes whose results nobody needs are removed.
void remove_dead_code(Graph& graph, PassReport* report = nullptr);
// Of nodes that compute the same, the first stays.
void share_common_subexpressions(Graph& graph, PassReport* report = nullptr);
// What depends on nothing that changes is computed once.
void fold_constants(Graph& graph, bool freeze, PassReport* report = nullptr);
// Elementwise rows on large tensors run together (Note [Tiles] in fused.h).
void fuse_elementwise(Graph& graph, PassReport* report = nullptr);

}  // namespace kiln::graph
