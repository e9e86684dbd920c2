// What Kiln takes besides time: the library's size, the way from the start of a process to its
// first result, and the peak of a training row's memory beside the peer's.
#pragma once

#include <string>

namespace kiln::bench {

// Prints the figures; 0 when they are within the bounds (16 MB, 30 ms, 0.6 of the peer's memory),
// else 1. `peer` is the path of its module, or empty. Call it before anything starts threads: the
// rows run in child processes.
int print_footprint(const std::string& peer);

// What the child process of the second figure does.
int print_first_result();

}  // namespace kiln::bench
