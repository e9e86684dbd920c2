#include "kiln/backend/dispatch/profile_text.h"

#include <algorithm>
#include <cstdio>
#include <iterator>

namespace kiln::profiled {
namespace {

// The rows' bytes as text.
struct Bytes {
  explicit Bytes(int64_t bytes) {
    const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    auto value = static_cast<double>(bytes);
    size_t unit = 0;
    while (value >= 1024 && unit + 1 < std::size(units)) {
      value /= 1024;
      ++unit;
    }
    std::snprintf(text, sizeof text, unit == 0 ? "%.0f %s" : "%.1f %s", value, units[unit]);
  }
  char text[32];
};

void add_line(std::string& out, const ProfileRow& row, double total, bool with_device) {
  const double seconds = std::max(row.device_seconds > 0 ? row.device_seconds : row.seconds, 1e-12);
  char line[200];
  char gflops[32] = "";
  if (row.flops > 0) {
    std::snprintf(gflops, sizeof gflops, "%.1f", static_cast<double>(row.flops) / seconds / 1e9);
  }
  std::snprintf(line, sizeof line,
                with_device ? "%-28s %9lld %11.3f %10.2f %6.1f %10s %9.2f %9s %9lld %11.3f\n"
                            : "%-28s %9lld %11.3f %10.2f %6.1f %10s %9.2f %9s %9lld\n",
                row.op.c_str(), static_cast<long long>(row.count), row.seconds * 1e3,
                row.seconds * 1e6 / static_cast<double>(std::max<int64_t>(row.count, 1)),
                total > 0 ? row.seconds / total * 100 : 0.0, Bytes(row.bytes).text,
                static_cast<double>(row.bytes) / seconds / 1e9, gflops,
                static_cast<long long>(row.allocations), row.device_seconds * 1e3);
  out += line;
}

}  // namespace

std::string table_of(const std::vector<ProfileRow>& rows) {
  ProfileRow total{"total"};
  for (const ProfileRow& row : rows) {
    total.count += row.count;
    total.seconds += row.seconds;
    total.bytes += row.bytes;
    total.allocations += row.allocations;
    total.flops += row.flops;
    total.device_seconds += row.device_seconds;
  }
  const bool with_device = total.device_seconds > 0;
  char line[200];
  std::snprintf(line, sizeof line, "%-28s %9s %11s %10s %6s %10s %9s %9s %9s%s\n", "op", "calls",
                "total ms", "mean us", "%", "bytes", "GB/s", "Gflop/s", "allocs",
                with_device ? "   device ms" : "");
  std::string text = line;
  for (const ProfileRow& row : rows) add_line(text, row, total.seconds, with_device);
  add_line(text, total, total.seconds, with_device);
  return text;
}

}  // namespace kiln::profiled
