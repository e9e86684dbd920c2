// What an operator of a file sees of a node and its inputs. Internal to kiln/onnx.
#pragma once

#include <memory>
#include <optional>
#include <span>

#include "kiln/kiln.h"
#include "kiln/onnx/wire.h"

namespace kiln::onnx {

// The tensor that a file holds. Throws ValueError, NotImplementedError for a dtype that Kiln lacks.
Tensor tensor_of(const wire::Tensor& tensor);
// The dtype with a number of the format.
DType dtype_of_number(int64_t data_type);

// A value of a run: a tensor, a sequence of tensors, or an optional one that is absent.
struct Value {
  Tensor tensor = {};
  // What does not depend on inputs and parameters is fixed: shapes may come of it.
  bool fixed = false;
  std::shared_ptr<const TensorList> sequence = nullptr;

  bool is_there() const { return tensor.defined() || sequence != nullptr; }
};
using Values = std::vector<Value>;

// The values of one run, by slot.
struct Frame {
  Values slots;
  int64_t inner_runs = 0;  // of graphs that nodes hold

  Value& operator[](int slot) { return slots[static_cast<size_t>(slot)]; }
};

struct Step;

class Call {
 public:
  // frame: what graphs of the node run on.
  Call(const Step& step, Frame& frame);

  // Several nodes' operators are one function.
  const char* name() const;

  // The operator set of the file.
  int version() const;

  size_t inputs() const { return inputs_.size(); }
  bool has(size_t i) const { return i < inputs_.size() && inputs_[i] != nullptr; }
  const Tensor& in(size_t i) const;
  Tensor maybe(size_t i) const { return has(i) ? in(i) : Tensor(); }
  const TensorList& sequence(size_t i) const;
  // An input as it is; an absent one where there is none.
  Value value(size_t i) const { return has(i) ? *inputs_[i] : Value{.fixed = true}; }
  // The integers in a tensor, which say what the operator does.
  std::vector<int64_t> integers(size_t i) const;
  std::vector<double> numbers(size_t i) const;
  double number(size_t i) const;

  size_t outputs() const { return outputs_.size(); }
  void out(Tensor x, size_t i = 0);
  void out_sequence(TensorList xs, size_t i = 0);
  // Of a node with graphs: it says itself whether its results are fixed.
  void out_value(Value x, size_t i);
  Values& results() { return outputs_; }

  // What a graph of the node gives for these inputs. More than a million of such runs in one of the
  // model are taken for a loop that never ends.
  bool has_graph(const char* name) const { return block(name) != nullptr; }
  Values run(const char* name, Values inputs);
  size_t graph_inputs(const char* name) const;
  size_t graph_outputs(const char* name) const;
  // No elements, of the dtype and the sizes that a graph declares for an output, behind a dim of 0.
  Tensor nothing_like(const char* name, size_t output) const;
  // Whether a value is true. Reading one that is not fixed ends a capture.
  bool truth(const Value& x) const;

  const wire::Attribute* attribute(const char* name) const;
  bool has(const char* name) const { return attribute(name) != nullptr; }
  int64_t i(const char* name, int64_t otherwise) const;
  double f(const char* name, double otherwise) const;
  std::string s(const char* name, const char* otherwise) const;
  std::vector<int64_t> ints(const char* name) const;
  // An attribute of older operator sets that is an input of newer ones.
  std::optional<std::vector<int64_t>> ints_or_input(const char* name, size_t i) const;

  // An axis in [0, rank).
  int64_t axis(int64_t axis, int64_t rank) const;
  int64_t axis_of(const char* name, int64_t otherwise, int64_t rank) const {
    return axis(i(name, otherwise), rank);
  }
  [[noreturn]] void refuse(const std::string& what) const;  // it is legal, and Kiln lacks it
  [[noreturn]] void fail(const std::string& what) const;

 private:
  const struct Block* block(const char* name) const;

  const Step& step_;
  Frame& frame_;
  std::vector<const Value*> inputs_;
  Values outputs_;
};

struct Operator {
  const char* name;
  void (*run)(Call&);
};

// By families.
std::span<const Operator> elementwise_operators();
std::span<const Operator> shape_operators();
std::span<const Operator> reduction_operators();
std::span<const Operator> layer_operators();
std::span<const Operator> recurrent_operators();
std::span<const Operator> loss_operators();
std::span<const Operator> resize_operators();
std::span<const Operator> attention_operators();
std::span<const Operator> image_operators();
std::span<const Operator> signal_operators();
std::span<const Operator> selection_operators();
std::span<const Operator> quantized_operators();
std::span<const Operator> control_operators();
std::span<const Operator> sequence_operators();
std::span<const Operator> contributed_operators();
std::span<const Operator> language_operators();

}  // namespace kiln::onnx
