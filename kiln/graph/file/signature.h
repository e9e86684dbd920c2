// What each row of the op table is given, as data: for files, which may say anything.
#pragma once

#include <vector>

#include "kiln/graph/graph.h"
#include "kiln/graph/rows.h"

namespace kiln::graph {

struct Parameter {
  enum class Type : uint8_t { tensor, optional, list, mutable_list, attribute };
  Type type = Type::attribute;
  Kind kind = Kind::floating;  // of tensors
  size_t attribute = 0;        // which alternative of Attribute
};

// Of the row, in the order of ops.def.
const std::vector<Parameter>& parameters_of(int32_t row);
// How many tensors the row results in.
int results_of(int32_t row);

}  // namespace kiln::graph
