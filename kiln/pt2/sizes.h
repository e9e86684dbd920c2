// The sizes that a file declares for its inputs: numbers, symbols with a range, and expressions of
// symbols. Internal to kiln/pt2.
#pragma once

#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kiln/core/json.h"
#include "kiln/core/shape.h"

namespace kiln::pt2 {

using Symbols = std::map<std::string, int64_t>;

// A size as SymPy's srepr writes it: "Mul(Integer(2), Symbol('s77', positive=True))".
class SizeExpression {
 public:
  // Of text that is no sum, difference or product of symbols and integers nothing is known.
  explicit SizeExpression(const std::string& text);

  // Nothing when a symbol has no value, nothing is known, or the result overflows.
  std::optional<int64_t> value(const Symbols& symbols) const;
  // The value of the only symbol that has none, with which the expression is `size`: what is linear
  // in it is solved. Nothing is changed when there is no such symbol. False: no integer solves it.
  bool solve(int64_t size, Symbols& symbols) const;

  const std::vector<std::string>& symbols() const { return names_; }
  // "2*s77 + 1"; "?" when nothing is known.
  std::string str() const;

 private:
  struct Node;
  class Parser;
  std::optional<int64_t> value(const Node& node, const Symbols& symbols) const;
  static std::string str(const Node& node);

  std::shared_ptr<const Node> root_;  // null: nothing is known
  std::vector<std::string> names_;    // of the symbols
};

// The sizes of one input.
struct DeclaredShape {
  std::vector<std::optional<SizeExpression>> free;  // for each dim; nothing: its size is `fixed`
  Shape fixed;
};

struct Range {
  int64_t least = 0, most = std::numeric_limits<int64_t>::max();
};

// Throws ValueError for sizes that are malformed.
DeclaredShape declared_shape(const Json& sizes);
std::map<std::string, Range> declared_ranges(const Json& constraints);

// What the inputs' sizes say of the symbols, checked. Throws ShapeError, which names the input.
class SizeCheck {
 public:
  explicit SizeCheck(const std::map<std::string, Range>& ranges) : ranges_(ranges) {}
  void add(const std::string& input, const DeclaredShape& declared, const Shape& shape);
  // After all inputs.
  void finish();

 private:
  struct Pending {
    std::string input;
    int dim;
    int64_t size;
    const SizeExpression* expression;
  };
  const std::map<std::string, Range>& ranges_;
  Symbols symbols_;
  std::vector<Pending> pending_;
};

}  // namespace kiln::pt2
