// Products with sparse matrices in compressed rows.
#include "kiln/backend/conformance/cases.h"

namespace kiln::conformance {

namespace {

// Products with a sparse matrix of [starts - 1, columns].
void add_csr(CaseList& list, DType dtype) {
  const auto products = [&](const std::vector<int64_t>& starts, const Operand& col, int64_t columns,
                            int64_t width) {
    const int64_t rows = static_cast<int64_t>(starts.size()) - 1;
    const int64_t count = col.data.shape()[0];
    const double length = 8.0 + static_cast<double>(count + width);
    const auto x = [&](const Shape& shape) { return list.uniform(shape, dtype, -1.5, 1.5); };
    const Operand crow = int_values(starts);
    for (const bool turned : {false, true}) {
      list.add("float_csr_matmul",
               {crow, col, x({count}), x({turned ? rows : columns, width}), columns, turned},
               {8, length})
          .elementwise = false;
    }
    list.add("float_csr_sampled_matmul", {crow, col, x({rows, width}), x({columns, width})},
             {8, length})
        .elementwise = false;
  };
  const auto at = [&](int64_t count, int64_t columns) {
    return list.integers({count}, i64, 0, columns - 1);
  };
  products({0, 2, 2, 5, 7}, at(7, 5), 5, 3);
  products({0, 1, 20, 20, 39, 40}, at(40, 5), 5, 67);
  products({0, 0, 0}, int_values({}), 4, 2);
  products({0}, int_values({}), 4, 2);
  products({0, 0}, int_values({}), 0, 2);
  products({0, 2, 3}, int_values({1, 1, 0}), 4, 0);
  products({0, 2, 3}, int_values({1, 4, 0}), 4, 2);   // IndexError
  products({0, 2, 3}, int_values({1, -1, 0}), 4, 2);  // IndexError
  if (dtype != f32) return;
  std::vector<int64_t> starts;
  for (int64_t i = 0; i <= 1800; i += 9) starts.push_back(i);
  products(starts, at(1800, 300), 300, 130);
  products({0, 700, 701, 1000}, at(1000, 90), 90, 31);
}

}  // namespace

void add_sparse_cases(CaseList& list) {
  for (DType dtype : list.floats) add_csr(list, dtype);
}

}  // namespace kiln::conformance
