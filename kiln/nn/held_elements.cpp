#include "kiln/nn/held_elements.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include "kiln/core/sanitizers.h"

#if defined(KILN_ASAN) || defined(__SANITIZE_THREAD__)
// Of <sanitizer/allocator_interface.h>, which GCC comes without.
extern "C" int __sanitizer_get_ownership(const volatile void* p);
extern "C" size_t __sanitizer_get_allocated_size(const volatile void* p);
#endif

namespace kiln::nn::detail {
namespace {

constexpr uint64_t kWord = sizeof(uint64_t);
constexpr uint64_t kMostBytes = 64 * 1024;

bool is_address(uint64_t x) { return x % kWord == 0 && x >= 4096 && x < (uint64_t{1} << 56); }

#ifdef __linux__
// As read_memory, through a pipe: a write from memory that is not there fails. For where the system
// forbids process_vm_readv, as some containers do, or lacks it, as qemu does. `bytes`: a few words.
bool read_through_pipe(uint64_t from, void* to, size_t bytes) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return false;
  const auto wanted = static_cast<ssize_t>(bytes);
  const bool done = write(ends[1], reinterpret_cast<const void*>(from), bytes) == wanted &&
                    read(ends[0], to, bytes) == wanted;
  close(ends[0]);
  close(ends[1]);
  return done;
}
#endif

// Copies memory that may not be there: false where it is not, or nobody can tell.
bool read_memory([[maybe_unused]] uint64_t from, [[maybe_unused]] void* to,
                 [[maybe_unused]] size_t bytes) {
#ifdef __linux__
  iovec local{to, bytes};
  iovec remote{reinterpret_cast<void*>(from), bytes};
  const ssize_t copied = process_vm_readv(getpid(), &local, 1, &remote, 1, 0);
  if (copied < 0 && (errno == ENOSYS || errno == EPERM)) return read_through_pipe(from, to, bytes);
  return copied == static_cast<ssize_t>(bytes);
#else
  return false;
#endif
}

// How many bytes the allocator gave out at an address; 0 where it gave none, or cannot be asked. It
// is asked without trust in the address.
uint64_t allocated_at([[maybe_unused]] uint64_t at) {
#if defined(KILN_ASAN) || defined(__SANITIZE_THREAD__)
  const auto* const start = reinterpret_cast<const volatile void*>(at);
  return __sanitizer_get_ownership(start) != 0 ? __sanitizer_get_allocated_size(start) : 0;
#elif defined(__GLIBC__)
  // The size of the block stands in front of it, with flags in its low bits.
  uint64_t size = 0;
  if (!read_memory(at - kWord, &size, kWord)) return 0;
  size &= ~uint64_t{7};
  return size >= 4 * kWord && size < (uint64_t{1} << 40) ? size - kWord : 0;
#else
  return 0;
#endif
}

}  // namespace

// Other threads may write to the object's members meanwhile.
__attribute__((no_sanitize("address", "thread"))) Memory vector_elements(const char* at) {
  const auto* const words = reinterpret_cast<const volatile uint64_t*>(at);
  const uint64_t begin = words[0], end = words[1], room = words[2];
  const bool in_order = is_address(begin) && is_address(end) && is_address(room) && begin < end &&
                        end <= room && room - begin < (uint64_t{1} << 40);
  if (!in_order) return {};
  // The allocator rounds up; large blocks are whole pages.
  const uint64_t bytes = room - begin, given = allocated_at(begin);
  const uint64_t slack = bytes < kMostBytes ? 3 * kWord : 2 * 4096;
  if (given < bytes || given - bytes >= slack) return {};
  const uint64_t read = std::min(end - begin, kMostBytes);
  char probe = 0;
  if (!read_memory(begin + read - 1, &probe, 1)) return {};
  const auto* const first = reinterpret_cast<const char*>(begin);
  return {first, first + read};
}

}  // namespace kiln::nn::detail
