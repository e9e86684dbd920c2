#include "kiln/graph/passes/passes.h"

namespace kiln::graph {

Graph optimized(Graph graph, const PassOptions& options, PassReport* report) {
  const auto first = static_cast<ValueId>(graph.values.size());
  const ValueId own_from = options.any_size ? first : kNoValue;
  if (options.own_results) give_own_results(graph, report);
  if (options.dead_code) remove_dead_code(graph, report);
  if (options.constant_folding) fold_constants(graph, options.freeze, report, own_from);
  if (options.common_subexpressions) share_common_subexpressions(graph, report);
  if (options.freeze && options.constant_folding) {
    // A norm between two products is folded into one of them, the next one into the other.
    while (options.norm_folding && fold_norms(graph, report) > 0) {
      fold_constants(graph, true, report, own_from);
    }
    if (options.merged_products && merge_products(graph, report) > 0) {
      fold_constants(graph, true, report, own_from);
    }
  }
  if (options.dead_code) remove_dead_code(graph, report);
  if (options.epilogues) join_epilogues(graph, report);
  if (options.joined_convolutions) join_convolutions(graph, report);
  recompute(graph, options.memory_budget, report);
  if (options.fusion) fuse_elementwise(graph, report, options.fuse_always);
  return graph;
}

}  // namespace kiln::graph
