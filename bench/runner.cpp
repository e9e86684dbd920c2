#include "bench/runner.h"

#include <chrono>
#include <cmath>
#include <exception>
#include <thread>

#include "bench/interrupt.h"
#include "bench/text.h"

namespace kiln::bench {
namespace {

using Clock = std::chrono::steady_clock;

// GCC's OpenMP runtime, PyTorch's, looks for work for some 5 ms. Not longer: where the processors
// are virtual ones, one that has been idle for more than some 10 ms comes back late.
constexpr auto kUntilThreadsSleep = std::chrono::milliseconds(8);

double time_of(Workload& workload, int64_t iterations) {
  const auto start = Clock::now();
  workload.run(iterations);
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// A workload and the number of its iterations that fill a block.
struct Side {
  std::unique_ptr<Workload> workload;
  int64_t iterations = 1;
  std::vector<double> seconds;  // for one iteration, block by block

  void calibrate(double block_seconds) {
    workload->run(1);
    double taken = time_of(*workload, iterations);
    while (taken < block_seconds / 4) {
      iterations *= 2;
      taken = time_of(*workload, iterations);
    }
    const double fitting = static_cast<double>(iterations) * block_seconds / taken;
    iterations = std::max<int64_t>(1, std::llround(fitting));
  }

  void run_block() {
    // The other side's threads still look for work, each on a processor: let them go to sleep.
    std::this_thread::sleep_for(kUntilThreadsSleep);
    // And it has just had the caches: let this one in before the clock starts.
    workload->run(1 + iterations / 32);
    seconds.push_back(time_of(*workload, iterations) / static_cast<double>(iterations));
  }
};

std::string number(double value) { return format("%.7g", value); }

// What is wrong with one side's values by themselves; empty when nothing is.
std::string problem_of(const Row& row, const char* side, const std::vector<float>& values) {
  for (const float value : values) {
    if (!std::isfinite(value)) return std::string(side) + " computed " + number(value);
  }
  if (row.is_training && !(values.back() < values.front())) {
    return std::string(side) + "'s loss does not fall: from " + number(values.front()) + " to " +
           number(values.back());
  }
  return {};
}

// Where the two sides' values are further apart than the row allows; empty when nowhere.
std::string difference(const Row& row, const std::vector<float>& kiln,
                       const std::vector<float>& peer) {
  if (kiln.size() != peer.size()) {
    return "the results differ in size: " + std::to_string(kiln.size()) + " values against " +
           std::to_string(peer.size());
  }
  double largest = 0;
  size_t worst = 0;
  double worst_error = 0;
  for (size_t i = 0; i < kiln.size(); ++i) {
    largest = std::max(largest, std::abs(double{peer[i]}));
    const double error = std::abs(double{kiln[i]} - double{peer[i]});
    if (error > worst_error) {
      worst_error = error;
      worst = i;
    }
  }
  if (worst_error <= row.tolerance * largest) return {};
  return "the results differ: " + number(kiln[worst]) + " against the peer's " +
         number(peer[worst]) + " (value " + std::to_string(worst) + ")";
}

std::string check(const Row& row, Side& kiln, Side& peer, std::vector<Side>& floors) {
  const std::vector<float> kiln_values = kiln.workload->check();
  if (std::string problem = problem_of(row, "Kiln", kiln_values); !problem.empty()) return problem;
  for (size_t i = 0; i < floors.size(); ++i) {
    const std::string problem = difference(row, kiln_values, floors[i].workload->check());
    if (!problem.empty()) return row.floors[i].name + ": " + problem;
  }
  if (!peer.workload) return {};
  const std::vector<float> peer_values = peer.workload->check();
  if (std::string problem = problem_of(row, "the peer", peer_values); !problem.empty()) {
    return problem;
  }
  return difference(row, kiln_values, peer_values);
}

void measure(Side& kiln, Side& peer, std::vector<Side>& floors, const Effort& effort) {
  kiln.calibrate(effort.block_seconds);
  if (peer.workload) peer.calibrate(effort.block_seconds);
  for (Side& floor : floors) floor.calibrate(effort.block_seconds);
  const auto start = Clock::now();
  for (int pair = 0; pair < effort.max_pairs && !interrupted(); ++pair) {
    const double elapsed = std::chrono::duration<double>(Clock::now() - start).count();
    if (pair >= effort.min_pairs && elapsed > effort.row_seconds) break;
    // Who goes first changes, so that a drift of the clock rate favours neither.
    const bool peer_first = pair % 2 == 1;
    if (peer.workload && peer_first) peer.run_block();
    kiln.run_block();
    if (peer.workload && !peer_first) peer.run_block();
  }
  // Afterwards, for OpenBLAS's threads look for work for 30 ms.
  for (size_t i = 0; i < kiln.seconds.size() && !interrupted(); ++i) {
    for (Side& floor : floors) floor.run_block();
  }
}

void fill_rates(Result& result, const Peaks& peaks) {
  const Row& row = result.row;
  if (row.flops > 0) {
    result.flops = row.flops / result.kiln.median;
    result.peak_fraction = result.flops / peaks.flops;
  } else if (row.bytes > 0) {
    result.bytes = row.bytes / result.kiln.median;
    result.peak_fraction = result.bytes / peaks.bandwidth(row.bytes);
  }
}

std::vector<double> ratios_of(const Side& other, const Side& kiln) {
  std::vector<double> ratios;
  for (size_t i = 0; i < kiln.seconds.size(); ++i) {
    ratios.push_back(other.seconds[i] / kiln.seconds[i]);
  }
  return ratios;
}

void run(Result& result, const WorkloadFactory& make_other, const Peaks& peaks,
         const Effort& effort) {
  Side kiln, other;
  kiln.workload = result.row.make();
  other.workload = make_other();
  std::vector<Side> floors;
  std::erase_if(result.row.floors, [&](const Floor& floor) {
    Side side;
    side.workload = floor.make();
    const bool is_missing = side.workload == nullptr;
    if (!is_missing) floors.push_back(std::move(side));
    return is_missing;
  });
  result.problem = check(result.row, kiln, other, floors);
  measure(kiln, other, floors, effort);

  result.pairs = static_cast<int>(kiln.seconds.size());
  if (result.pairs == 0) return;
  result.kiln = summarize(kiln.seconds);
  fill_rates(result, peaks);
  for (size_t i = 0; i < floors.size(); ++i) {
    const Summary seconds = summarize(floors[i].seconds);
    result.floors.push_back(
        {result.row.floors[i].name, seconds, seconds.median / result.kiln.median});
  }
  if (!other.workload) return;
  result.peer = summarize(other.seconds);
  result.ratio = summarize(ratios_of(other, kiln));
}

}  // namespace

Effort full_effort() { return {}; }
Effort quick_effort() { return {0.004, 3, 5, 0.2}; }

Result run_row(const Row& row, const Peer* peer, const Peaks& peaks, const Effort& effort) {
  const auto other = [&] { return peer == nullptr ? nullptr : peer->make(row.name); };
  return run_row_beside(row, other, peaks, effort);
}

Result run_row_beside(const Row& row, const WorkloadFactory& other, const Peaks& peaks,
                      const Effort& effort) {
  Result result;
  result.row = row;
  try {
    run(result, other, peaks, effort);
  } catch (const std::exception& error) {
    result.problem = error.what();
  }
  return result;
}

}  // namespace kiln::bench
