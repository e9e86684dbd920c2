// What an operator of a file sees of a node and its inputs. Internal to kiln/onnx.
#pragma once

#include <optional>
#include <span>

#include "kiln/kiln.h"
#include "kiln/onnx/wire.h"

namespace kiln::onnx {

// The tensor that a file holds. Throws ValueError, NotImplementedError for a dtype that Kiln lacks.
Tensor tensor_of(const wire::Tensor& tensor);
// The dtype with a number of the format.
DType dtype_of_number(int64_t data_type);

class Call {
 public:
  // A value of a run. What does not depend on inputs and parameters is fixed: shapes may come of
  // it.
  struct Value {
    Tensor tensor;
    bool fixed = false;
  };

  Call(const wire::Node& node, int version, std::vector<const Value*> inputs, size_t outputs)
      : node_(node), version_(version), inputs_(std::move(inputs)), outputs_(outputs) {}

  // The operator set of the file.
  int version() const { return version_; }

  size_t inputs() const { return inputs_.size(); }
  bool has(size_t i) const { return i < inputs_.size() && inputs_[i] != nullptr; }
  const Tensor& in(size_t i) const;
  Tensor maybe(size_t i) const { return has(i) ? in(i) : Tensor(); }
  // The integers in a tensor, which say what the operator does.
  std::vector<int64_t> integers(size_t i) const;
  std::vector<double> numbers(size_t i) const;
  double number(size_t i) const;

  size_t outputs() const { return outputs_.size(); }
  void out(Tensor x, size_t i = 0);
  std::vector<Tensor>& results() { return outputs_; }

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
  const wire::Node& node_;
  int version_;
  std::vector<const Value*> inputs_;
  std::vector<Tensor> outputs_;
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

}  // namespace kiln::onnx
