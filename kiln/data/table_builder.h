// How rows become a Table.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "kiln/core/budget.h"
#include "kiln/data/plain_rows.h"
#include "kiln/data/table.h"

namespace kiln::data {

// A value of a row: nothing (missing), or one of a column's types.
using Cell = std::variant<std::monostate, bool, int64_t, double, std::string>;

// What is wrong with a row, and in which column.
struct BadRow {
  std::string what;
  std::string column = {};
};

class TableBuilder {
 public:
  TableBuilder(const char* op, std::string path, const TableOptions& options, Budget& budget)
      : op_(op), path_(std::move(path)), options_(options), budget_(budget) {}

  bool has_names() const { return has_names_; }
  // Throws KeyError, ValueError.
  void begin(std::vector<std::string> names, int64_t row);
  const std::vector<std::string>& names() const { return table_.names_; }
  // What the options say of a column.
  std::optional<ColumnType> given(const std::string& name) const;
  // What a column holds: given, or decided by the first row that was added.
  std::optional<ColumnType> type(size_t column) const { return types_[column]; }
  // Adds a row, or rejects it.
  void add(int64_t row, const std::vector<Cell>& cells);
  // Adds rows that were read by plain_types().
  void add(detail::PlainRows rows);
  std::vector<detail::PlainType> plain_types() const;
  // Whether there is a row, so that columns have types.
  bool has_rows() const { return table_.size_ > 0; }
  // Throws ValueError, or counts.
  void reject(int64_t row, const BadRow& bad);
  Table finish();

 private:
  void check(size_t column, const Cell& cell) const;  // throws BadRow
  [[noreturn]] void fail(int64_t row, const BadRow& bad) const;

  const char* op_;
  std::string path_;
  const TableOptions& options_;
  Budget& budget_;
  Table table_;
  std::vector<std::optional<ColumnType>> types_;
  bool has_names_ = false;
};

}  // namespace kiln::data
