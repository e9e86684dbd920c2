#include "kiln/graph/passes/passes.h"

namespace kiln::graph {

Graph optimized(Graph graph, const PassOptions& options, PassReport* report) {
  if (options.dead_code) remove_dead_code(graph, report);
  if (options.constant_folding) fold_constants(graph, options.freeze, report);
  if (options.common_subexpressions) share_common_subexpressions(graph, report);
  if (options.dead_code) remove_dead_code(graph, report);
  if (options.fusion) fuse_elementwise(graph, report);
  return graph;
}

}  // namespace kiln::graph
