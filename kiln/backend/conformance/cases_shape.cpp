// Shape ops and indexing.
#include "kiln/backend/conformance/cases.h"

namespace kiln::conformance {
namespace {

std::string named(const char* kind, const char* op) { return std::string(kind) + "_" + op; }

Operand any(CaseList& list, const Shape& shape, DType dtype) {
  return dtype == bool_ ? list.booleans(shape) : list.uniform(shape, dtype, 0, 100);
}

void add_shapes(CaseList& list, const char* kind, DType dtype) {
  const auto add = [&](const char* op, std::vector<Argument> arguments) {
    list.add(named(kind, op), std::move(arguments)).expandable = true;
  };
  const std::pair<Shape, Shape> reshapes[] = {{{}, {1, 1}},           {{1}, {}},
                                              {{6}, {2, 3}},          {{2, 3, 4}, {24}},
                                              {{2, 3, 4}, {6, 4}},    {{2, 3, 4}, {2, 12}},
                                              {{2, 3, 4}, {4, 3, 2}}, {{2, 3, 4}, {2, 1, 3, 4}},
                                              {{0, 3}, {3, 0, 2}},    {{2, 1, 4}, {8}}};
  for (const auto& [from, to] : reshapes) add("reshape", {any(list, from, dtype), to});

  const std::pair<Shape, Dims> permutations[] = {
      {{}, {}}, {{5}, {0}}, {{2, 3}, {1, 0}}, {{2, 3, 4}, {2, 0, 1}}, {{2, 0, 3}, {1, 2, 0}}};
  for (const auto& [shape, dims] : permutations) add("permute", {any(list, shape, dtype), dims});

  const std::pair<Shape, Shape> expansions[] = {{{}, {}},         {{}, {2, 3}},        {{1}, {4}},
                                                {{3, 1}, {3, 4}}, {{1, 4}, {2, 3, 4}}, {{1}, {0}}};
  for (const auto& [from, to] : expansions) add("expand", {any(list, from, dtype), to});

  const Operand x = any(list, {4, 5, 6}, dtype);
  add("slice", {x, 0, Range{1, 3, 1}});
  add("slice", {x, 1, Range{0, 5, 2}});
  add("slice", {x, 2, Range{1, 6, 3}});
  add("slice", {x, 2, Range{2, 2, 1}});
  add("slice", {any(list, {0, 3}, dtype), 0, Range{0, 0, 1}});
  add("slice", {any(list, {7}, dtype), 0, Range{0, 7, 1}});

  add("flip", {x, Dims{}});
  add("flip", {x, Dims{0}});
  add("flip", {x, Dims{2, 0}});
  add("flip", {any(list, {0, 3}, dtype), Dims{0, 1}});
  add("flip", {any(list, {}, dtype), Dims{}});

  const auto cat = [&](OperandList parts, int dim) { add("cat", {std::move(parts), dim}); };
  cat({any(list, {3}, dtype)}, 0);
  cat({any(list, {3}, dtype), any(list, {2}, dtype)}, 0);
  cat({any(list, {2, 3}, dtype), any(list, {2, 0}, dtype), any(list, {2, 4}, dtype)}, 1);
  cat({any(list, {2, 3, 4}, dtype), any(list, {1, 3, 4}, dtype)}, 0);
  cat({any(list, {0, 3}, dtype), any(list, {0, 2}, dtype)}, 1);
  cat({any(list, {200, 30}, dtype), any(list, {200, 300}, dtype)}, 1);
}

void add_indexing(CaseList& list, const char* kind, DType dtype) {
  const bool numbers = dtype != bool_;
  const Tolerance sums = {16.0, 0.0};  // each addition may round
  const auto index = [&](const Shape& shape, int64_t size) {
    return list.integers(shape, i64, 0, size - 1);
  };
  const auto x = [&](const Shape& shape) { return any(list, shape, dtype); };

  list.add(named(kind, "gather"), {x({4, 5}), 0, index({3, 5}, 4)}).expandable = true;
  list.add(named(kind, "gather"), {x({4, 5}), 1, index({4, 7}, 5)}).expandable = true;
  list.add(named(kind, "gather"), {x({4, 5}), 1, index({2, 3}, 5)}).expandable = true;
  list.add(named(kind, "gather"), {x({2, 3, 4}), 1, index({2, 6, 4}, 3)}).expandable = true;
  list.add(named(kind, "gather"), {x({6}), 0, index({0}, 6)});
  list.add(named(kind, "gather"), {x({6}), 0, index({9}, 6)});
  list.add(named(kind, "gather"), {x({130, 257}), 1, index({130, 260}, 257)});
  list.add(named(kind, "gather"), {x({3}), 0, int_values({0, 3})});   // IndexError
  list.add(named(kind, "gather"), {x({3}), 0, int_values({-1, 0})});  // IndexError

  const auto distinct = [&](const Shape& shape, int dim, int64_t size) {
    return list.distinct_indices(shape, dim, size);
  };
  list.add(named(kind, "scatter"), {x({4, 5}), 0, distinct({3, 5}, 0, 4), x({3, 5})});
  list.add(named(kind, "scatter"), {x({4, 5}), 1, distinct({4, 5}, 1, 5), x({4, 5})});
  list.add(named(kind, "scatter"), {x({2, 3, 4}), 2, distinct({2, 2, 3}, 2, 4), x({2, 2, 3})});
  list.add(named(kind, "scatter"), {x({6}), 0, int_values({}), x({0})});
  list.add(named(kind, "scatter"), {x({3}), 0, int_values({5}), x({1})});  // IndexError

  list.add(named(kind, "index_select"), {x({4, 5}), 0, index({3}, 4)}).expandable = true;
  list.add(named(kind, "index_select"), {x({4, 5}), 1, index({8}, 5)}).expandable = true;
  list.add(named(kind, "index_select"), {x({2, 3, 4}), 1, index({5}, 3)}).expandable = true;
  list.add(named(kind, "index_select"), {x({4, 5}), 0, int_values({})});
  list.add(named(kind, "index_select"), {x({0, 5}), 1, index({2}, 5)});
  list.add(named(kind, "index_select"), {x({1000, 64}), 0, index({900}, 1000)});
  list.add(named(kind, "index_select"), {x({4, 5}), 0, int_values({7})});   // IndexError
  list.add(named(kind, "index_select"), {x({4, 5}), 1, int_values({-1})});  // IndexError

  const Operand mask = list.booleans({3, 4});
  list.add(named(kind, "mask_where"), {x({3, 4}), mask, x({3, 4})}).expandable = true;
  list.add(named(kind, "mask_where"), {x({3, 4}), list.booleans({4}), x({})});
  list.add(named(kind, "mask_where"), {x({}), mask, x({3, 1})});
  list.add(named(kind, "mask_where"), {x({4}), list.booleans({2, 1, 1}), x({3, 1})});
  list.add(named(kind, "mask_where"), {x({0}), list.booleans({1}), x({})});
  list.add(named(kind, "mask_where"), {x({130, 257}), list.booleans({130, 257}), x({130, 257})});
  list.add(named(kind, "mask_fill"), {x({3, 4}), mask, Scalar(5)}).expandable = true;
  list.add(named(kind, "mask_fill"), {x({4}), mask, Scalar(0)});
  list.add(named(kind, "mask_fill"), {x({}), list.booleans({}), Scalar(1)});
  list.add(named(kind, "mask_fill"), {x({130, 257}), list.booleans({130, 1}), Scalar(1)});

  if (!numbers) return;
  // Repeated indices add up. Sums stay exact in every dtype, being small whole numbers.
  const auto small = [&](const Shape& shape) { return list.integers(shape, dtype, 0, 3); };
  list.add(named(kind, "scatter_add"), {x({4, 5}), 0, index({9, 5}, 4), x({9, 5})}, sums)
      .elementwise = false;
  list.add(named(kind, "scatter_add"), {small({4, 5}), 1, index({3, 7}, 5), small({3, 7})});
  list.add(named(kind, "scatter_add"),
           {small({2, 3, 4}), 1, index({2, 2, 4}, 3), small({2, 2, 4})});
  list.add(named(kind, "scatter_add"), {small({50}), 0, index({400}, 50), small({400})});
  list.add(named(kind, "scatter_add"), {small({3, 64}), 1, index({3, 0}, 64), small({3, 0})});
  list.add(named(kind, "scatter_add"), {x({3}), 0, int_values({0, 3}), x({2})});  // IndexError
  list.add(named(kind, "index_add"), {x({4, 5}), 0, index({9}, 4), x({9, 5})}, sums).elementwise =
      false;
  list.add(named(kind, "index_add"), {small({4, 5}), 1, index({7}, 5), small({4, 7})});
  list.add(named(kind, "index_add"), {small({2, 3, 4}), 1, index({2}, 3), small({2, 2, 4})});
  list.add(named(kind, "index_add"), {small({6}), 0, int_values({}), small({0})});
  list.add(named(kind, "index_add"), {small({20, 64}), 0, index({800}, 20), small({800, 64})});
  list.add(named(kind, "index_add"), {x({4, 5}), 0, int_values({4}), x({1, 5})});  // IndexError
}

void add_bags(CaseList& list, DType dtype) {
  const auto index = [&](int64_t count, int64_t size) {
    return list.integers({count}, i64, 0, size - 1);
  };
  const auto bags = [&](const Shape& table, const Operand& rows, const Operand& starts) {
    for (bool mean : {false, true}) {
      list.add("float_bag_sum", {list.uniform(table, dtype, -1.5, 1.5), rows, starts, mean}, {8, 8})
          .elementwise = false;
    }
  };
  bags({5, 3}, index(7, 5), int_values({0, 2, 2, 5, 7}));
  bags({5, 67}, index(40, 5), int_values({0, 1, 20, 20, 39, 40}));
  bags({4, 2}, int_values({}), int_values({0, 0, 0}));
  bags({4, 2}, int_values({}), int_values({0}));
  bags({4, 0}, index(3, 4), int_values({0, 3}));
  bags({4, 2}, int_values({0, 4, 1}), int_values({0, 2, 3}));  // IndexError
  if (dtype != f32) return;
  std::vector<int64_t> starts;
  for (int64_t i = 0; i <= 900; i += 9) starts.push_back(i);
  bags({300, 130}, index(900, 300), int_values(starts));
}

void add_kind(CaseList& list, const char* kind, DType dtype, bool indexing) {
  if (indexing) {
    add_indexing(list, kind, dtype);
  } else {
    add_shapes(list, kind, dtype);
  }
}

void add_all_kinds(CaseList& list, bool indexing) {
  for (DType dtype : list.floats) add_kind(list, "float", dtype, indexing);
  for (DType dtype : list.ints) add_kind(list, "int", dtype, indexing);
  add_kind(list, "bool", bool_, indexing);
}

}  // namespace

void add_shape_cases(CaseList& list) { add_all_kinds(list, false); }
void add_index_cases(CaseList& list) {
  add_all_kinds(list, true);
  for (DType dtype : list.floats) add_bags(list, dtype);
}

}  // namespace kiln::conformance
