#include "kiln/core/warning.h"

#include <cstdio>
#include <mutex>
#include <utility>

#include "kiln/core/fork.h"

namespace kiln {
namespace {

struct Warnings {
  detail::ForkSafeMutex mutex{detail::ForkOrder::warnings};
  WarningHandler handler;
};

// Never destroyed: something may warn while the process exits.
Warnings& warnings() {
  static Warnings& instance = *new Warnings;
  return instance;
}

}  // namespace

void warn(const std::string& message) {
  WarningHandler handler;
  {
    std::lock_guard lock(warnings().mutex);
    handler = warnings().handler;
  }
  if (handler) {
    handler(message);
  } else {
    std::fprintf(stderr, "Warning: %s\n", message.c_str());
  }
}

WarningHandler set_warning_handler(WarningHandler handler) {
  std::lock_guard lock(warnings().mutex);
  return std::exchange(warnings().handler, std::move(handler));
}

}  // namespace kiln
