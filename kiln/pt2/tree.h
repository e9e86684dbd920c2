// How the arguments and the results of a program nest.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace kiln::pt2 {

// A leaf, or a container of trees. Leaves stand in order: those of a program are its inputs, or its
// outputs.
struct Tree {
  enum class Kind : uint8_t { leaf, tuple, list, dict };
  Kind kind = Kind::leaf;
  std::vector<Tree> items = {};
  // Of a dict, whose integer keys are written as numbers; and of a named tuple's fields.
  std::vector<std::string> keys = {};
  std::vector<bool> is_integer = {};  // for each key
  std::string type = {};              // "builtins.tuple", "my.module.Point"

  size_t leaves() const {
    size_t out = kind == Kind::leaf ? 1 : 0;
    for (const Tree& item : items) out += item.leaves();
    return out;
  }
};

}  // namespace kiln::pt2
