// What the tensor layer sees to before it calls a row, for rows that come from a file: dims in
// range, shapes that fit each other, sizes that no arithmetic overflows.
//
// Note [Rules]
// A row of the op table trusts its arguments. A graph that was captured has been checked by the
// functions that it was captured from; a graph from a file has not. Each row that a file may hold
// has a rule here; a row without one is in no file. A rule looks at shapes alone. What a row
// results in is told by the Meta backend, so that no shape is taken on the file's word.
#pragma once

#include <span>

#include "kiln/graph/graph.h"
#include "kiln/graph/rows.h"

namespace kiln::graph {

// A row and the shapes that it is given.
class RowCheck {
 public:
  RowCheck(const Graph& graph, const Node& node) : graph_(graph), node_(node) {}

  // Of the tensor that stands at an argument.
  const Value& value(size_t argument) const { return graph_[operands(argument)[0].value]; }
  const Shape& shape(size_t argument) const { return value(argument).shape; }
  DType dtype(size_t argument) const { return value(argument).dtype; }
  int rank(size_t argument) const { return shape(argument).rank(); }
  bool has(size_t argument) const { return operands(argument)[0].value != kNoValue; }
  const std::vector<Operand>& operands(size_t argument) const {
    return node_.arguments[argument].operands;
  }
  const Value& of(const Operand& operand) const { return graph_[operand.value]; }
  template <class T>
  const T& get(size_t argument) const {
    return std::get<T>(node_.arguments[argument].attribute);
  }

  // Each throws ValueError with `what` it expects.
  void require(bool holds, const char* what) const;
  void require_dim(size_t tensor, size_t argument) const;   // an int that names a dim
  void require_dims(size_t tensor, size_t argument) const;  // distinct dims
  void require_same_dtype(size_t a, size_t b) const;
  void require_shape(size_t tensor, const Shape& shape, const char* what) const;
  // An optional operand of the first one's dtype; or, if it `may_be_wide`, of f32 beside 16-bit
  // floats.
  void require_optional(size_t tensor, const Shape& shape, const char* what,
                        bool may_be_wide = false) const;

 private:
  const Graph& graph_;
  const Node& node_;
};

struct Rule {
  int32_t row;
  void (*check)(const RowCheck&);
};

// By families.
std::span<const Rule> shape_rules();
std::span<const Rule> math_rules();
std::span<const Rule> layer_rules();
std::span<const Rule> gradient_rules();
std::span<const Rule> quantized_rules();

// Whether a file may hold the row.
bool has_rule(int32_t row);
// Throws ValueError, or ShapeError of a broadcast.
void check_row(const Graph& graph, const Node& node);

// The number of elements. Throws ValueError for a negative size and for more than 2^48 elements.
int64_t checked_numel(const Shape& shape);

}  // namespace kiln::graph
