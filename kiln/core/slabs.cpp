#include "kiln/core/slabs.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <mutex>
#include <new>

#include "kiln/core/fork.h"
#include "kiln/core/huge_pages.h"
#include "kiln/core/portable.h"

namespace kiln::detail {
namespace {

constexpr size_t kGranule = 4096;
constexpr size_t kRegionBytes = size_t{32} << 20;
constexpr size_t kGranules = kRegionBytes / kGranule;
constexpr size_t kWords = kGranules / 64;
constexpr size_t kWordsOfPage = kHugePage / kGranule / 64;

constexpr size_t granules_of(size_t bytes) { return (bytes + kGranule - 1) / kGranule; }

// Which bits of word `w` lie in [first, end).
constexpr uint64_t bits_in(size_t w, size_t first, size_t end) {
  const size_t from = std::max(first, w * 64) - w * 64;
  const size_t to = std::min(end, w * 64 + 64) - w * 64;
  return (~uint64_t{0} << from) & (~uint64_t{0} >> (64 - to));
}

struct Region {
  char* base = nullptr;
  Region* next = nullptr;
  size_t used = 0;              // granules
  uint64_t taken[kWords] = {};  // a bit for each granule

  // The first of `count` free granules in a row; kGranules where there are none.
  size_t find(size_t count) const {
    if (kGranules - used < count) return kGranules;
    size_t run = 0;
    for (size_t g = 0; g < kGranules;) {
      const uint64_t word = taken[g / 64] >> (g % 64);
      const auto left = static_cast<int>(64 - g % 64);
      if ((word & 1) != 0) {
        run = 0;
        g += static_cast<size_t>(std::min(std::countr_one(word), left));
        continue;
      }
      const auto free = static_cast<size_t>(std::min(std::countr_zero(word), left));
      run += free;
      g += free;
      if (run >= count) return g - run;
    }
    return kGranules;
  }

  void take(size_t first, size_t count) {
    const size_t end = first + count;
    for (size_t w = first / 64; w * 64 < end; ++w) taken[w] |= bits_in(w, first, end);
    used += count;
  }

  // Gives back the huge pages in which nothing lies any more.
  void give(size_t first, size_t count) {
    const size_t end = first + count;
    for (size_t w = first / 64; w * 64 < end; ++w) taken[w] &= ~bits_in(w, first, end);
    used -= count;
    for (size_t page = first / 64 / kWordsOfPage; page * kWordsOfPage * 64 < end; ++page) {
      const uint64_t* words = taken + page * kWordsOfPage;
      if (std::all_of(words, words + kWordsOfPage, [](uint64_t w) { return w == 0; })) {
        forget_pages(base + page * kHugePage, kHugePage);
      }
    }
  }
};

KILN_NEVER_DESTROYED constinit std::mutex mutex;
constinit Region* regions = nullptr;  // the first one stays

[[maybe_unused]] const bool slabs_known_to_fork =
    register_at_fork(ForkOrder::slabs, {[] { mutex.lock(); }, [] { mutex.unlock(); }});

// At the end of the list. The first page of the first region stays small: little programs touch no
// more memory than they need.
Region* add_region() noexcept {
  auto* region = new (std::nothrow) Region;
  if (region == nullptr) return nullptr;
  const size_t small = regions == nullptr ? kHugePage : 0;
  region->base = static_cast<char*>(map_huge(kRegionBytes, small));
  if (region->base == nullptr) {
    delete region;
    return nullptr;
  }
  Region** end = &regions;
  while (*end != nullptr) end = &(*end)->next;
  *end = region;
  return region;
}

}  // namespace

void* slab_allocate(size_t bytes) noexcept {
  const size_t count = granules_of(bytes);
  const std::lock_guard lock(mutex);
  Region* region = regions;
  size_t first = kGranules;
  for (; region != nullptr; region = region->next) {
    first = region->find(count);
    if (first < kGranules) break;
  }
  if (region == nullptr) {
    region = add_region();
    if (region == nullptr) return nullptr;
    first = 0;
  }
  region->take(first, count);
  return region->base + first * kGranule;
}

void slab_free(void* data, size_t bytes) noexcept {
  const auto* const block = static_cast<char*>(data);
  const std::lock_guard lock(mutex);
  Region** at = &regions;
  const auto holds = [block](const Region& r) {
    return reinterpret_cast<uintptr_t>(block) - reinterpret_cast<uintptr_t>(r.base) < kRegionBytes;
  };
  while (!holds(**at)) at = &(*at)->next;
  Region* const region = *at;
  region->give(static_cast<size_t>(block - region->base) / kGranule, granules_of(bytes));
  if (region->used > 0 || region == regions) return;
  *at = region->next;
  unmap(region->base, kRegionBytes);
  delete region;
}

}  // namespace kiln::detail
