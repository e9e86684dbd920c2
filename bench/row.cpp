#include "bench/row.h"

namespace kiln::bench {

std::vector<Row> standard_rows() {
  std::vector<Row> rows;
  add_small_op_rows(rows);
  add_training_rows(rows);
  return rows;
}

std::vector<Row> extra_rows() {
  std::vector<Row> rows;
  add_large_op_rows(rows);
  add_more_model_rows(rows);
  return rows;
}

}  // namespace kiln::bench
