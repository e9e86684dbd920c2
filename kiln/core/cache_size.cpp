#include "kiln/core/cache_size.h"

#include <algorithm>

#include <unistd.h>

namespace kiln {

int64_t memory_bound_bytes() {
  static const int64_t bytes = [] {
    int64_t cache = 0;
#ifdef _SC_LEVEL3_CACHE_SIZE
    cache = sysconf(_SC_LEVEL3_CACHE_SIZE);
#endif
    return std::clamp<int64_t>(cache / 2, int64_t{4} << 20, int64_t{64} << 20);
  }();
  return bytes;
}

}  // namespace kiln
