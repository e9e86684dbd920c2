// Storage in POSIX shared memory.
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kiln/core/error.h"
#include "kiln/core/storage.h"

namespace kiln {
namespace {

[[noreturn]] void fail(size_t bytes, int error) {
  throw_error<IoError>("share_memory_: no shared memory for ", bytes,
                       " bytes; the system says: ", std::strerror(error));
}

// A descriptor of a new object whose name is taken away again at once.
int open_object(size_t bytes) {
  static std::atomic<uint32_t> counter{0};
  for (int attempt = 0; attempt < 100; ++attempt) {
    const std::string name = concat("/kiln_", static_cast<long>(getpid()), "_", counter++);
    const int fd = shm_open(name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd >= 0) {
      shm_unlink(name.c_str());
      return fd;
    }
    if (errno != EEXIST) break;
  }
  fail(bytes, errno);
}

}  // namespace

Handle<Storage> Storage::allocate_shared(size_t bytes) {
  const size_t mapped = std::max<size_t>(bytes, 1);
  const int fd = open_object(bytes);
  // Reserved, not only sized: a write to a page that the system cannot give would end the process.
  int error = posix_fallocate(fd, 0, static_cast<off_t>(mapped));
  void* data = MAP_FAILED;
  if (error == 0) {
    data = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (data == MAP_FAILED) error = errno;
  }
  close(fd);
  if (data == MAP_FAILED) fail(bytes, error);

  struct Mapping {
    void* data;
    size_t bytes;
  };
  auto release = [](void* context) {
    auto* mapping = static_cast<Mapping*>(context);
    munmap(mapping->data, mapping->bytes);
    delete mapping;
  };
  Handle<Storage> out = borrow(data, bytes, release, new Mapping{data, mapped});
  out->shared_ = true;
  return out;
}

}  // namespace kiln
