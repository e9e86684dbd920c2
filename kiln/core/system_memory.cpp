#include "kiln/core/system_memory.h"

#include <cstdint>
#include <cstdlib>

#include "kiln/core/huge_pages.h"
#include "kiln/core/sanitizers.h"
#include "kiln/core/slabs.h"

namespace kiln::detail {
namespace {

// From how many bytes on a block is mapped by itself, and whether those of the middle sizes lie in
// slabs.
#if defined(__EMSCRIPTEN__)
// It has no pages to map.
constexpr size_t kMapBytes = SIZE_MAX;
constexpr bool kHasSlabs = false;
#elif defined(KILN_ASAN)
// The sanitizer guards both ends of what malloc gives, and ends the process when asked for far too
// much.
constexpr size_t kMapBytes = size_t{1} << 30;
constexpr bool kHasSlabs = false;
#else
constexpr size_t kMapBytes = size_t{1} << 20;
constexpr bool kHasSlabs = true;
#endif

bool lies_in_slab(size_t bytes) {
  return kHasSlabs && bytes >= kLeastSlabBytes && bytes <= kMostSlabBytes && want_huge_pages();
}

size_t whole_pages(size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

}  // namespace

void* system_allocate(size_t bytes) noexcept {
  if (lies_in_slab(bytes)) return slab_allocate(bytes);
  if (bytes < kMapBytes) {
    void* memory = nullptr;
    return posix_memalign(&memory, 64, bytes) == 0 ? memory : nullptr;
  }
  bytes = whole_pages(bytes);
  return bytes >= kHugePage && want_huge_pages() ? map_huge(bytes) : map_pages(bytes);
}

void system_free(void* data, size_t bytes) noexcept {
  if (lies_in_slab(bytes)) {
    slab_free(data, bytes);
  } else if (bytes < kMapBytes) {
    std::free(data);
  } else {
    unmap(data, whole_pages(bytes));
  }
}

}  // namespace kiln::detail
