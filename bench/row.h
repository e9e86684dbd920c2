// One row of the table: what is run, and how its work and its result are judged.
#pragma once

#include <string>
#include <vector>

#include "bench/floors.h"
#include "bench/workload.h"

namespace kiln::bench {

// The name of the floor that is the peer's compiled half, which has a column of its own.
inline constexpr const char* kCompiled = "torch.compile";

struct Row {
  std::string name;  // also the name of the peer's half
  std::string what;  // for --list and the HTML page
  WorkloadFactory make;
  double flops = 0;  // of one iteration; 0: not what the row is about
  double bytes =
      0;  // that one iteration must read and write at least; 0: not what the row is about
  // How far the two sides' values may be apart, as a fraction of the largest one.
  double tolerance = 1e-5;
  // The values are the losses of consecutive steps: they must fall.
  bool is_training = false;
  // Other libraries called directly, shown below the row, and kCompiled; measured with it. One
  // whose make() returns null is left out.
  std::vector<Floor> floors = {};
};

// The rows shown always, and those that --all adds. Adding a row is one block here (in
// rows_ops.cpp or rows_models.cpp) and one in the file of the same name below bench/peer.
std::vector<Row> standard_rows();
std::vector<Row> extra_rows();

void add_small_op_rows(std::vector<Row>& rows);    // single ops and chains of the standard group
void add_large_op_rows(std::vector<Row>& rows);    // of the extra group
void add_training_rows(std::vector<Row>& rows);    // of the standard group
void add_more_model_rows(std::vector<Row>& rows);  // of the extra group

}  // namespace kiln::bench
