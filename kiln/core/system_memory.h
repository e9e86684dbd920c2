// Memory from the system for the caching allocator. Internal.
#pragma once

#include <cstddef>

namespace kiln::detail {

// `bytes` (a multiple of 64) aligned to 64, or null when the system refuses. From a megabyte on it
// is mapped by itself, so that giving it back shrinks the process. Two megabytes and
// more are in huge pages where the system has them, unless KILN_HUGE_PAGES=0 is in the environment.
void* system_allocate(size_t bytes) noexcept;
// `bytes` as given to system_allocate.
void system_free(void* data, size_t bytes) noexcept;

}  // namespace kiln::detail
