#include "kiln/core/huge_pages.h"

#include <cstdint>
#include <cstdlib>
#include <cstring>

#include <sys/mman.h>

namespace kiln::detail {

bool want_huge_pages() {
  static const bool wanted = [] {
    const char* text = std::getenv("KILN_HUGE_PAGES");
    return text == nullptr || std::strcmp(text, "0") != 0;
  }();
  return wanted;
}

void* map_pages(size_t bytes) noexcept {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED ? nullptr : memory;
}

// Maps more than asked and cuts both ends off.
void* map_huge(size_t bytes, size_t small) noexcept {
  auto* memory = static_cast<char*>(map_pages(bytes + kHugePage));
  if (memory == nullptr) return nullptr;
  const size_t before = (kHugePage - reinterpret_cast<uintptr_t>(memory) % kHugePage) % kHugePage;
  char* const start = memory + before;
  if (before > 0) munmap(memory, before);
  if (before < kHugePage) munmap(start + bytes, kHugePage - before);
  madvise(start + small, bytes - small, MADV_HUGEPAGE);
  return start;
}

void unmap(void* data, size_t bytes) noexcept { munmap(data, bytes); }

void forget_pages(void* data, size_t bytes) noexcept { madvise(data, bytes, MADV_DONTNEED); }

}  // namespace kiln::detail
