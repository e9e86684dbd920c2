// A program that torch.export.save wrote (.pt2), as a model: it runs, can be compiled and captured,
// and trains. A library of its own: link kiln::pt2.
//
//   const kiln::pt2::Model model = kiln::pt2::Model::load("net.pt2");
//   kiln::Tensor scores = model({image})[0];
//
// docs/pt2.md says what is read.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "kiln/compile/graph_model.h"
#include "kiln/pt2/tree.h"

namespace kiln::pt2 {

// A tensor that a program holds.
struct Held {
  enum class Kind : uint8_t { parameter, buffer, constant };
  std::string name = {};  // in PyTorch: "encoder.fc.weight"
  Kind kind = Kind::parameter;
  bool persistent = true;  // whether it is part of a state dict
  Tensor tensor = {};      // parameters that are floats require gradients; tied ones are one tensor
};

// An input that is no constant, as the program describes it.
struct Described {
  struct Dim {
    int64_t size = -1;      // -1: free
    std::string name = {};  // of a free one: its symbol, or what is computed of symbols: "2*s77"
  };
  std::string name;
  bool is_tensor = true;  // or a number
  DType dtype = DType::f32;
  std::vector<Dim> dims = {};
};

// Whether the file is an archive of torch.export.save, by what it says of itself. Throws IoError
// when it cannot be read.
bool is_program(const std::string& path);

class Model {
 public:
  // program: which one of several that are in the archive; "": the only one, or "model".
  // Throws IoError, which names the file and the node, for a file that is malformed or whose nodes
  // are not in an order in which they can run; NotImplementedError, which names all operators that
  // Kiln lacks, or the node, for what Kiln has no form for. No code of a file is ever executed.
  static Model load(const std::string& path, const std::string& program = "");

  // The outputs that are tensors, for the inputs that are, recorded by autodiff as any function is.
  // Throws ValueError, which names the node and its operator.
  TensorList operator()(const TensorList& inputs) const;
  // The same with other tensors in the place of those that the program holds, in their order.
  TensorList run(const TensorList& inputs, const TensorList& held) const;
  // The same for any program: an input or an output is a tensor, a number, a text, or absent.
  using Item = std::variant<std::monostate, Tensor, bool, int64_t, double, std::string>;
  std::vector<Item> run_items(const std::vector<Item>& inputs, const TensorList& held) const;

  // What the program holds, in order: parameters, buffers and constants.
  const std::vector<Held>& held() const;
  // For each of them, where the same tensor stands first: names that are tied.
  std::vector<size_t> first_places() const;
  std::vector<std::pair<std::string, Tensor>> named_parameters() const;
  std::vector<std::pair<std::string, Tensor>> named_buffers() const;
  // Each once, where several names stand for one.
  TensorList parameters() const;

  // Of all inputs and outputs, in order.
  std::vector<std::string> input_names() const;
  std::vector<std::string> output_names() const;
  // What an input must be: a constant of the export; monostate otherwise.
  std::vector<Item> constant_inputs() const;
  std::vector<bool> is_constant() const;
  // The inputs that are no constants, in order.
  std::vector<Described> described_inputs() const;
  // The symbols of free dims, each with the least and the greatest size that it takes.
  std::map<std::string, std::pair<int64_t, int64_t>> free_sizes() const;
  // The shapes of those inputs for sizes of the symbols; of numbers: []. Throws ValueError, which
  // names the input, for a symbol without a size.
  std::vector<Shape> shapes_at(const std::map<std::string, int64_t>& sizes) const;
  // The operators of its nodes, in order: "aten.add.Tensor".
  std::vector<std::string> nodes() const;
  // How inputs, (arguments, keyword arguments), and outputs nest.
  const Tree& input_tree() const;
  const Tree& output_tree() const;
  // The names of forward's arguments, in order; empty when the file has none.
  const std::vector<std::string>& argument_names() const;
  // The modules that the program was made of: ("encoder.fc", "Linear").
  const std::vector<std::pair<std::string, std::string>>& modules() const;

  // The program as a graph, for inputs like these.
  GraphModel capture(const TensorList& inputs) const;

  struct State;

 private:
  explicit Model(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  std::shared_ptr<const State> state_;
};

// The operators that are read: "aten.add.Tensor". Forms in place ("aten.add_.Tensor") and copies of
// views ("aten.view_copy.default") are read where the operator itself is.
std::vector<std::string> operators();

}  // namespace kiln::pt2
