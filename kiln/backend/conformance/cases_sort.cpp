// What is picked from sorted rows, and searches in them. float_sort and int_argsort stand with the
// reductions.
#include <algorithm>
#include <string>

#include "kiln/backend/conformance/cases.h"

namespace kiln::conformance {
namespace {

struct Pick {
  Shape shape;
  int dim;
  int64_t k;
};
const Pick kPicks[] = {{{5}, 0, 2},       {{1}, 0, 1},         {{3, 4}, 0, 3},
                       {{3, 4}, 1, 1},    {{3, 4, 5}, 1, 2},   {{0, 3}, 1, 2},
                       {{2, 67}, 1, 40},  {{67, 2}, 0, 0},     {{3, 500}, 1, 7},
                       {{500, 3}, 0, 60}, {{3, 5000}, 1, 900}, {{90000}, 0, 100}};

void add_picks(CaseList& list, const std::string& kind, DType dtype) {
  for (const Pick& pick : kPicks) {
    // Few distinct numbers: many ties. Then few ties.
    for (const int64_t most : {int64_t{9}, int64_t{100}}) {
      const Operand x = most == 9 || kind == "int" ? list.integers(pick.shape, dtype, 0, most)
                                                   : list.uniform(pick.shape, dtype);
      for (const bool largest : {false, true}) {
        list.add(kind + "_argtopk", {x, pick.k, pick.dim, largest}).expandable = true;
      }
      Shape places = pick.shape;
      for (const int64_t count : {1, 3}) {
        places[pick.dim] = count;
        list.add(kind + "_argplace",
                 {x, list.integers(places, i64, 0, pick.shape[pick.dim] - 1), pick.dim})
            .expandable = true;
      }
    }
  }
}

void add_searches(CaseList& list, const std::string& kind, DType dtype) {
  const auto sorted_row = [&](int64_t n) {
    std::vector<double> row;
    for (int64_t i = 0; i < n; ++i) row.push_back(static_cast<double>(i / 2 * 3 % 100));
    std::sort(row.begin(), row.end());
    return row;
  };
  for (const bool right : {false, true}) {
    const auto add = [&](const Operand& sorted, const Operand& wanted) {
      list.add(kind + "_searchsorted", {sorted, wanted, right});
    };
    for (const int64_t n : {0, 1, 2, 7, 64, 100}) {
      add(values(sorted_row(n), {n}, dtype), list.integers({40}, dtype, 0, 110));
      add(values(sorted_row(n), {n}, dtype), list.integers({2, 3}, dtype, 0, 110));
    }
    add(values(sorted_row(9), {9}, dtype), list.integers({}, dtype, 0, 10));
    add(values({1, 3, 5, 2, 2, 8}, {2, 3}, dtype), list.integers({2, 5}, dtype, 0, 9));
    add(values({1, 3, 5, 2, 2, 8}, {1, 2, 3}, dtype), list.integers({1, 2, 9000}, dtype, 0, 9));
    if (kind == "float") {
      add(values({-kInf, 0, 2, kInf, kNan}, {5}, dtype),
          values({kNan, kInf, -kInf, -0.0, 2, 3}, {6}, dtype));
    }
  }
}

}  // namespace

void add_sort_cases(CaseList& list) {
  for (const DType dtype : list.floats) {
    add_picks(list, "float", dtype);
    add_searches(list, "float", dtype);
    const Operand odd =
        values({1, kNan, 2, kInf, kNan, 3, -kInf, -kInf, -kInf, 0, -0.0, 0}, {4, 3}, dtype);
    for (const int dim : {0, 1}) {
      for (const bool largest : {false, true}) {
        list.add("float_argtopk", {odd, int64_t{3}, dim, largest});
      }
      const Shape places = dim == 0 ? Shape{2, 3} : Shape{4, 2};
      list.add("float_argplace", {odd, list.integers(places, i64, 0, 2), dim});
    }
  }
  for (const DType dtype : list.ints) {
    add_picks(list, "int", dtype);
    add_searches(list, "int", dtype);
  }
}

}  // namespace kiln::conformance
