// Which rows of the op table compute each element of their result of the elements of their operands
// at the same place. Internal to the passes.
#pragma once

#include "kiln/graph/graph.h"

namespace kiln::graph {

bool is_elementwise(const Node& node);

}  // namespace kiln::graph
