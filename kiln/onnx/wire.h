// What an ONNX file says, and its encoding. Internal to kiln/onnx.
//
// The encoding is protobuf's wire format: numbered fields, each a number of variable length, a
// fixed number of 4 or 8 bytes, or so many bytes: a text, numbers one after another, or fields
// again. Only the fields that Kiln uses have a place here; others are skipped. (Debian's static
// protobuf cannot be linked into a shared library, and a second shared one in a Python process ends
// in a crash.)
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::onnx::wire {

struct Graph;

struct Entry {
  std::string key, value;
};
struct Tensor {
  std::vector<int64_t> dims;
  int64_t data_type = 0;
  std::vector<float> float_data;
  std::vector<int64_t> int32_data;
  std::vector<std::string> string_data;
  std::vector<int64_t> int64_data;
  std::string name;
  std::string raw_data;
  std::vector<Entry> external_data;
  int64_t data_location = 0;
  std::vector<double> double_data;
  std::vector<int64_t> uint64_data;
};
struct Attribute {
  std::string name;
  float f = 0;
  int64_t i = 0;
  std::string s;
  std::vector<Tensor> t;  // none or one
  std::vector<Graph> g;   // none or one
  std::vector<float> floats;
  std::vector<int64_t> ints;
  std::vector<std::string> strings;
  std::vector<Tensor> tensors;
  std::vector<Graph> graphs;
  int64_t type = 0;
  std::string reference;  // of a function's node: the attribute of the call
};
struct Node {
  std::vector<std::string> input, output;
  std::string name, op_type;
  std::vector<Attribute> attribute;
  std::string domain;
  std::string overload;  // which of the functions of one name
};
struct Dimension {
  int64_t value = 0;
  std::string param;  // "": a number
};
struct TensorShape {
  std::vector<Dimension> dim;
};
struct TensorType {
  int64_t elem_type = 0;
  std::vector<TensorShape> shape;  // none or one
};
struct Type {
  std::vector<TensorType> tensor_type;  // none or one
};
struct ValueInfo {
  std::string name;
  std::vector<Type> type;  // none or one
};
struct Graph {
  std::vector<Node> node;
  std::string name;
  std::vector<Tensor> initializer;
  std::vector<ValueInfo> input, output;
};
struct OperatorSet {
  std::string domain;
  int64_t version = 0;
};
// An operator that the file defines by nodes.
struct Function {
  std::string name;
  std::vector<std::string> input, output;
  std::vector<std::string> attribute;  // whose values a call gives
  std::vector<Node> node;
  std::vector<OperatorSet> opset_import;
  std::string domain;
  std::vector<Attribute> defaults;  // of attributes
  std::string overload;
};
struct Model {
  int64_t ir_version = 0;
  std::string producer_name, producer_version;
  std::vector<Graph> graph;  // none or one
  std::vector<OperatorSet> opset_import;
  std::vector<Function> function;
};

std::string encode(const Model& model);
// Throws ValueError, which says at which byte, for malformed or deeply nested input. Takes at most
// a small multiple of the input's size in memory.
Model decode(std::string_view bytes);

}  // namespace kiln::onnx::wire
