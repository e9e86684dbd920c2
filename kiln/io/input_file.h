// A regular file opened for reading at any offset.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "kiln/core/budget.h"
#include "kiln/core/utf8.h"

namespace kiln::io {

// Every failure is an IoError that names the operation, the path and the system's reason. Reads of
// different threads do not disturb each other.
class InputFile {
 public:
  // `op` names the caller in messages. Directories, pipes and devices are refused. `max_ratio`: of
  // its budget.
  InputFile(std::string op, std::string path, uint64_t max_ratio = Budget::kRatio);
  ~InputFile();
  InputFile(InputFile&& other) noexcept;
  InputFile& operator=(InputFile&& other) noexcept;

  const std::string& op() const { return op_; }
  const std::string& path() const { return path_; }
  // Bytes in the file when it was opened.
  uint64_t size() const { return size_; }
  // What reading it may cost; whoever reads charges it.
  Budget& budget() const { return *budget_; }

  // Reads exactly `bytes` from `offset` on, many of them by several threads; a file that ends
  // before is an error.
  void read_at(uint64_t offset, void* out, size_t bytes) const;
  // The whole file; larger than `most` bytes is an error.
  std::string read_whole(uint64_t most) const;

 private:
  void read_piece(uint64_t offset, char* out, size_t bytes) const;

  std::string op_;
  std::string path_;
  uint64_t size_ = 0;
  std::unique_ptr<Budget> budget_;
  int fd_ = -1;
};

}  // namespace kiln::io
