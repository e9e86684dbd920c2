#include "kiln/io/atomic_file.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kiln/core/error.h"

namespace kiln::io {

namespace {

// Follows links, so that saving through one replaces what it points to. A target that does not
// exist yet stays as is.
std::string resolved(const std::string& path) {
  std::error_code error;
  const std::filesystem::path real = std::filesystem::canonical(path, error);
  return error ? path : real.string();
}

}  // namespace

AtomicFile::AtomicFile(std::string op, const std::string& path)
    : op_(std::move(op)), path_(path), target_(resolved(path)) {
  const size_t slash = target_.rfind('/');
  directory_ = slash == std::string::npos ? "." : slash == 0 ? "/" : target_.substr(0, slash);
  if (target_.empty() || slash + 1 == target_.size()) fail("cannot write", EISDIR);

  unsigned mode = 0;
  struct stat existing {};
  if (::stat(target_.c_str(), &existing) == 0) {
    if (!S_ISREG(existing.st_mode)) {
      // Renaming over a device or a pipe would replace it by a file.
      throw_error<IoError>(
          op_, ": cannot write '", path_,
          "'; got something that is no regular file; expected a file or a free name");
    }
    if (::access(target_.c_str(), W_OK) != 0) fail("cannot replace", errno);
    mode = existing.st_mode & 0777u;
  } else if (errno != ENOENT) {
    fail("cannot write", errno);
  }
  create_temporary(mode);
}

AtomicFile::~AtomicFile() { discard(); }

void AtomicFile::create_temporary(unsigned mode) {
  static std::atomic<unsigned> counter{0};
  // Long names are cut so that the suffix still fits the file system's 255 bytes.
  const std::string name = target_.substr(target_.rfind('/') + 1).substr(0, 200);
  for (int attempt = 0; attempt < 100; ++attempt) {
    temporary_ = concat(directory_, "/.", name, ".", static_cast<long>(::getpid()), "-",
                        counter.fetch_add(1), ".tmp");
    fd_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd_ >= 0 || errno != EEXIST) break;
  }
  if (fd_ < 0) {
    const int error = errno;
    temporary_.clear();
    fail("cannot write", error);
  }
  if (mode != 0 && ::fchmod(fd_, static_cast<mode_t>(mode)) != 0) {
    const int error = errno;
    discard();  // the destructor does not run when the constructor throws
    fail("cannot set the permissions of", error);
  }
}

void AtomicFile::write(const void* data, size_t bytes) {
  if (fd_ < 0) throw_error<IoError>(op_, ": write after commit of '", path_, "'");
  const char* at = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t written = ::write(fd_, at, std::min<size_t>(bytes, size_t{1} << 30));
    if (written < 0) {
      if (errno == EINTR) continue;
      fail("cannot write", errno);
    }
    at += written;
    bytes -= static_cast<size_t>(written);
  }
}

void AtomicFile::sync() {
  if (fd_ < 0) return;
  if (::fsync(fd_) != 0) fail("cannot sync", errno);
  const int closed = ::close(std::exchange(fd_, -1));
  if (closed != 0) fail("cannot close", errno);
}

void AtomicFile::commit() {
  if (temporary_.empty()) throw_error<IoError>(op_, ": second commit of '", path_, "'");
  sync();
  if (::rename(temporary_.c_str(), target_.c_str()) != 0) fail("cannot replace", errno);
  temporary_.clear();

  const int directory = ::open(directory_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0) return;  // a directory that may be written but not read cannot be synced
  const int synced = ::fsync(directory);
  const int error = errno;
  ::close(directory);
  if (synced != 0 && error != EINVAL && error != ENOTSUP) {
    fail("wrote the file but cannot sync the directory of", error);
  }
}

void AtomicFile::discard() noexcept {
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
  temporary_.clear();
}

void AtomicFile::fail(const char* what, int error) const {
  throw_error<IoError>(op_, ": ", what, " '", path_, "'; got ",
                       std::generic_category().message(error),
                       "; expected a path in a writable directory with free space");
}

void write_file_atomically(const char* op, const std::string& path, std::string_view content) {
  AtomicFile file(op, path);
  file.write(content);
  file.commit();
}

}  // namespace kiln::io
