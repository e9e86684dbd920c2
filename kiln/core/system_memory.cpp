#include "kiln/core/system_memory.h"

#include <cstdint>
#include <cstdlib>
#include <cstring>

#include <sys/mman.h>

#include "kiln/core/sanitizers.h"

namespace kiln::detail {
namespace {

#if defined(__EMSCRIPTEN__)
// It has no pages to map.
constexpr size_t kMapBytes = SIZE_MAX;
#elif defined(KILN_ASAN)
// The sanitizer guards both ends of what malloc gives, and ends the process when asked for far too
// much.
constexpr size_t kMapBytes = size_t{1} << 30;
#else
constexpr size_t kMapBytes = size_t{1} << 20;
#endif
constexpr size_t kPage = 4096;
constexpr size_t kHugePage = size_t{2} << 20;

bool want_huge_pages() {
  static const bool wanted = [] {
    const char* text = std::getenv("KILN_HUGE_PAGES");
    return text == nullptr || std::strcmp(text, "0") != 0;
  }();
  return wanted;
}

void* map(size_t bytes) noexcept {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED ? nullptr : memory;
}

// Maps more than asked and cuts both ends off, so that the block starts on a huge page.
void* map_huge(size_t bytes) noexcept {
  auto* memory = static_cast<char*>(map(bytes + kHugePage));
  if (memory == nullptr) return nullptr;
  const size_t before = (kHugePage - reinterpret_cast<uintptr_t>(memory) % kHugePage) % kHugePage;
  char* const start = memory + before;
  if (before > 0) munmap(memory, before);
  if (before < kHugePage) munmap(start + bytes, kHugePage - before);
  madvise(start, bytes, MADV_HUGEPAGE);
  return start;
}

}  // namespace

void* system_allocate(size_t bytes) noexcept {
  if (bytes < kMapBytes) {
    void* memory = nullptr;
    return posix_memalign(&memory, 64, bytes) == 0 ? memory : nullptr;
  }
  bytes = (bytes + kPage - 1) / kPage * kPage;
  return bytes >= kHugePage && want_huge_pages() ? map_huge(bytes) : map(bytes);
}

void system_free(void* data, size_t bytes) noexcept {
  if (bytes < kMapBytes) {
    std::free(data);
    return;
  }
  munmap(data, (bytes + kPage - 1) / kPage * kPage);
}

}  // namespace kiln::detail
