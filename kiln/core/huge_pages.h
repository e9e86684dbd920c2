// Pages from the system. Internal.
#pragma once

#include <cstddef>

namespace kiln::detail {

inline constexpr size_t kPage = 4096;
inline constexpr size_t kHugePage = size_t{2} << 20;

// Whether the environment leaves huge pages on: not KILN_HUGE_PAGES=0.
bool want_huge_pages();

// `bytes` (a multiple of kPage) of zeroed memory, or null when the system refuses.
void* map_pages(size_t bytes) noexcept;
// The same, from the start of a huge page on, and in huge pages where the system has them; the
// first `small` bytes stay in small ones.
void* map_huge(size_t bytes, size_t small = 0) noexcept;
void unmap(void* data, size_t bytes) noexcept;
// The memory goes back to the system; what is touched anew is zero.
void forget_pages(void* data, size_t bytes) noexcept;

}  // namespace kiln::detail
