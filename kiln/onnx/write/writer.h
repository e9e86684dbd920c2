// Writer: a graph's rows as ONNX nodes. Internal to kiln/onnx.
//
// Note [Writing]
// Each row has a function that adds the nodes which compute it, in a table by family. ONNX has no
// writes in place and no views: a name stands for a value. So the writer keeps for each value of
// the graph the name that holds it now. A write gives it another name, and the tensors that it is a
// view of, too: the view is undone on the way up (a permutation by its inverse, a slice by joining
// what lies beside it). Another view of the same memory is computed anew when it is read next.
// Nodes whose results nobody reads are dropped in the end. A model with free sizes is written at
// several sizes, and the files are compared (free_sizes.h): there, what depends on sizes is
// computed by nodes, and each constant is one of its own.
#pragma once

#include <map>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include "kiln/graph/graph.h"
#include "kiln/graph/rows.h"
#include "kiln/onnx/wire.h"

namespace kiln::onnx {

using graph::Node;
using graph::ValueId;

struct Attribute {
  const char* name;
  std::variant<int64_t, float, std::string, std::vector<int64_t>, std::vector<std::string>> value;
};

int data_type_of(DType dtype);

class Writer {
 public:
  using Names = std::vector<std::string>;
  using Attributes = std::vector<Attribute>;

  // leaves_values_out: of the graph's constants, for a file that is only compared with another.
  Writer(const graph::Graph& graph, const std::vector<std::string>& output_names,
         bool has_free_sizes = false, bool leaves_values_out = false);
  wire::Model run();

  // ---- For the tables

  // The name that holds an argument's tensor now; "" when there is none.
  std::string in(const Node& node, size_t argument);
  Names list(const Node& node, size_t argument);
  bool has(const Node& node, size_t argument) const;
  const graph::Value& value(const Node& node, size_t argument) const;
  const Shape& shape(const Node& node, size_t argument) const {
    return value(node, argument).shape;
  }
  DType dtype(const Node& node, size_t argument) const { return value(node, argument).dtype; }
  const graph::Value& result(const Node& node, size_t i = 0) const;
  template <class T>
  static const T& get(const Node& node, size_t argument) {
    return std::get<T>(node.arguments[argument].attribute);
  }

  // Says which name holds a result.
  void out(const Node& node, const std::string& name, size_t i = 0);
  // A result that has no translation: an error if somebody reads it.
  void leave_out(const Node& node, size_t i, const char* why);
  // Writes into a value, and so into all views of its memory.
  void write(const Node& node, ValueId id, const std::string& name);

  // A node of the standard operators; its first output, or all of them.
  std::string add(const char* op, const Names& inputs, const Attributes& attributes = {});
  Names add_many(const char* op, const Names& inputs, const Attributes& attributes, int outputs);

  std::string ints(const std::vector<int64_t>& values);  // a constant of dtype int64, 1-d
  std::string number(double value, DType dtype);         // 0-d
  std::string scalar(const Scalar& value, DType dtype) { return number_of(value, dtype); }
  std::string constant(const TensorData& data);
  std::string zeros_or_ones(const Shape& shape, DType dtype, double value);
  // start, start + step, .. as dtype.
  std::string counted(double start, double step, int64_t count, DType dtype);
  bool has_free_sizes() const { return has_free_sizes_; }

  std::string reshaped(const std::string& x, const Shape& shape);
  std::string permuted(const std::string& x, const Dims& dims);
  std::string sliced(const std::string& x, int dim, int64_t start, int64_t end, int64_t step = 1);

  [[noreturn]] void refuse(const Node& node, const std::string& why) const;
  // The node that made a value; null for inputs and constants, and where it was written since.
  const Node* maker(ValueId id) const;
  const graph::Graph& graph() const { return graph_; }

 private:
  struct View {
    const Node* node = nullptr;
    ValueId parent = graph::kNoValue;
  };

  std::string number_of(const Scalar& value, DType dtype);
  std::string read(const Node& node, ValueId id);
  std::string view_of(const Node& reader, const View& view);
  std::string undone(const Node& reader, const View& view, const std::string& now);
  void translate(const Node& node);
  void translate_window(const Node& node);
  void add_inputs();
  void add_outputs(const Names& names);
  void prune();
  std::string fresh(const char* op);
  std::string own(const std::string& name);

  const graph::Graph& graph_;
  const std::vector<std::string>& output_names_;
  bool has_free_sizes_, leaves_values_out_;
  wire::Model model_;
  wire::Graph body_;
  std::unordered_map<ValueId, std::string> names_;
  std::unordered_map<ValueId, std::string> left_out_;
  std::unordered_map<ValueId, View> views_;
  std::unordered_map<ValueId, int> seen_;    // the number of writes that a name counts in
  std::unordered_map<int32_t, int> writes_;  // by memory
  std::unordered_map<ValueId, const Node*> makers_;
  std::map<std::string, std::string> constants_;  // by their bytes
  std::map<std::string, int> taken_;
  int numbers_ = 0;
};

struct Translation {
  int32_t row;
  void (*write)(Writer&, const Node&);
};

// By families.
std::span<const Translation> elementwise_translations();
std::span<const Translation> shape_translations();
std::span<const Translation> reduction_translations();
std::span<const Translation> layer_translations();
std::span<const Translation> recurrence_translations();

// What elementwise rows share with layers: x after an activation.
std::string activated(Writer& w, const std::string& x, Activation activation, DType dtype);

}  // namespace kiln::onnx
