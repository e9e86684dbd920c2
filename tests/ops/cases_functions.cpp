// The functions of kiln/backend/functions.def whose rows say where they are smooth: a case for
// each, and one on the edges of its domain. What is known of single ones stands here too.
#include <string_view>

#include "tests/ops/case.h"

namespace kiln::ops {

namespace {

const Shape kFunctionShape = {3, 4};
const Shape kFunctionBig = {1024, 1024};
const std::vector<double> kFunctionEdges = {0.0,  -0.0,     1.0,       -1.0,  0.5, -2.0,
                                            2.5,  3.5,      -3.25,     0.125, 8,   9.5,
                                            17.0, INFINITY, -INFINITY, NAN};

struct Row {
  std::string_view name;
  Tensor (*call)(TensorArg);
  double low, high;
  std::string_view peer = {};
};

std::string called(std::string_view prefix, const Row& row) {
  return "torch." + std::string(prefix) + std::string(row.name) + "(a)";
}

Case& add(const std::string& name, const std::string& call, const Row& row, Input input) {
  Case& c =
      op(name, call, [f = row.call](const Tensors& x) { return f(x[0]); }, {std::move(input)});
  if (!row.peer.empty()) c.same_as(std::string(row.peer));
  return c;
}

}  // namespace

KILN_OP_CASES(functions) {
  const Row rows[] = {
#define KILN_HOME_tensor(type, doc, name, low, high) {#name, &kiln::name, low, high},
#include "kiln/backend/functions.def"
  };
  for (const Row& row : rows) {
    const std::string name(row.name);
    add(name, called("", row), row, values(kFunctionEdges))
        .dtypes(kDoubles)
        .no_gradient("edges of the domain");
    add(name, called("", row), row, real(kFunctionShape, row.low, row.high))
        .dtypes(kAll)
        .big({real(kFunctionBig, row.low, row.high)});
  }
}

KILN_OP_CASES(special_functions) {
  const Row rows[] = {
#define KILN_HOME_special(type, doc, name, low, high, ...) \
  {#name, &kiln::special::name, low, high __VA_OPT__(, ) __VA_ARGS__},
#include "kiln/backend/functions.def"
  };
  for (const Row& row : rows) {
    const std::string name = "special." + std::string(row.name);
    const std::string call = called("special.", row);
    const bool airy = row.name == "airy_ai";
    const bool bessel = row.name.find("bessel") != std::string_view::npos;
    if (!airy && !bessel) {
      add(name, call, row, values(kFunctionEdges))
          .dtypes(kDoubles)
          .no_gradient("edges of the domain");
      add(name, call, row, real(kFunctionShape, row.low, row.high))
          .dtypes(kFloats)
          .big({real(kFunctionBig, row.low, row.high)});
      continue;
    }
    // Some take microseconds for a number.
    const auto small = [&]() -> Case& {
      return add(name, call, row, real(kFunctionShape, row.low, row.high))
          .dtypes(kDoubles)
          .big({real({128, 512}, row.low, row.high)});
    };
    if (airy || row.name.starts_with("bessel_")) {
      // Compared with mpmath in 60 digits: ours are right to 1e-15 there.
      Case& c = small();
      if (airy) c.no_gradient();
      c.no_peer("its double precision values are off by up to 1e-6");
    } else {
      small().no_gradient("compared without PyTorch in the next case");
      small().no_peer("its derivative is not implemented there");
    }
  }
}

}  // namespace kiln::ops
