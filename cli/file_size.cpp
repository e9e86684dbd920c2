#include "cli/file_size.h"

#include <cmath>
#include <cstdlib>

#include "cli/usage_error.h"
#include "kiln/train/text.h"

namespace kiln::cli {

std::string size_text(uint64_t bytes) {
  if (bytes < 1000) return std::to_string(bytes) + " bytes";
  const char* const units[] = {"kB", "MB", "GB", "TB", "PB", "EB"};
  double value = static_cast<double>(bytes) / 1000;
  int unit = 0;
  while (value >= 999.95 && unit < 5) {
    value /= 1000;
    ++unit;
  }
  return train::fixed(value, 1) + " " + units[unit];
}

uint64_t parse_size(const std::string& text) {
  char* rest = nullptr;
  const double number = std::strtod(text.c_str(), &rest);
  std::string unit;
  for (; *rest != '\0'; ++rest) {
    if (*rest != ' ') unit += static_cast<char>(*rest >= 'a' && *rest <= 'z' ? *rest - 32 : *rest);
  }
  double factor = 0;
  if (unit.empty() || unit == "B") factor = 1;
  for (int i = 1; i <= 4; ++i) {
    const char letter = " KMGT"[i];
    if (unit == std::string{letter} + "B") factor = std::pow(1000.0, i);
    if (unit == std::string{letter} + "IB") factor = std::pow(1024.0, i);
  }
  const double bytes = number * factor;
  if (!(bytes >= 1) || bytes > 9e18 || text.empty()) {
    throw UsageError("no size of a file: '" + text + "'; expected one such as 5GB or 500MiB");
  }
  return static_cast<uint64_t>(bytes);
}

}  // namespace kiln::cli
