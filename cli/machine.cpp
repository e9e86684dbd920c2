#include "cli/machine.h"

#include <ctime>
#include <fstream>

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

}  // namespace

std::vector<std::pair<std::string, std::string>> machine_facts() {
  std::vector<std::pair<std::string, std::string>> facts{
      {"Processor", processor_name()},
      {"Threads", concat(num_threads())},
      {"Kiln", KILN_VERSION},
  };
#ifdef __VERSION__
  facts.emplace_back("Compiler", __VERSION__);
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
