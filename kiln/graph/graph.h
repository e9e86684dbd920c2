// Graph: a computation as a list of rows of the op table.
//
// A graph is what a call of a function did: values, and nodes that made them, in the order in which
// they ran. It is captured by calling the function (kiln/graph/capture.h), changed by passes
// (kiln/graph/passes/) and run again as a Plan (kiln/graph/plan.h).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kiln/backend/dispatch/dispatch.h"
#include "kiln/backend/layout.h"
#include "kiln/graph/attribute.h"

namespace kiln::graph {

using ValueId = int32_t;
inline constexpr ValueId kNoValue = -1;

// Where a value comes from.
enum class Origin : uint8_t {
  input,     // given in each call
  constant,  // a tensor that was there before: a parameter, a buffer, a number
  node,      // computed
};

struct Value {
  Shape shape;
  DType dtype = DType::f32;
  Device device;
  Origin origin = Origin::node;
  std::string name;  // of an input or a parameter
  // Values of one number may share memory, others do not.
  int32_t memory = 0;
  bool row_major = false;  // how it lies in memory
  Dims order;              // of its dims there, outermost first: where it is row-major but for that
  ErasedTensor constant;   // of Origin::constant

  int64_t bytes() const;
  // Where layout is false, nothing is known.
  void set_layout(const Layout& layout);
};

// A tensor that a node is given.
struct Operand {
  ValueId value = kNoValue;  // kNoValue: an optional one that is absent
  bool in_place = false;     // it is written
  bool last = false;         // no later node reads it: its memory may be taken
};

// An argument of a row: a tensor, several, or an attribute.
struct Argument {
  enum class Kind : uint8_t { tensor, list, attribute };
  Kind kind = Kind::attribute;
  std::vector<Operand> operands;  // one for Kind::tensor
  Attribute attribute = false;
};

// What a node does.
enum class NodeKind : uint8_t {
  row,          // a row of the op table
  as_strided,   // a view: shape, strides, offset
  reinterpret,  // a view as another dtype: dtype, shape, strides, offset
  check,        // looks at values, and throws when they are not legal
  expect,       // reads a value and ends the replay when it is not that of the capture
  call,         // a function on the host: an optimizer's step
  fused,        // several elementwise rows, tile by tile
};

struct FusedRows;
using HostFunction = std::function<void(std::span<const ErasedTensor>)>;

struct Node {
  NodeKind kind = NodeKind::row;
  int32_t row = -1;  // of NodeKind::row and expect
  std::string name;  // "float_add"
  std::vector<Argument> arguments;
  std::vector<ValueId> results;
  HostFunction host;                       // of check and call
  std::shared_ptr<const FusedRows> fused;  // of NodeKind::fused
  std::vector<ValueId> released;           // what no later node needs (Plan)

  // Calls f(const Operand&) for each tensor that is given.
  template <class F>
  void each_operand(F&& f) const {
    for (const Argument& a : arguments) {
      for (const Operand& o : a.operands) {
        if (o.value != kNoValue) f(o);
      }
    }
  }
  template <class F>
  void each_operand(F&& f) {
    for (Argument& a : arguments) {
      for (Operand& o : a.operands) {
        if (o.value != kNoValue) f(o);
      }
    }
  }
  // Whether it does more than compute its results: writes, checks, calls.
  bool has_effect() const;
};

// What a node takes: from its shapes alone.
struct Cost {
  int64_t flops = 0;
  int64_t bytes = 0;  // of what it reads and writes
};

struct Graph {
  std::vector<Value> values;
  std::vector<Node> nodes;
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;

  Value& operator[](ValueId id) { return values[static_cast<size_t>(id)]; }
  const Value& operator[](ValueId id) const { return values[static_cast<size_t>(id)]; }
  std::vector<ValueId> constants() const;

  // "%5 = float_add(%3, %4)  float32 [2, 3]", a line for each node.
  std::string str() const;
  // For Graphviz.
  std::string to_dot() const;
  // How the values of one call are named: "%5", "x", "fc.weight".
  std::string name_of(ValueId id) const;

  Cost cost(const Node& node) const;
  Cost cost() const;
};

inline std::string to_string(const Graph& graph) { return graph.str(); }

}  // namespace kiln::graph
