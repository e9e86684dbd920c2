// An ONNX file as a model: it runs, can be compiled and captured, and trains.
//
//   const kiln::onnx::Model model = kiln::onnx::Model::load("net.onnx");
//   kiln::Tensor scores = model({image})[0];
//
// docs/onnx.md lists the operators.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "kiln/compile/graph_model.h"

namespace kiln::onnx {

// The operator sets that are read.
inline constexpr int kOldestOpset = 7;
inline constexpr int kNewestOpset = 28;

// An input or an output as the file describes it.
struct Described {
  struct Dim {
    int64_t size = -1;  // -1: any
    std::string name = {};
  };
  std::string name;
  bool is_tensor = true;                      // or a sequence, or a value that may be absent
  std::optional<DType> dtype = {};            // where the file says it and Kiln has it
  std::optional<std::vector<Dim>> dims = {};  // where the file says them
};

// Whether the file holds an ONNX model, by its outermost fields. Throws IoError when it cannot be
// read.
bool is_model(const std::string& path);

class Model {
 public:
  // Throws IoError, which names the file and the node, for a file that is malformed or whose nodes
  // are not in an order in which they can run; NotImplementedError, which names the node and its
  // operator, for an operator, an operator set or a dtype that Kiln lacks. Values that stand in
  // other files are read when these lie in the model's folder.
  static Model load(const std::string& path);

  // The outputs, recorded by autodiff as any function is. Inputs may have any shapes that the nodes
  // take. Throws ValueError, which names the node and its operator, for others.
  TensorList operator()(const TensorList& inputs) const;
  // The same with other tensors in the place of the parameters.
  TensorList run(const TensorList& inputs, const TensorList& parameters) const;
  // The same for any model: an input or an output is a tensor, a sequence of tensors, or an
  // optional value that is absent.
  using Item = std::variant<std::monostate, Tensor, TensorList>;
  std::vector<Item> run_items(const std::vector<Item>& inputs, const TensorList& parameters) const;

  // The weights by the names of the file: floats that layers and products take. They require
  // gradients.
  const std::vector<std::pair<std::string, Tensor>>& named_parameters() const;
  TensorList parameters() const;
  const std::vector<std::string>& input_names() const;
  const std::vector<std::string>& output_names() const;
  std::vector<Described> inputs() const;
  std::vector<Described> outputs() const;
  // The operators of its nodes, in order: "Conv". Those of inner graphs are not among them.
  std::vector<std::string> nodes() const;
  // The version of the operator set.
  int64_t opset() const;
  // The model as a graph, for inputs like these.
  GraphModel capture(const TensorList& inputs) const;

  struct State;

 private:
  explicit Model(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  std::shared_ptr<const State> state_;
};

// The names of the operators that are read.
std::vector<std::string> operators();

}  // namespace kiln::onnx
