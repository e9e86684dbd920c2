// GraphModel: a model as a graph, which needs neither the class nor the function that it was
// captured from: it runs, is saved with its weights in one file, and is loaded again.
//
//   kiln::GraphModel graph = kiln::capture(net, {kiln::randn({1, 3, 32, 32})});
//   graph.save("model.kiln");
//   kiln::Tensor y = kiln::GraphModel::load("model.kiln")(x);
//
// docs/model-files.md says what the file holds.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kiln/compile/compile.h"
#include "kiln/graph/plan.h"

namespace kiln {

struct CaptureModelOptions {
  // Modules and tensors whose names the graph's constants get: "fc.weight".
  std::vector<nn::Module*> modules = {};
  std::vector<std::pair<std::string, Tensor>> tensors = {};
  // "input0", "output0" and so on where there is none.
  std::vector<std::string> input_names = {};
  std::vector<std::string> output_names = {};
  // Dims of inputs that stay free, by names: {{"image", {{0, "batch"}}}}. Dims of one name have one
  // size. The function is then called at several sizes.
  std::map<std::string, std::map<int64_t, std::string>> dynamic_axes = {};
  // The modules' parameters and buffers keep the values that they have now: batch norms are folded
  // into products, products of one tensor are merged, and what depends on weights alone is computed
  // beforehand. Results differ by rounding; with `exact` only what keeps each bit is done.
  bool freeze = false;
  bool exact = false;
};

class FreeGraph;
class GraphModel;
namespace detail {
GraphModel capture_function(const Compiled::Function& f, const TensorList& inputs,
                            const CaptureModelOptions& options);
}

class GraphModel {
 public:
  // Takes a graph whose constants have their values.
  GraphModel(graph::Graph graph, std::vector<std::string> output_names);

  // The outputs for these inputs, without history. Inputs have the shapes and dtypes of those that
  // it was captured with, but for free dims (ShapeError, DTypeError, ValueError); it never writes
  // to them. Throws ValueError for sizes of free dims that a node of the graph does not take.
  TensorList operator()(const TensorList& inputs) const;
  // Of a model with one input and one output.
  Tensor operator()(const Tensor& x) const;

  // What a file holds: nothing is fused yet. With free dims: that of the sizes which it was
  // captured with.
  const graph::Graph& graph() const { return *graph_; }
  std::vector<std::string> input_names() const;
  const std::vector<std::string>& output_names() const { return output_names_; }
  std::string str() const;
  // What the passes made of the graph that runs; with free dims of that of the last call's sizes.
  std::string explain() const;

  // The names of the free dims, in order; none when every size is fixed.
  std::vector<std::string> free_dims() const;
  // Where these names stand in the shape of an input: "" for a fixed size.
  std::vector<std::string> free_dims_of(size_t input) const;
  // The sizes that the free dims had when it was captured.
  std::vector<int64_t> example_sizes() const;
  // The graph for these sizes, before any pass.
  graph::Graph graph_at(const std::vector<int64_t>& sizes) const;

  // The graph and its constants as one safetensors file. Throws ValueError, which names the node
  // and its row, for what a file cannot hold; IoError when it cannot be written.
  void save(const std::string& path) const;
  // Throws IoError, which names the file and the node, for a file that is no graph whose rows may
  // be called. Nothing is allocated but its constants, which are in the file.
  static GraphModel load(const std::string& path);

 private:
  friend GraphModel detail::capture_function(const Compiled::Function& f, const TensorList& inputs,
                                             const CaptureModelOptions& options);
  explicit GraphModel(std::shared_ptr<const FreeGraph> free);

  std::shared_ptr<const graph::Graph> graph_;
  std::shared_ptr<const graph::Plan> plan_;  // null with free dims
  std::shared_ptr<const FreeGraph> free_;    // null: every size is fixed
  std::vector<std::string> report_;          // of the passes
  std::vector<std::string> output_names_;
  std::vector<char> written_;  // which inputs the graph writes to
};

// Where a safetensors file has the graph.
inline constexpr const char* kGraphKey = "kiln.graph";

// f(inputs) as a graph, by calling it once without gradients. Throws graph::CaptureError, which
// names the row, for a function that reads values, and, with dynamic_axes, for one in which a size
// is no expression of the free ones; what f throws.
template <class F>
  requires(!std::is_base_of_v<nn::Module, std::decay_t<F>>)
GraphModel capture(F&& f, const TensorList& inputs, const CaptureModelOptions& options = {}) {
  return detail::capture_function(Compiled::Function(std::forward<F>(f)), inputs, options);
}
// A module that takes one tensor and gives one. eval() comes first: a graph in training mode draws
// random numbers and changes its buffers.
GraphModel capture(nn::Module& module, const Tensor& input, CaptureModelOptions options = {});

}  // namespace kiln
