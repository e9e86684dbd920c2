// The processor's caches, as far as kernels and passes need to know them.
#pragma once

#include <cstdint>

namespace kiln {

// Bytes from which a tensor goes through memory: half of the last level of the cache, within 4 MiB
// and 64 MiB. Reads the system once.
int64_t memory_bound_bytes();

}  // namespace kiln
