// The regions of vmap that a thread is in.
#pragma once

#include <cstdint>
#include <vector>

namespace kiln {

// What random ops do in a region: throw, draw the same numbers for every element of the batch, or
// different ones.
enum class Randomness : uint8_t { error, same, different };

namespace batched {

struct Region {
  uint64_t level = 0;  // regions that begin later have larger ones
  int64_t size = 0;    // of the batch
  Randomness randomness = Randomness::error;
};

// This thread's regions, outermost first.
std::vector<Region>& regions();

}  // namespace batched
}  // namespace kiln
