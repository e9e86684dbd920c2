// The passes: what changes a graph and keeps what it computes. Bit for bit, but for two of them
// that frozen weights allow.
#pragma once

#include <string>
#include <vector>

#include "kiln/graph/graph.h"

namespace kiln::graph {

// A switch for each pass.
struct PassOptions {
  bool own_results = true;
  bool dead_code = true;
  bool common_subexpressions = true;
  bool constant_folding = true;
  // Constants that nothing in the graph writes to keep the values that they have now: for
  // inference with weights that nobody changes.
  bool freeze = false;
  // The graph is one of several for other sizes: only what holds for all of them is computed once.
  bool any_size = false;
  // Of frozen weights alone. They compute in another order, so that results differ by rounding.
  bool norm_folding = true;
  bool merged_products = true;
  bool epilogues = true;
  bool joined_convolutions = true;
  bool fusion = true;
  // What the values of a run may take, of what they take without: cheap rows are computed again to
  // keep to it.
  double memory_budget = 1.0;
  // Also where rows one after another are as fast (Note [When tiles pay] in
  // elementwise_fusion.cpp).
  bool fuse_always = false;
};

// What the passes did, for people to read.
struct PassReport {
  std::vector<std::string> lines;
};

Graph optimized(Graph graph, const PassOptions& options = {}, PassReport* report = nullptr);

// Rows that write to a value in place get a result of their own, where nothing else shares its
// memory: the passes behind can move and join them. (Its memory is taken anyway where nobody reads
// it any more.)
void give_own_results(Graph& graph, PassReport* report = nullptr);
// Nodes whose results nobody needs are removed.
void remove_dead_code(Graph& graph, PassReport* report = nullptr);
// Of nodes that compute the same, the first stays.
void share_common_subexpressions(Graph& graph, PassReport* report = nullptr);
// What depends on nothing that changes is computed once. From own_from on: weights in another form
// alone, and rows that make values from that number on.
void fold_constants(Graph& graph, bool freeze, PassReport* report = nullptr,
                    ValueId own_from = kNoValue);
// Batch norms in evaluation become part of the products before or behind them, whose weights must
// be constants that nothing writes to. How many; their new weights are rows for fold_constants.
int fold_norms(Graph& graph, PassReport* report = nullptr);
// Products of one operand with several such constants become one. How many there are then; their
// weights are joined by rows for fold_constants.
int merge_products(Graph& graph, PassReport* report = nullptr);
// An activation behind a linear layer, and what is added to it, become part of its row.
void join_epilogues(Graph& graph, PassReport* report = nullptr);
// Depthwise convolutions and those of 1 x 1 around them, between which nobody reads anything,
// become one row.
void join_convolutions(Graph& graph, PassReport* report = nullptr);
// Computes values again before they are read, until the largest use of memory is this part of what
// it was or nothing cheap is left (Note [Computing again] in recomputation.cpp). `boundary`, the
// number of a node, stays that node's.
void recompute(Graph& graph, double budget, PassReport* report = nullptr,
               size_t* boundary = nullptr);
// Elementwise rows on large tensors run together (Note [Tiles] in fused.h).
void fuse_elementwise(Graph& graph, PassReport* report = nullptr, bool always = false);

}  // namespace kiln::graph
