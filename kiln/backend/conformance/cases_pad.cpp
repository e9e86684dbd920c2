// Tensors inside larger ones, and the largest elements of windows.
#include "kiln/backend/conformance/cases.h"

namespace kiln::conformance {

namespace {

void add_pads_of_a_value(CaseList& list, DType dtype) {
  struct Form {
    Shape x, before, behind;
  };
  const Form forms[] = {{{5}, {2}, {3}},
                        {{2, 3, 4}, {0, 0, 1}, {0, 0, 3}},
                        {{3, 4, 2}, {2, 0, 0}, {1, 3, 0}},
                        {{2, 4, 5}, {1, 2, 3}, {0, 1, 2}},
                        {{2, 30}, {0, 20}, {0, 25}},
                        {{0, 4}, {1, 2}, {0, 1}}};
  const Kind kind = kind_of(dtype);
  const char* op = kind == Kind::floating  ? "float_pad"
                   : kind == Kind::integer ? "int_pad"
                                           : "bool_pad";
  for (const auto& [shape, before, behind] : forms) {
    for (const int value : {0, kind == Kind::boolean ? 1 : 3}) {
      const Operand x = kind == Kind::boolean ? list.booleans(shape) : list.uniform(shape, dtype);
      list.add(op, {x, before, behind, Scalar(value)});
    }
  }
}

void add_max_values(CaseList& list, DType dtype) {
  struct Form {
    Shape x;
    PoolOptions options;
  };
  const Form forms[] = {
      {{2, 3, 6, 8}, {}},
      {{1, 2, 9, 37}, {.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}}},
      {{1, 2, 20, 19}, {.kernel = {3, 3}, .stride = {1, 1}, .padding = {1, 1}}},
      {{1, 2, 7, 7}, {.kernel = {7, 7}, .stride = {7, 7}}},
      {{1, 1, 13, 60}, {.kernel = {2, 3}, .stride = {3, 3}, .padding = {1, 1}, .ceil_mode = true}},
      {{2, 1, 9, 40}, {.kernel = {3, 2}, .stride = {1, 4}, .padding = {1, 1}, .dilation = {2, 3}}},
      // Windows whose every position lies in the padding give -inf.
      {{2, 1, 2, 2}, {.stride = {1, 1}, .padding = {1, 1}, .dilation = {3, 3}}},
      {{0, 3, 4, 4}, {}}};
  for (const auto& [x, options] : forms) {
    list.add("float_max_pool2d_values", {list.uniform(x, dtype), options}).expandable = true;
  }
  const Operand odd = values({1, kNan, 2, 3, -kInf, -kInf, kInf, 5, -kInf, -kInf, 7, 6, 1, 2, 3, 4},
                             {1, 1, 4, 4}, dtype);
  list.add("float_max_pool2d_values", {odd, PoolOptions{}});
  list.add("float_max_pool2d_values", {odd, PoolOptions{.stride = {1, 1}, .padding = {1, 1}}});
}

}  // namespace

void add_pad_cases(CaseList& list) {
  for (const DType dtype : list.floats) {
    add_pads_of_a_value(list, dtype);
    add_max_values(list, dtype);
  }
  for (const DType dtype : list.ints) add_pads_of_a_value(list, dtype);
  add_pads_of_a_value(list, bool_);
}

}  // namespace kiln::conformance
