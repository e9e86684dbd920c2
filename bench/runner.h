// Measures a row: the two sides in turns, so that whatever else the machine does meets both.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bench/peaks.h"
#include "bench/peer.h"
#include "bench/row.h"
#include "bench/statistics.h"

namespace kiln::bench {

struct Effort {
  double block_seconds = 0.015;  // what one side runs before it is the other's turn
  int min_pairs = 7;
  int max_pairs = 41;
  double row_seconds = 2.0;  // after which no new pair is begun
};
Effort full_effort();
Effort quick_effort();

// A floor's time, beside Kiln's.
struct FloorResult {
  std::string name;
  Summary seconds;
  double ratio = 0;  // of its time to Kiln's, of medians
};

struct Result {
  Row row;
  Summary kiln;  // seconds for one iteration
  std::optional<Summary> peer;
  std::optional<Summary> ratio;  // of the peer's time to Kiln's, pair by pair
  int pairs = 0;
  double flops = 0;          // a second; 0 where the row has no such figure
  double bytes = 0;          // a second
  double peak_fraction = 0;  // of what the machine can do
  std::vector<FloorResult> floors;
  std::string problem;  // why there is no measurement, or why it means nothing
  bool is_measured() const { return pairs > 0; }
};

// `peer` may be null. Never throws for what goes wrong inside a row: that becomes its problem.
Result run_row(const Row& row, const Peer* peer, const Peaks& peaks, const Effort& effort);
// The same beside any other workload; other() may return null.
Result run_row_beside(const Row& row, const WorkloadFactory& other, const Peaks& peaks,
                      const Effort& effort);

}  // namespace kiln::bench
