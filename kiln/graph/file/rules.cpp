#include "kiln/graph/file/rules.h"

#include <array>

namespace kiln::graph {

namespace {

using Check = void (*)(const RowCheck&);

const std::array<Check, kRows>& checks() {
  static const auto all = [] {
    std::array<Check, kRows> out{};
    for (const auto rules :
         {shape_rules(), math_rules(), layer_rules(), gradient_rules(), quantized_rules()}) {
      for (const Rule& rule : rules) out[static_cast<size_t>(rule.row)] = rule.check;
    }
    return out;
  }();
  return all;
}

}  // namespace

bool has_rule(int32_t row) { return checks()[static_cast<size_t>(row)] != nullptr; }

void check_row(const Graph& graph, const Node& node) {
  checks()[static_cast<size_t>(node.row)](RowCheck(graph, node));
}

int64_t checked_numel(const Shape& shape) {
  constexpr int64_t kMost = int64_t{1} << 48;
  int64_t n = 1;
  for (const int64_t d : shape) {
    if (d < 0) throw_error<ValueError>("got shape ", shape, "; expected no negative size");
    if (d > kMost || (d != 0 && n > kMost / d)) {
      throw_error<ValueError>("got shape ", shape, "; expected at most 2^48 elements");
    }
    n *= d;
  }
  return n;
}

void RowCheck::require(bool holds, const char* what) const {
  if (holds) return;
  std::string shapes;
  node_.each_operand([&](const Operand& o) {
    shapes += concat(shapes.empty() ? "" : ", ", graph_[o.value].dtype, " ", graph_[o.value].shape);
  });
  throw_error<ValueError>("got (", shapes, "); expected ", what);
}

void RowCheck::require_dim(size_t tensor, size_t argument) const {
  const int dim = get<int>(argument);
  require(dim >= 0 && dim < rank(tensor), "a dim of the operand");
}

void RowCheck::require_dims(size_t tensor, size_t argument) const {
  uint32_t seen = 0;
  for (const int64_t dim : get<Shape>(argument)) {
    require(dim >= 0 && dim < rank(tensor) && (seen >> dim & 1) == 0,
            "distinct dims of the operand");
    seen |= uint32_t{1} << dim;
  }
}

void RowCheck::require_same_dtype(size_t a, size_t b) const {
  require(dtype(a) == dtype(b), "operands of one dtype");
}

void RowCheck::require_shape(size_t tensor, const Shape& shape, const char* what) const {
  require(this->shape(tensor) == shape, what);
}

void RowCheck::require_optional(size_t tensor, const Shape& shape, const char* what,
                                bool may_be_wide) const {
  if (!has(tensor)) return;
  const bool wide = may_be_wide && size_of(dtype(0)) == 2 && dtype(tensor) == DType::f32;
  require(this->shape(tensor) == shape && (wide || dtype(tensor) == dtype(0)), what);
}

}  // namespace kiln::graph
