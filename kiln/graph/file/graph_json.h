// A graph as JSON, and back: nodes, values, names; not the values of its constants.
#pragma once

#include "kiln/core/json.h"
#include "kiln/graph/graph.h"

namespace kiln::graph {

// What a file says of a graph.
struct StoredGraph {
  Graph graph;                       // its constants have shapes and no values
  std::vector<std::string> tensors;  // the names of the constants' values in the file
  std::vector<std::string> outputs;  // names
};

// Gives each constant a name of its own (StoredGraph::tensors, in the order of graph.constants()).
// Throws ValueError, which names the node and its row, for what a file cannot hold.
Json to_json(const Graph& graph, const std::vector<std::string>& tensors,
             const std::vector<std::string>& outputs);
// Throws ValueError, which names the node and its row, for anything that is not a graph whose rows
// may be called. `tensors` says what the file has under a name; it may throw.
struct TensorInfo {
  Shape shape;
  DType dtype = DType::f32;
};
StoredGraph graph_of(const Json& json,
                     const std::function<TensorInfo(const std::string&)>& tensors);

}  // namespace kiln::graph
