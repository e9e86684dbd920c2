// FreeGraph: a graph with free sizes, of which graphs for given sizes are made. Internal to
// kiln/compile. Note [Free sizes] in kiln/graph/file/free_sizes.h says how.
#pragma once

#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "kiln/core/json.h"
#include "kiln/graph/file/free_sizes.h"
#include "kiln/graph/plan.h"
#include "kiln/tensor/tensor.h"

namespace kiln {

class FreeGraph {
 public:
  using Constants = std::vector<std::pair<std::string, ErasedTensor>>;

  static bool is_free(const Json& json);
  // What save() wrote, without constants yet. Throws ValueError for anything else.
  explicit FreeGraph(Json json);
  FreeGraph(Json json, std::vector<std::string> names, graph::Sizes example, Constants constants);
  void add_constant(const std::string& name, ErasedTensor x);

  const std::vector<std::string>& names() const { return names_; }
  const graph::Sizes& example() const { return example_; }
  std::vector<std::string> output_names() const;
  std::vector<std::string> dims_of(size_t input) const;

  // Throws ValueError, which names the node, when the graph does not take these sizes.
  Json json_at(const graph::Sizes& sizes) const;
  graph::Graph at(const graph::Sizes& sizes) const;
  // The plan for inputs of these shapes, fused: made once for each of the last few.
  std::shared_ptr<const graph::Plan> plan(const std::vector<Tensor>& inputs) const;
  // What the passes did for the plan that was asked for last, and what its nodes took.
  std::vector<std::string> report() const;
  void save(const std::string& path) const;

 private:
  graph::Sizes sizes_of(const std::vector<Tensor>& inputs) const;

  Json json_;
  std::vector<std::string> names_;
  graph::Sizes example_;
  Constants constants_;
  mutable std::mutex mutex_;
  // Graphs of the last few sizes, the last one first.
  struct Prepared {
    graph::Sizes sizes;
    std::shared_ptr<const graph::Plan> plan;
    std::vector<std::string> report;
  };
  mutable std::vector<Prepared> plans_;
};

}  // namespace kiln
