// What the machine is doing, from Linux's files. Text that is not as expected gives no value.
#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>

#include "kiln/metrics/values.h"

namespace kiln::metrics {

namespace {

namespace fs = std::filesystem;

// Processor time in use, and all of it, since the machine's start.
std::optional<std::pair<double, double>> processor_times(const std::string& root) {
  std::ifstream file(fs::path(root) / "proc/stat");
  std::string word;
  if (!(file >> word) || word != "cpu") return std::nullopt;
  // user, nice, system, idle, iowait, irq, softirq, steal; guests are in user already.
  std::array<double, 8> times{};
  for (double& time : times) {
    if (!(file >> time)) return std::nullopt;
  }
  double total = 0;
  for (const double time : times) total += time;
  return std::pair(total - times[3] - times[4], total);
}

std::optional<double> memory_in_use(const std::string& root) {
  std::ifstream file(fs::path(root) / "proc/meminfo");
  double all = -1, available = -1;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name;
    double kib = 0;
    if (!(words >> name >> kib)) continue;
    if (name == "MemTotal:") all = kib;
    if (name == "MemAvailable:") available = kib;
  }
  if (all < 0 || available < 0) return std::nullopt;
  return (all - available) / (1 << 20);
}

std::optional<double> warmest_sensor(const std::string& root) {
  std::optional<double> warmest;
  std::error_code error;
  for (const auto& zone : fs::directory_iterator(fs::path(root) / "sys/class/thermal", error)) {
    std::ifstream file(zone.path() / "temp");
    double thousandths = 0;
    if (file >> thousandths) warmest = std::max(warmest.value_or(-1e9), thousandths / 1000);
  }
  return warmest;
}

}  // namespace

void CpuUse::update() {
  const auto now = processor_times(root_);
  if (now && last_) {
    busy_ += now->first - last_->first;
    total_ += now->second - last_->second;
  }
  last_ = now;
}

void CpuUse::reset() {
  Metric::reset();
  last_.reset();
}

void CpuUse::visit_state(StateVisitor& visitor) {
  visitor("busy", busy_, Join::sum);
  visitor("total", total_, Join::sum);
}

Tensor CpuUse::compute() const {
  return value_tensor(100 * ratio(busy_, total_, std::numeric_limits<double>::quiet_NaN()));
}

void CpuMemory::update() {
  if (const auto gib = memory_in_use(root_)) MeanMetric::update(*gib);
}

void CpuTemperature::update() {
  if (const auto celsius = warmest_sensor(root_)) MeanMetric::update(*celsius);
}

}  // namespace kiln::metrics
