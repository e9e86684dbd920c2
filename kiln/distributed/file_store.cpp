#include "kiln/distributed/file_store.h"

#include <cerrno>
#include <cstring>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kiln/distributed/error.h"

namespace kiln::distributed {

namespace {

// A change in the file: whether the key is set or erased (1 byte), the lengths of key and value (8
// bytes each, little-endian), and the two.
constexpr size_t kHead = 17;
constexpr char kSet = 'S';
constexpr char kErased = 'E';

const std::string kUsers = "\1/users";  // how many processes have the file open
const std::string kCame = "\1/came";    // how many had

void put_number(std::string& out, uint64_t value) {
  for (int i = 0; i < 8; ++i) out += static_cast<char>(value >> (8 * i));
}

uint64_t number_at(const std::string& bytes, size_t at) {
  uint64_t value = 0;
  for (size_t i = 0; i < 8; ++i) {
    value |= static_cast<uint64_t>(static_cast<uint8_t>(bytes[at + i])) << (8 * i);
  }
  return value;
}

[[noreturn]] void throw_failed(const char* what, const std::string& path) {
  throw_error<DistStoreError>("FileStore: cannot ", what, " ", path, ": ", std::strerror(errno));
}

}  // namespace

// Holds the locks of the process and of the file, and knows what the file says.
class FileStore::Locked {
 public:
  explicit Locked(FileStore& store) : lock_(store.mutex_), fd_(store.fd_) {
    while (::flock(fd_, LOCK_EX) != 0) {
      if (errno != EINTR) throw_failed("lock", store.path_);
    }
    try {
      store.read_new();
    } catch (...) {
      ::flock(fd_, LOCK_UN);
      throw;
    }
  }
  ~Locked() { ::flock(fd_, LOCK_UN); }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;

 private:
  std::lock_guard<std::mutex> lock_;
  int fd_;
};

FileStore::FileStore(std::string path, std::optional<int64_t> world_size, milliseconds timeout)
    : Store(timeout), path_(std::move(path)), world_size_(world_size) {
  if (world_size_ && *world_size_ < 1) {
    throw_error<ValueError>("FileStore: world_size must be positive; got ", *world_size_);
  }
  fd_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (fd_ < 0) throw_failed("open", path_);
  try {
    add(kUsers, 1);
    add(kCame, 1);
  } catch (...) {
    ::close(fd_);
    throw;
  }
}

FileStore::~FileStore() {
  try {
    const int64_t left = add(kUsers, -1);
    if (left == 0 && world_size_ && add(kCame, 0) >= *world_size_) ::unlink(path_.c_str());
  } catch (const Error&) {
    // The file is gone or damaged; nobody needs it any more.
  }
  ::close(fd_);
}

void FileStore::read_new() {
  struct stat info {};
  if (::fstat(fd_, &info) != 0) throw_failed("read", path_);
  if (info.st_size < read_to_) {
    throw_error<DistStoreError>("FileStore: ", path_, " became shorter while it was in use");
  }
  std::string bytes(static_cast<size_t>(info.st_size - read_to_), '\0');
  for (size_t got = 0; got < bytes.size();) {
    const ssize_t n = ::pread(fd_, bytes.data() + got, bytes.size() - got,
                              static_cast<off_t>(read_to_ + static_cast<int64_t>(got)));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) throw_failed("read", path_);
    got += static_cast<size_t>(n);
  }
  for (size_t at = 0; at < bytes.size();) {
    const size_t left = bytes.size() - at;
    const char kind = bytes[at];
    const uint64_t key_size = left < kHead ? 0 : number_at(bytes, at + 1);
    const uint64_t value_size = left < kHead ? 0 : number_at(bytes, at + 9);
    const bool fits =
        left >= kHead && key_size <= left - kHead && value_size <= left - kHead - key_size;
    if ((kind != kSet && kind != kErased) || !fits) {
      throw_error<DistStoreError>("FileStore: ", path_, " is no file of a store, or is damaged");
    }
    const std::string key = bytes.substr(at + kHead, key_size);
    if (kind == kSet) {
      table_.set(key, bytes.substr(at + kHead + key_size, value_size));
    } else {
      table_.erase(key);
    }
    const size_t size = kHead + key_size + value_size;
    at += size;
    read_to_ += static_cast<int64_t>(size);
  }
}

void FileStore::write(const std::string& key) {
  const std::string* const value = table_.find(key);
  std::string bytes(1, value == nullptr ? kErased : kSet);
  put_number(bytes, key.size());
  put_number(bytes, value == nullptr ? 0 : value->size());
  bytes += key;
  if (value != nullptr) bytes += *value;
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t n = ::write(fd_, bytes.data() + done, bytes.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      const int error = errno;
      // Half of a change is none.
      if (::ftruncate(fd_, static_cast<off_t>(read_to_)) == 0) errno = error;
      throw_failed("write to", path_);
    }
    done += static_cast<size_t>(n);
  }
  read_to_ += static_cast<int64_t>(bytes.size());
}

void FileStore::set(const std::string& key, const std::string& value) {
  const Locked lock(*this);
  table_.set(key, value);
  write(key);
}

std::string FileStore::get(const std::string& key) {
  wait({key});
  const Locked lock(*this);
  const std::string* const value = table_.find(key);
  if (value == nullptr) throw_not_in_time({key}, timeout());  // erased again
  return *value;
}

int64_t FileStore::add(const std::string& key, int64_t amount) {
  const Locked lock(*this);
  const int64_t sum = table_.add(key, amount);
  write(key);
  return sum;
}

void FileStore::append(const std::string& key, const std::string& value) {
  const Locked lock(*this);
  table_.append(key, value);
  write(key);
}

std::string FileStore::compare_set(const std::string& key, const std::string& expected,
                                   const std::string& desired) {
  const Locked lock(*this);
  std::string value = table_.compare_set(key, expected, desired);
  if (table_.find(key) != nullptr) write(key);
  return value;
}

bool FileStore::check(const std::vector<std::string>& keys) {
  const Locked lock(*this);
  return table_.has(keys);
}

void FileStore::wait(const std::vector<std::string>& keys, milliseconds timeout) {
  const Deadline deadline(timeout);
  while (!check(keys)) {
    if (deadline.is_over()) throw_not_in_time(keys, timeout);
    check_interrupt();
    std::this_thread::sleep_for(milliseconds(10));
  }
}

bool FileStore::delete_key(const std::string& key) {
  const Locked lock(*this);
  const bool there = table_.erase(key);
  if (there) write(key);
  return there;
}

int64_t FileStore::num_keys() {
  const Locked lock(*this);
  return table_.size() - 2;
}

}  // namespace kiln::distributed
