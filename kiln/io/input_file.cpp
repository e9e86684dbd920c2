#include "kiln/io/input_file.h"

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kiln/core/error.h"
#include "kiln/core/parallel.h"

namespace kiln::io {

namespace {

constexpr int64_t kReadPiece = int64_t{8} << 20;

[[noreturn]] void fail(const std::string& op, const std::string& path, const char* what,
                       const std::string& got) {
  throw_error<IoError>(op, ": ", what, " '", path, "'; got ", got, "; expected a readable file");
}

}  // namespace

InputFile::InputFile(std::string op, std::string path, uint64_t max_ratio)
    : op_(std::move(op)), path_(std::move(path)) {
  // The system would open what stands before it.
  if (path_.find('\0') != std::string::npos) {
    fail(op_, printable(path_), "cannot open", "a name with a zero byte");
  }
  // Without O_NONBLOCK, opening a pipe would wait for a writer.
  const int fd = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) fail(op_, path_, "cannot open", std::generic_category().message(errno));
  struct stat status {};
  const int rc = ::fstat(fd, &status);
  const int error = errno;
  if (rc != 0 || !S_ISREG(status.st_mode)) {
    ::close(fd);
    fail(op_, path_, "cannot read",
         rc != 0                   ? std::generic_category().message(error)
         : S_ISDIR(status.st_mode) ? "a directory"
                                   : "something that is no regular file");
  }
  fd_ = fd;
  size_ = static_cast<uint64_t>(status.st_size);
  budget_ = std::make_unique<Budget>(concat(op_, ": '", path_, "'"), size_, max_ratio);
}

InputFile::~InputFile() {
  if (fd_ >= 0) ::close(fd_);
}

InputFile::InputFile(InputFile&& other) noexcept
    : op_(std::move(other.op_)),
      path_(std::move(other.path_)),
      size_(other.size_),
      budget_(std::move(other.budget_)),
      fd_(std::exchange(other.fd_, -1)) {}

InputFile& InputFile::operator=(InputFile&& other) noexcept {
  std::swap(op_, other.op_);
  std::swap(path_, other.path_);
  std::swap(size_, other.size_);
  std::swap(budget_, other.budget_);
  std::swap(fd_, other.fd_);
  return *this;
}

// Copying from the page cache into fresh memory is bound by page faults, which threads share.
void InputFile::read_at(uint64_t offset, void* out, size_t bytes) const {
  char* const to = static_cast<char*>(out);
  parallel_for(static_cast<int64_t>(bytes), kReadPiece, [&](int64_t begin, int64_t end) {
    read_piece(offset + static_cast<uint64_t>(begin), to + begin, static_cast<size_t>(end - begin));
  });
}

std::string InputFile::read_whole(uint64_t most) const {
  if (size_ > most) {
    throw_error<IoError>(op_, ": '", path_, "' is too large; got ", size_,
                         " bytes; expected at most ", most);
  }
  std::string out(static_cast<size_t>(size_), '\0');
  read_at(0, out.data(), out.size());
  return out;
}

void InputFile::read_piece(uint64_t offset, char* at, size_t bytes) const {
  while (bytes > 0) {
    const ssize_t got =
        ::pread(fd_, at, std::min<size_t>(bytes, size_t{1} << 30), static_cast<off_t>(offset));
    if (got < 0) {
      if (errno == EINTR) continue;
      fail(op_, path_, "cannot read", std::generic_category().message(errno));
    }
    if (got == 0) fail(op_, path_, "cannot read", concat("the end of the file at byte ", offset));
    at += got;
    offset += static_cast<uint64_t>(got);
    bytes -= static_cast<size_t>(got);
  }
}

}  // namespace kiln::io
