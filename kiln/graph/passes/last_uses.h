// Where each value of a graph is needed last. Internal to kiln/graph.
#pragma once

#include "kiln/graph/graph.h"

namespace kiln::graph {

// Sets Operand::last and Node::released. Outputs and constants are needed to the end.
void find_last_uses(Graph& graph);

}  // namespace kiln::graph
