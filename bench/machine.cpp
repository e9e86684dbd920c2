#include "bench/machine.h"

#include <cstdlib>
#include <fstream>

#include <link.h>

namespace kiln::bench {

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown processor";
}

std::string peer_setup() {
  const char* names = std::getenv("KILN_BENCH_PEER");
  return names == nullptr ? "" : names;
}

double load_average() {
  double load = 0;
  return getloadavg(&load, 1) == 1 ? load : 0;
}

std::vector<std::string> openmp_runtimes() {
  std::vector<std::string> found;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* into) {
        const std::string path = info->dlpi_name;
        const std::string name = path.substr(path.find_last_of('/') + 1);
        for (const char* runtime : {"libgomp", "libomp", "libiomp"}) {
          if (!name.starts_with(runtime)) continue;
          static_cast<std::vector<std::string>*>(into)->push_back(path);
          break;
        }
        return 0;
      },
      &found);
  return found;
}

}  // namespace kiln::bench
