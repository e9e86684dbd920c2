// The same work at many sizes: what one unit of it costs as the size grows.
#pragma once

#include <string>
#include <vector>

#include "bench/runner.h"

namespace kiln::bench {

struct SweepPoint {
  std::string size;  // as it is printed, as in "64Ki"
  double units = 0;  // elements, examples, tokens or layers in one iteration
  Row row;
};

struct Sweep {
  std::string name;
  std::string unit;  // what the cost is for
  std::vector<SweepPoint> points;
};

// Ops from 4 Ki to 64 Mi elements; models over batch, length and depth.
std::vector<Sweep> all_sweeps();

// A measured sweep, point by point; a point that was interrupted is missing.
struct SweepResult {
  Sweep sweep;
  std::vector<Result> results;

  // Seconds for one unit at point i.
  double cost(size_t i) const { return results[i].kiln.median / sweep.points[i].units; }
  double peer_cost(size_t i) const { return results[i].peer->median / sweep.points[i].units; }
  // How many times as much a unit costs at point i as at the cheapest smaller point; 1 at the
  // first.
  double growth(size_t i) const;
  double peer_growth(size_t i) const;
};

// Measures every sweep and prints it as it goes. `peer` may be null.
std::vector<SweepResult> run_sweeps(const std::vector<Sweep>& sweeps, const Peer* peer,
                                    const Peaks& peaks, const Effort& effort);

}  // namespace kiln::bench
