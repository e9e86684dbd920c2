// Lines of CSV without quotes, parsed straight into columns. Internal to kiln/data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "kiln/data/table.h"

namespace kiln::data::detail {

// What a column holds so far.
struct PlainType {
  ColumnType type = ColumnType::text;
  bool widens = false;  // an integer column that becomes real where a number is none
};

struct PlainRows {
  std::vector<TableColumn> columns;
  int64_t rows = 0;
  int64_t lines = 0;   // that were passed, empty ones too
  uint64_t bytes = 0;  // that the values take
  size_t end = 0;      // where the first line begins that is not among them
};

// The rows of text[begin, end), up to a line that wants a closer look: one with a quote, with
// another number of fields, or with a field that does not fit its column. `begin` is the beginning
// of a line.
PlainRows read_plain_rows(std::string_view text, size_t begin, size_t end, char delimiter,
                          const std::vector<PlainType>& types);

}  // namespace kiln::data::detail
