#include "bench/sweep.h"

#include <algorithm>
#include <cstdio>

#include "bench/interrupt.h"
#include "bench/text.h"

namespace kiln::bench {
namespace {

template <class Cost>
double growth_of(size_t i, Cost cost) {
  if (i == 0) return 1;
  double cheapest = cost(0);
  for (size_t j = 1; j < i; ++j) cheapest = std::min(cheapest, cost(j));
  return cost(i) / cheapest;
}

void print_head(const Sweep& sweep, const Peer* peer) {
  std::string line = format("\n%-18s  %10s  %10s  %6s  %7s", sweep.name.c_str(), "Kiln",
                            ("a " + sweep.unit).c_str(), "growth", "of peak");
  if (peer != nullptr) line += format("  %14s  %6s  %7s", peer->name().c_str(), "growth", "ratio");
  std::printf("%s\n%s\n", line.c_str(), std::string(line.size() - 1, '-').c_str());
}

void print_last(const SweepResult& measured) {
  const size_t i = measured.results.size() - 1;
  const Result& result = measured.results[i];
  std::string line = format("%18s", measured.sweep.points[i].size.c_str());
  if (result.is_measured()) {
    line += format("  %10s  %10s  %5.2fx", format_time(result.kiln.median).c_str(),
                   format_time(measured.cost(i)).c_str(), measured.growth(i));
    line += format("  %5.1f %%", result.peak_fraction * 100);
    if (result.peer) {
      line += format("  %14s  %5.2fx  %6sx", format_time(result.peer->median).c_str(),
                     measured.peer_growth(i), three_digits(result.ratio->median).c_str());
    }
  }
  if (!result.problem.empty()) line += "\n  ! " + result.problem;
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

}  // namespace

double SweepResult::growth(size_t i) const {
  return growth_of(i, [this](size_t j) { return cost(j); });
}
double SweepResult::peer_growth(size_t i) const {
  return growth_of(i, [this](size_t j) { return peer_cost(j); });
}

std::vector<SweepResult> run_sweeps(const std::vector<Sweep>& sweeps, const Peer* peer,
                                    const Peaks& peaks, const Effort& effort) {
  std::vector<SweepResult> all;
  for (const Sweep& sweep : sweeps) {
    if (interrupted()) break;
    print_head(sweep, peer);
    all.push_back({sweep, {}});
    for (const SweepPoint& point : sweep.points) {
      if (interrupted()) break;
      all.back().results.push_back(run_row(point.row, peer, peaks, effort));
      print_last(all.back());
    }
  }
  std::printf(
      "\ngrowth: what a unit costs against the cheapest smaller size; of peak: of what the memory, "
      "or the cache\nthat the bytes fit into, or the multiply-adds allow\n");
  return all;
}

}  // namespace kiln::bench
