#include "kiln/io/atomic_file.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <system_error>
#include <utility>

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kiln/core/error.h"
#include "kiln/core/utf8.h"

namespace kiln::io {

namespace {

// Follows links, so that saving through one replaces what it points to. A target that does not
// exist yet stays as is.
std::string resolved(const std::string& path) {
  std::error_code error;
  const std::filesystem::path real = std::filesystem::canonical(path, error);
  return error ? path : real.string();
}

// As many temporaries stay open and locked until their commit; of more, which wait for it closed,
// the process in their name is what says that they are in use.
constexpr int kMostLocked = 256;

// The process in the rest of a temporary's name, "PID-N.tmp"; 0 when it is none.
pid_t process_of(std::string_view rest) {
  long process = 0;
  const auto [dash, error] = std::from_chars(rest.data(), rest.data() + rest.size(), process);
  rest.remove_prefix(static_cast<size_t>(dash - rest.data()));
  if (error != std::errc() || process <= 0 || !rest.starts_with('-')) return 0;
  rest.remove_prefix(1);
  const size_t digits = rest.find_first_not_of("0123456789");
  return digits > 0 && rest.substr(std::min(digits, rest.size())) == ".tmp"
             ? static_cast<pid_t>(process)
             : 0;
}

// Removes a temporary that nobody has locked, and whose process is gone or, where its number was
// given to another, which nobody has written for a day.
void remove_stale_file(const std::string& path, pid_t process) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) return;
  const bool gone = ::kill(process, 0) != 0 && errno == ESRCH;
  struct stat status {};
  if (::fstat(fd, &status) == 0 && S_ISREG(status.st_mode) &&
      (gone || ::time(nullptr) - status.st_mtime > 24 * 60 * 60) &&
      ::flock(fd, LOCK_EX | LOCK_NB) == 0) {
    detail::before_file_step("unlink");
    ::unlink(path.c_str());
  }
  ::close(fd);
}

}  // namespace

std::atomic<detail::FileStep> detail::file_step{nullptr};

AtomicFile::AtomicFile(std::string op, const std::string& path)
    : op_(std::move(op)), path_(path), target_(resolved(path)) {
  // The system would write to what stands before it.
  if (path.find('\0') != std::string::npos) {
    path_ = printable(path);
    fail("cannot write a name with a zero byte", EINVAL);
  }
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
  const std::string prefix = concat(".", name, ".");
  remove_stale(prefix);
  for (int attempt = 0; attempt < 100; ++attempt) {
    temporary_ = concat(directory_, "/", prefix, static_cast<long>(::getpid()), "-",
                        counter.fetch_add(1), ".tmp");
    detail::before_file_step("open");
    fd_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd_ < 0 && errno != EEXIST) break;
    // Some file systems have no locks; there the process in the name is enough.
    struct stat status {};
    if (fd_ >= 0 &&
        (::flock(fd_, LOCK_EX) != 0 || ::fstat(fd_, &status) != 0 || status.st_nlink > 0)) {
      break;
    }
    // Another save took it for stale before it was locked.
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
    errno = EEXIST;
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

// Best effort: a temporary that cannot be removed does no harm but take room.
void AtomicFile::remove_stale(const std::string& prefix) const {
  DIR* const folder = ::opendir(directory_.c_str());
  if (folder == nullptr) return;
  while (const dirent* entry = ::readdir(folder)) {
    const std::string_view name = entry->d_name;
    if (!name.starts_with(prefix)) continue;
    const pid_t process = process_of(name.substr(prefix.size()));
    if (process == 0 || process == ::getpid()) continue;
    remove_stale_file(concat(directory_, "/", name), process);
  }
  ::closedir(folder);
}

void AtomicFile::write(const void* data, size_t bytes) {
  if (synced_) throw_error<IoError>(op_, ": write after commit of '", path_, "'");
  const char* at = static_cast<const char*>(data);
  while (bytes > 0) {
    detail::before_file_step("write");
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
  if (std::exchange(synced_, true)) return;
  detail::before_file_step("sync");
  if (::fsync(fd_) != 0) fail("cannot sync", errno);
  if (fd_ > kMostLocked && ::close(std::exchange(fd_, -1)) != 0) fail("cannot close", errno);
}

void AtomicFile::commit() {
  if (temporary_.empty()) throw_error<IoError>(op_, ": second commit of '", path_, "'");
  sync();
  detail::before_file_step("rename");
  if (::rename(temporary_.c_str(), target_.c_str()) != 0) fail("cannot replace", errno);
  temporary_.clear();
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));

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

void remove_stale_temporaries(const std::string& folder) {
  DIR* const open = ::opendir(folder.c_str());
  if (open == nullptr) return;
  while (const dirent* entry = ::readdir(open)) {
    const std::string_view name = entry->d_name;
    if (!name.starts_with('.') || !name.ends_with(".tmp")) continue;
    const size_t dot = name.substr(0, name.size() - 4).rfind('.');
    if (dot == 0 || dot == std::string_view::npos) continue;
    const pid_t process = process_of(name.substr(dot + 1));
    if (process == 0 || process == ::getpid()) continue;
    remove_stale_file(concat(folder, "/", name), process);
  }
  ::closedir(open);
}

void write_file_atomically(const char* op, const std::string& path, std::string_view content) {
  AtomicFile file(op, path);
  file.write(content);
  file.commit();
}

}  // namespace kiln::io
