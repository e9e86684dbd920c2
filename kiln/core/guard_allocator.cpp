#include "kiln/core/guard_allocator.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <fstream>
#include <mutex>
#include <new>
#include <unordered_map>

#include <sys/mman.h>

#include "kiln/core/fork.h"
#include "kiln/core/sanitizers.h"
#include "kiln/core/system_memory.h"

namespace kiln::detail {
namespace {

constexpr size_t kGuardPage = 4096;
// A NaN in every floating point dtype, and -1 in every integer.
constexpr int kPattern = 0xff;
// What is larger is not filled: untouched pages cost nothing.
constexpr size_t kFilledBytes = size_t{64} << 20;
constexpr size_t kQuarantined = 4096;                   // blocks
constexpr size_t kQuarantinedBytes = size_t{16} << 30;  // of addresses, not of memory
constexpr size_t kQuarantinedObjects = 4096;
constexpr int kObjectPattern = 0xdd;

[[noreturn]] void fail(const char* what, const void* block, size_t bytes) {
  std::fprintf(stderr, "KILN_GUARD: %s; block %p of %zu bytes\n", what, block, bytes);
  std::abort();
}

bool holds(const void* data, size_t bytes, int pattern) {
  const auto* p = static_cast<const unsigned char*>(data);
  return std::all_of(p, p + bytes, [pattern](unsigned char c) { return c == pattern; });
}

// A block and the pages it lies on: `pages` bytes that may be used, then one page that may not.
struct Mapped {
  char* base = nullptr;  // null: plain memory, for the system had no more mappings
  size_t pages = 0;
  size_t bytes = 0;
  size_t asked = 0;

  char* start() const { return base + pages - bytes; }
  size_t length() const { return pages + kGuardPage; }
  // Both sides: before the block to its page's begin, and between what was asked and its end.
  void fill() const {
    std::memset(base, kPattern, static_cast<size_t>(start() - base));
    const size_t filled = bytes <= kFilledBytes ? bytes : 0;
    std::memset(start() + bytes - filled, kPattern, filled);
    std::memset(start() + asked, kPattern, bytes - asked);
  }
  void check() const {
    if (!holds(base, static_cast<size_t>(start() - base), kPattern)) {
      fail("something wrote in front of a block", start(), asked);
    }
    if (!holds(start() + asked, bytes - asked, kPattern)) {
      fail("something wrote past the end of a block", start(), asked);
    }
  }
};

// Each block takes two of the mappings that the system allows a process, and one when it is in
// quarantine.
size_t most_blocks() {
  size_t mappings = 65530;
  std::ifstream("/proc/sys/vm/max_map_count") >> mappings;
  const size_t others = kQuarantined + 8192;
  return mappings > others ? (mappings - others) / 2 : 0;
}

class Guard {
 public:
  void* allocate(size_t bytes, size_t asked) {
    const std::lock_guard lock(mutex_);
    Mapped m;
    m.bytes = bytes;
    m.asked = asked;
    m.pages = (bytes + kGuardPage - 1) / kGuardPage * kGuardPage;
    if (mapped_ >= most_ || !map(m)) {
      warn_once();
      void* const block = system_allocate(bytes);
      m.base = nullptr;
      if (block != nullptr) in_use_.emplace(block, m);
      return block;
    }
    ++mapped_;
    m.fill();
    in_use_.emplace(m.start(), m);
    return m.start();
  }

  void free(void* block) {
    const std::lock_guard lock(mutex_);
    const auto found = in_use_.find(block);
    if (found == in_use_.end()) fail("a block was freed that is not in use", block, 0);
    const Mapped m = found->second;
    in_use_.erase(found);
    if (m.base == nullptr) return system_free(block, m.bytes);
    m.check();
    --mapped_;
    mprotect(m.base, m.length(), PROT_NONE);
    madvise(m.base, m.length(), MADV_DONTNEED);
    quarantine_.push_back(m);
    quarantined_ += m.length();
    while (quarantine_.size() > kQuarantined || quarantined_ > kQuarantinedBytes) {
      const Mapped oldest = quarantine_.front();
      quarantine_.pop_front();
      quarantined_ -= oldest.length();
      munmap(oldest.base, oldest.length());
    }
  }

 private:
  static bool map(Mapped& m) {
    void* const base =
        mmap(nullptr, m.length(), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED) return false;
    if (mprotect(base, m.pages, PROT_READ | PROT_WRITE) != 0) {
      munmap(base, m.length());
      return false;
    }
    m.base = static_cast<char*>(base);
    return true;
  }

  void warn_once() {
    if (warned_) return;
    warned_ = true;
    std::fprintf(stderr,
                 "KILN_GUARD: the system allows no more mappings (vm.max_map_count); further "
                 "blocks are not guarded\n");
  }

  ForkSafeMutex mutex_{ForkOrder::guard};
  const size_t most_ = most_blocks();
  size_t mapped_ = 0;
  bool warned_ = false;
  std::unordered_map<const void*, Mapped> in_use_;
  std::deque<Mapped> quarantine_;
  size_t quarantined_ = 0;
};

// Objects that were freed, in a ring.
class ObjectQuarantine {
 public:
  void add(void* object, size_t bytes) {
    std::memset(object, kObjectPattern, bytes);
    const std::lock_guard lock(mutex_);
    Freed& place = freed_[next_++ % kQuarantinedObjects];
    if (place.object != nullptr) {
      if (!holds(place.object, place.bytes, kObjectPattern)) {
        fail("something wrote to an object after it was freed", place.object, place.bytes);
      }
      std::free(place.object);
    }
    place = {object, bytes};
  }

 private:
  struct Freed {
    void* object = nullptr;
    size_t bytes = 0;
  };
  ForkSafeMutex mutex_{ForkOrder::guard};
  std::array<Freed, kQuarantinedObjects> freed_;
  size_t next_ = 0;
};

// Never destroyed: memory may be freed by static destructors.
Guard& guard() {
  static Guard& the_guard = *new Guard;
  return the_guard;
}
ObjectQuarantine& objects() {
  static ObjectQuarantine& all = *new ObjectQuarantine;
  return all;
}

}  // namespace

bool guard_enabled() {
#ifdef KILN_ASAN
  return false;  // AddressSanitizer finds the same and more
#else
  static const bool enabled = [] {
    const char* text = std::getenv("KILN_GUARD");
    return text != nullptr && std::strcmp(text, "1") == 0;
  }();
  return enabled;
#endif
}

void* guard_allocate_block(size_t bytes, size_t asked) noexcept {
  return guard().allocate(bytes, asked);
}
void guard_free_block(void* block) noexcept { guard().free(block); }

void* guard_allocate_object(size_t bytes) {
  void* const object = std::malloc(bytes);
  if (object == nullptr) throw std::bad_alloc();
  std::memset(object, kPattern, bytes);
  return object;
}
void guard_free_object(void* object, size_t bytes) noexcept { objects().add(object, bytes); }

}  // namespace kiln::detail
