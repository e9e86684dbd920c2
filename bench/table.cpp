#include "bench/table.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>

#include <unistd.h>

#include "bench/machine.h"
#include "bench/text.h"

namespace kiln::bench {
namespace {

constexpr const char* kRed = "31";
constexpr const char* kGreen = "32";
constexpr const char* kYellow = "33";
constexpr const char* kDim = "2";

bool wants_colors() { return isatty(STDOUT_FILENO) != 0 && std::getenv("NO_COLOR") == nullptr; }

const char* color_of(double ratio) {
  if (ratio >= 1) return kGreen;
  return ratio >= 0.9 ? kYellow : kRed;
}

std::string rate_of(const Result& result) {
  if (result.flops > 0) return three_digits(result.flops / 1e9) + " GFLOP/s";
  if (result.bytes > 0) return three_digits(result.bytes / 1e9) + " GB/s   ";
  return "";
}

// The peer's compiled half: its time and the ratio, if it has one.
std::string compiled_columns(const Result& result) {
  for (const FloorResult& floor : result.floors) {
    if (floor.name == kCompiled) {
      return format("  %14s  %6sx", format_time(floor.seconds.median).c_str(),
                    three_digits(floor.ratio).c_str());
    }
  }
  return format("  %14s  %7s", "-", "-");
}

}  // namespace

Table::Table(const std::vector<Row>& rows, std::string peer, bool has_compiled)
    : peer_(std::move(peer)), has_compiled_(has_compiled), colors_(wants_colors()) {
  for (const Row& row : rows)
    name_width_ = std::max(name_width_, static_cast<int>(row.name.size()));
}

void Table::print_peaks(const Peaks& peaks) const {
  std::printf("%s, %d thread%s", processor_name().c_str(), peaks.threads,
              peaks.threads == 1 ? "" : "s");
  std::printf(": multiply-add %.0f GFLOP/s on one thread", peaks.flops_one / 1e9);
  if (peaks.threads > 1) std::printf(", %.0f on %d", peaks.flops / 1e9, peaks.threads);
  std::printf(
      "\nmemory: copy %.1f GB/s, add %.1f, add with streaming stores %.1f; add in cache %.0f\n",
      peaks.copy / 1e9, peaks.add / 1e9, peaks.add_streaming / 1e9, peaks.add_cached / 1e9);
  const std::string setup = peer_setup();
  if (!peer_.empty())
    std::printf("%s: %s\n", peer_.c_str(), setup.empty() ? "as installed" : setup.c_str());
  std::printf("\n");
}

void Table::print_head() const {
  std::string line = format("%-*s  %10s", name_width_, "row", "Kiln");
  if (!peer_.empty()) line += format("  %14s  %7s", peer_.c_str(), "ratio");
  if (has_compiled_) line += format("  %14s  %7s", kCompiled, "ratio");
  line += format("  %7s  %15s  %7s", "spread", "rate", "of peak");
  std::printf("%s\n%s\n", line.c_str(), std::string(line.size(), '-').c_str());
  std::fflush(stdout);
}

void Table::print(const Result& result) const {
  const auto paint = [&](const char* color, const std::string& text) {
    return colors_ ? format("\033[%sm", color) + text + "\033[0m" : text;
  };
  std::string line = format("%-*s", name_width_, result.row.name.c_str());
  if (result.is_measured()) {
    line += format("  %10s", format_time(result.kiln.median).c_str());
    if (!peer_.empty()) {
      const double ratio = result.ratio ? result.ratio->median : 0;
      line += format("  %14s", result.peer ? format_time(result.peer->median).c_str() : "-");
      const std::string text =
          format("  %7s", result.ratio ? (three_digits(ratio) + "x").c_str() : "-");
      line += result.ratio ? paint(color_of(ratio), text) : text;
    }
    if (has_compiled_) line += compiled_columns(result);
    const double spread = result.ratio ? result.ratio->spread() : result.kiln.spread();
    line += paint(kDim, format("  %5.1f %%", spread * 100));
    line += format("  %15s", rate_of(result).c_str());
    if (result.peak_fraction > 0) line += format("  %5.1f %%", result.peak_fraction * 100);
  }
  std::string floors;
  for (const FloorResult& floor : result.floors) {
    if (floor.name != kCompiled) {
      floors += floors.empty() ? "  directly: " : ", ";
      floors += floor.name + " " + format_time(floor.seconds.median) + " (" +
                three_digits(floor.ratio) + "x)";
    }
  }
  if (!floors.empty()) line += "\n" + paint(kDim, floors);
  if (!result.problem.empty()) line += "\n  " + paint(kRed, "! " + result.problem);
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

void Table::print_foot(const std::vector<Result>& results) const {
  double logarithms = 0;
  int count = 0;
  int ahead = 0;
  for (const Result& result : results) {
    if (!result.ratio) continue;
    logarithms += std::log(result.ratio->median);
    ahead += result.ratio->median >= 1;
    ++count;
  }
  if (count == 0) return;
  std::printf("\n%d of %d rows ahead of %s; geometric mean of the ratios %.2fx\n", ahead, count,
              peer_.c_str(), std::exp(logarithms / count));
  std::printf(
      "ratio: the peer's time over Kiln's, median of pairs in turns; spread: its interquartile "
      "range\n");
}

}  // namespace kiln::bench
