// GraphModel: a model as a graph, which needs neither the class nor the function that it was
// captured from: it runs, is saved with its weights in one file, and is loaded again.
//
//   kiln::GraphModel graph = kiln::capture(net, {kiln::randn({1, 3, 32, 32})});
//   graph.save("model.kiln");
//   kiln::Tensor y = kiln::GraphModel::load("model.kiln")(x);
//
// docs/model-files.md says what the file holds.
#pragma once

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
};

class GraphModel {
 public:
  // Takes a graph whose constants have their values.
  GraphModel(graph::Graph graph, std::vector<std::string> output_names);

  // The outputs for these inputs, without history. Inputs have the shapes and dtypes of those that
  // it was captured with (ShapeError, DTypeError, ValueError); it never writes to them.
  TensorList operator()(const TensorList& inputs) const;
  // Of a model with one input and one output.
  Tensor operator()(const Tensor& x) const;

  const graph::Graph& graph() const { return plan_->graph(); }
  std::vector<std::string> input_names() const;
  const std::vector<std::string>& output_names() const { return output_names_; }
  std::string str() const;

  // The graph and its constants as one safetensors file. Throws ValueError, which names the node
  // and its row, for what a file cannot hold; IoError when it cannot be written.
  void save(const std::string& path) const;
  // Throws IoError, which names the file and the node, for a file that is no graph whose rows may
  // be called. Nothing is allocated but its constants, which are in the file.
  static GraphModel load(const std::string& path);

 private:
  std::shared_ptr<const graph::Plan> plan_;
  std::vector<std::string> output_names_;
  std::vector<char> written_;  // which inputs the graph writes to
};

// Where a safetensors file has the graph.
inline constexpr const char* kGraphKey = "kiln.graph";

namespace detail {
GraphModel capture_function(const Compiled::Function& f, const TensorList& inputs,
                            const CaptureModelOptions& options);
}

// f(inputs) as a graph, by calling it once without gradients. Throws graph::CaptureError, which
// names the row, for a function that reads values; what f throws.
template <class F>
  requires(!std::is_base_of_v<nn::Module, std::decay_t<F>>)
GraphModel capture(F&& f, const TensorList& inputs, const CaptureModelOptions& options = {}) {
  return detail::capture_function(Compiled::Function(std::forward<F>(f)), inputs, options);
}
// A module that takes one tensor and gives one. eval() comes first: a graph in training mode draws
// random numbers and changes its buffers.
GraphModel capture(nn::Module& module, const Tensor& input, CaptureModelOptions options = {});

}  // namespace kiln
