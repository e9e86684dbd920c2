// The tables that a configuration names, and columns of them as classes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/train/fields.h"
#include "kiln/data/table.h"

namespace kiln::cli {

struct TableFiles {
  data::Table training;
  std::optional<data::Table> validation, test;
  int64_t skipped() const;
};
// Reads "train", "valid", "test", "delimiter", "header" and "bad_rows". All have the columns of the
// first.
TableFiles read_tables(bool csv, Fields& fields, const std::string& folder);

// The different values of a column, in order: texts by letters, whole numbers and flags by size.
std::vector<std::string> classes_of(const data::Table& table, const std::string& column);
// Each row's place among the classes, i64 [N]. Throws ValueError for a value that is none of them.
Tensor labels_of(const data::Table& table, const std::string& column,
                 const std::vector<std::string>& classes);

}  // namespace kiln::cli
