// Tables from CSV and JSON Lines files, column by column.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "kiln/data/dataset.h"
#include "kiln/tensor/tensor.h"

namespace kiln::data {

enum class ColumnType { boolean, integer, real, text };
// What becomes of a row that does not fit: an error, or it is left out and counted.
enum class BadRows { raise, skip };

struct TableOptions {
  // What columns hold. Of others the first row decides; whole numbers become reals where one of
  // them is none.
  std::map<std::string, ColumnType> types = {};
  BadRows bad_rows = BadRows::raise;
  char delimiter = ',';                 // of CSV
  bool header = true;                   // whether CSV begins with names; else they are "0", "1", ..
  std::vector<std::string> names = {};  // of the columns of a CSV file without a header
  uint64_t max_bytes = uint64_t{4} << 30;
};

// The values of a column: those of its type.
struct TableColumn {
  ColumnType type = ColumnType::text;
  std::vector<double> reals = {};
  std::vector<int64_t> integers = {};  // and bools
  std::vector<std::string> texts = {};
};

class Table {
 public:
  // Rows.
  int64_t size() const { return size_; }
  // Rows that were left out.
  int64_t skipped() const { return skipped_; }
  const std::vector<std::string>& names() const { return names_; }
  ColumnType type(const std::string& name) const;
  // A column of numbers as bool, i64 or f64 [N]. Throws KeyError, TypeError for one of texts.
  Tensor numbers(const std::string& name) const;
  // Throws KeyError, TypeError for a column of numbers.
  const std::vector<std::string>& texts(const std::string& name) const;
  // Samples of features f32 [K], in this order, and the target's value. Throws as numbers() does,
  // and ValueError without features.
  TensorDataset dataset(const std::vector<std::string>& features, const std::string& target) const;

 private:
  friend class TableBuilder;
  const TableColumn& column(const std::string& name) const;

  std::vector<std::string> names_;
  std::vector<TableColumn> columns_;
  int64_t size_ = 0;
  int64_t skipped_ = 0;
};

// Fields stand between delimiters, in quotes where they hold one, a line's end or a quote ("" is
// one in quotes: RFC 4180). Rows are numbered as the file's lines, by their last one. Throws
// IoError for a file that cannot be read, KeyError for types of columns that are not there, and
// ValueError that names file, row and column for a row that is ragged, empty where a number stands,
// of a wrong type, or no UTF-8, and for two columns of one name.
Table read_csv(const std::string& path, const TableOptions& options = {});

namespace detail {
// The same, with another name in messages.
Table read_csv_as(const char* op, const std::string& path, const TableOptions& options);
}  // namespace detail

// A file with a JSON object on each line, with bools, numbers and texts. The first one decides
// which columns there are; others in later lines are left out. Throws what read_csv() throws.
Table read_json_lines(const std::string& path, const TableOptions& options = {});

}  // namespace kiln::data
