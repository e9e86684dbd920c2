// In which strips of columns a product of a vector reads its matrix.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kiln/core/parallel.h"

namespace kiln::cpu {

// How many of n columns are summed in one piece where rows [n] are weighted and added up: `least`
// for the work's sake, and otherwise as many as leave each thread a piece, up to 384. Narrower
// strips read too little of a row before the next one, on another page. A column's sum is the same
// in any strip.
inline int64_t weighted_strip(int64_t n, int64_t least) {
  const int64_t share = (n / num_threads() + 63) / 64 * 64;
  return std::max(least, std::min<int64_t>(share, 384));
}

}  // namespace kiln::cpu
