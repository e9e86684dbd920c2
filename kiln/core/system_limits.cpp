#include "kiln/core/system_limits.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <string>

#include <sched.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#ifdef _OPENMP
#include <omp.h>
#endif

namespace kiln::detail {
namespace {

// This process's group below a controller's mount; "0" in /proc/self/cgroup is the version 2
// hierarchy.
std::string group_path(const std::string& controller) {
  std::ifstream file("/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string names = "," + line.substr(first + 1, second - first - 1) + ",";
    const bool match = controller.empty() ? line.compare(0, first, "0") == 0
                                          : names.find("," + controller + ",") != std::string::npos;
    if (match) return line.substr(second + 1);
  }
  return "/";
}

// Calls visit(folder) for this process's group and every group above it: any of them may hold the
// limit.
template <class F>
void for_each_group(const std::string& mount, const std::string& controller, F visit) {
  std::string path = group_path(controller);
  while (path.size() > 1) {
    visit(mount + path + "/");
    path.resize(path.rfind('/'));
  }
  visit(mount + "/");
}

// The number at the start of a file; infinity when it is not there, is "max", or is negative.
double read_number(const std::string& path) {
  double value = -1;
  std::ifstream(path) >> value;
  return value > 0 ? value : std::numeric_limits<double>::infinity();
}

double cgroup_processors() {
  double limit = std::numeric_limits<double>::infinity();
  for_each_group("/sys/fs/cgroup", "", [&limit](const std::string& folder) {
    std::ifstream file(folder + "cpu.max");
    double quota = 0;
    double period = 0;
    if (file >> quota >> period && quota > 0 && period > 0) limit = std::min(limit, quota / period);
  });
  for_each_group("/sys/fs/cgroup/cpu", "cpu", [&limit](const std::string& folder) {
    const double quota = read_number(folder + "cpu.cfs_quota_us");
    const double period = read_number(folder + "cpu.cfs_period_us");
    if (std::isfinite(quota) && std::isfinite(period)) limit = std::min(limit, quota / period);
  });
  return limit;
}

double cgroup_memory() {
  double limit = std::numeric_limits<double>::infinity();
  for_each_group("/sys/fs/cgroup", "", [&limit](const std::string& folder) {
    limit = std::min(limit, read_number(folder + "memory.max"));
  });
  for_each_group("/sys/fs/cgroup/memory", "memory", [&limit](const std::string& folder) {
    limit = std::min(limit, read_number(folder + "memory.limit_in_bytes"));
  });
  return limit;
}

double cgroup_swap() {
  double limit = std::numeric_limits<double>::infinity();
  for_each_group("/sys/fs/cgroup", "", [&limit](const std::string& folder) {
    std::ifstream file(folder + "memory.swap.max");
    double value = 0;
    if (file >> value) limit = std::min(limit, value);  // 0 is a number here
  });
  return limit;
}

double machine_memory() {
  return static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
}

double machine_swap() {
#ifdef __linux__
  struct sysinfo info = {};
  if (sysinfo(&info) == 0) {
    return static_cast<double>(info.totalswap) * static_cast<double>(info.mem_unit);
  }
#endif
  return 0;
}

int affinity_processors() {
#ifdef _OPENMP
  // OpenMP may have bound this thread to one processor since (OMP_PROC_BIND); it remembers the mask
  // from before.
  return omp_get_num_procs();
#elif defined(__EMSCRIPTEN__) && !defined(__EMSCRIPTEN_PTHREADS__)
  return 1;  // a browser may have more, but not for this build
#elif !defined(__linux__)
  return static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
#else
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
  return static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
#endif
}

}  // namespace

int available_processors() {
  const double quota = std::ceil(cgroup_processors());
  const int processors = affinity_processors();
  return std::max(1, quota < processors ? static_cast<int>(quota) : processors);
}

uint64_t available_memory() {
  return static_cast<uint64_t>(std::max(0.0, std::min(machine_memory(), cgroup_memory())));
}

uint64_t group_memory() {
  const double group = cgroup_memory();
  if (group >= machine_memory()) return UINT64_MAX;
  return static_cast<uint64_t>(group + std::min(cgroup_swap(), machine_swap()));
}

}  // namespace kiln::detail
