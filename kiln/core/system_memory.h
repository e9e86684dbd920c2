// Memory from the system for the caching allocator. Internal.
#pragma once

#include <cstddef>

namespace kiln::detail {

// `bytes` (a multiple of 64) aligned to 64, or null when the system refuses. What is large is
// mapped by itself, so that giving it back shrinks the process. Where the system has huge pages,
// blocks of 2 MiB and more lie in them, and those from 32 KiB on share them (see Note [Slabs] in
// slabs.h), unless KILN_HUGE_PAGES=0 is in the environment.
void* system_allocate(size_t bytes) noexcept;
// `bytes` as given to system_allocate.
void system_free(void* data, size_t bytes) noexcept;

}  // namespace kiln::detail
