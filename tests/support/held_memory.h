// How much memory a call takes at most: Kiln's blocks and everything that comes from operator new.
// The program must contain tests/support/held_memory.cpp.
#pragma once

#include <cstddef>

namespace kiln::test {

// Starts a new count.
void reset_peak_memory();
// The most bytes that were held at once since then, beyond what was held before.
size_t peak_memory();

}  // namespace kiln::test
