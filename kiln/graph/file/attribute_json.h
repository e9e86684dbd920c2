// Attributes of rows as JSON and back.
#pragma once

#include "kiln/core/json.h"
#include "kiln/graph/attribute.h"

namespace kiln::graph {

// Whether a file can hold an attribute of this kind (an alternative of Attribute).
bool is_storable(size_t alternative);
// Throws ValueError for one that a file cannot hold: random streams, steps of optimizers, values.
Json to_json(const Attribute& attribute);
// Of the given kind. Throws ValueError, which says what was expected.
Attribute attribute_of(const Json& json, size_t alternative);

// A list of sizes or dims, at most kMaxRank of them. Throws ValueError.
Shape shape_of(const Json& json);
int64_t integer_of(const Json& json);

}  // namespace kiln::graph
