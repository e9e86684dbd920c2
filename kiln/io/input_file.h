// A regular file opened for reading at any offset.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace kiln::io {

// Every failure is an IoError that names the operation, the path and the system's reason. Reads of
// different threads do not disturb each other.
class InputFile {
 public:
  // `op` names the caller in messages. Directories, pipes and devices are refused.
  InputFile(std::string op, std::string path);
  ~InputFile();
  InputFile(InputFile&& other) noexcept;
  InputFile& operator=(InputFile&& other) noexcept;

  const std::string& op() const { return op_; }
  const std::string& path() const { return path_; }
  // Bytes in the file when it was opened.
  uint64_t size() const { return size_; }

  // Reads exactly `bytes` from `offset` on, many of them by several threads; a file that ends
  // before is an error.
  void read_at(uint64_t offset, void* out, size_t bytes) const;

 private:
  void read_piece(uint64_t offset, char* out, size_t bytes) const;

  std::string op_;
  std::string path_;
  uint64_t size_ = 0;
  int fd_ = -1;
};

// `text` fit for a message: unprintable bytes become '?', and a long one is cut.
std::string printable(const std::string& text, size_t longest = 80);

}  // namespace kiln::io
