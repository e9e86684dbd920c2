// The table on the terminal.
#pragma once

#include <string>
#include <vector>

#include "bench/runner.h"

namespace kiln::bench {

class Table {
 public:
  // `peer` is empty when Kiln runs alone. Columns fit the rows that will come.
  Table(const std::vector<Row>& rows, std::string peer, bool has_compiled);

  void print_peaks(const Peaks& peaks) const;
  void print_head() const;
  void print(const Result& result) const;
  // Under the last row: the ratios in one number, by their geometric mean.
  void print_foot(const std::vector<Result>& results) const;

 private:
  std::string peer_;
  bool has_compiled_;
  int name_width_ = 4;
  bool colors_ = false;
};

}  // namespace kiln::bench
