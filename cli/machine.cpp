#include "cli/machine.h"

#include <ctime>
#include <fstream>

#include <sys/utsname.h>
#include <unistd.h>

#include "kiln/backend/dispatch/dispatch.h"
#include "kiln/core/error.h"
#include "kiln/core/parallel.h"

namespace kiln::cli {

namespace {

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  while (std::getline(file, line)) {
    if (line.rfind("model name", 0) == 0) {
      const auto colon = line.find(": ");
      if (colon != std::string::npos) return line.substr(colon + 2);
    }
  }
  return "unknown";
}

// The widest that the kernels use, as in "AVX3_ZEN4".
std::string instruction_set() {
  const std::string name = Dispatch::name(Device(kCpu));  // "cpu (AVX2)"
  const size_t open = name.find('('), close = name.rfind(')');
  return open < close && close != std::string::npos ? name.substr(open + 1, close - open - 1)
                                                    : name;
}

std::string memory_size() {
  const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  if (pages <= 0 || page <= 0) return "unknown";
  return concat(static_cast<int64_t>(pages) * page >> 20, " MiB");
}

// "Linux 6.1.0 x86_64".
std::string system_name() {
  utsname name{};
  if (uname(&name) != 0) return "unknown";
  return concat(name.sysname, " ", name.release, " ", name.machine);
}

}  // namespace

std::vector<std::pair<std::string, std::string>> machine_facts() {
  std::vector<std::pair<std::string, std::string>> facts{
      {"Kiln", KILN_VERSION},
      {"Processor", processor_name()},
      {"Instruction set", instruction_set()},
      {"Threads", concat(num_threads())},
      {"Memory", memory_size()},
      {"System", system_name()},
  };
#if defined(__clang__)
  facts.emplace_back("Compiler", __VERSION__);  // "Debian Clang 16.0.6"
#elif defined(__GNUC__)
  facts.emplace_back("Compiler", concat("GCC ", __VERSION__));
#endif
  return facts;
}

std::string date_and_time() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%d %H:%M", &local);
  return text;
}

}  // namespace kiln::cli
