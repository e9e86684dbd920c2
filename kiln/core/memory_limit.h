// How much memory Kiln may take at once.
#pragma once

#include <cstddef>

namespace kiln {

// The most bytes of blocks, in use and cached, that Kiln asks the system for. An allocation that
// would exceed it empties the cache first, and then throws ValueError. By default it is the limit
// of this process's control group (container) where there is one: beyond it the system would end
// the process without a word. SIZE_MAX: no limit but the machine's.
size_t memory_limit();
void set_memory_limit(size_t bytes);

}  // namespace kiln
