// What GCC 12's standard library and Kiln call and glibc 2.28 lacks, for wheels (KILN_PORTABLE). On
// a newer system the process finds glibc's own functions first.
#ifdef KILN_PORTABLE

#include <cerrno>
#include <cstdint>
#include <cstdlib>

#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

extern "C" {

// glibc 2.32. The library counts references without atomics while this is 1, so 0 is always right.
char __libc_single_threaded = 0;  // NOLINT(bugprone-reserved-identifier)

// glibc 2.30.
pid_t gettid() noexcept { return static_cast<pid_t>(syscall(SYS_gettid)); }

// glibc 2.36; std::random_device calls it.
uint32_t arc4random() noexcept {
  uint32_t bits = 0;
  ssize_t got = 0;
  do {
    got = getrandom(&bits, sizeof bits, 0);
  } while (got < 0 && errno == EINTR);
  if (got != static_cast<ssize_t>(sizeof bits)) abort();
  return bits;
}
}

#endif
