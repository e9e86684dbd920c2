// Kernels that are wrong on purpose, so that a check that finds nothing is known to look. Internal.
#pragma once

#include <string>
#include <vector>

namespace kiln::gpu_host {

struct Planted {
  std::string name;
  std::string body;      // of a kernel of one group
  std::string expected;  // part of the message; empty: there is nothing wrong
  bool addresses;        // AddressSanitizer sees it too
};
const std::vector<Planted>& planted();
// Runs the one of that name; 0 when nothing was found, 1 (the message is printed) when something
// was.
int run_planted(const std::string& name);

}  // namespace kiln::gpu_host
