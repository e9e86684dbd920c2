#include "kiln/train/append_file.h"

#include <cerrno>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kiln/core/error.h"

namespace kiln::train {

AppendFile::AppendFile(std::string path, int64_t position) : path_(std::move(path)) {
  fd_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  struct stat status {};
  if (fd_ < 0 || ::fstat(fd_, &status) != 0) fail(errno);
  position_ = position < 0 || position > status.st_size ? status.st_size : position;
  if (S_ISREG(status.st_mode) && ::ftruncate(fd_, position_) != 0) {
    const int error = errno;
    ::close(fd_);  // the destructor does not run when the constructor throws
    fail(error);
  }
  ::lseek(fd_, position_, SEEK_SET);
}

AppendFile::~AppendFile() {
  if (fd_ >= 0) ::close(fd_);
}

void AppendFile::append(std::string_view record) {
  size_t done = 0;
  while (done < record.size()) {
    const ssize_t written = ::write(fd_, record.data() + done, record.size() - done);
    if (written < 0) {
      if (errno == EINTR) continue;
      const int error = errno;
      // What there is of the record goes again; a file that cannot be cut is no regular one.
      [[maybe_unused]] const int cut = ::ftruncate(fd_, position_);
      ::lseek(fd_, position_, SEEK_SET);
      fail(error);
    }
    done += static_cast<size_t>(written);
  }
  position_ += static_cast<int64_t>(record.size());
}

void AppendFile::fail(int error) const {
  throw_error<IoError>("log: cannot write '", path_, "'; got ",
                       std::generic_category().message(error),
                       "; expected a path in a writable directory with free space");
}

}  // namespace kiln::train
