// The bytes of a pickle: of a string in memory, or of a file from some place on.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "kiln/io/input_file.h"

namespace kiln::io::detail {

class PickleInput {
 public:
  // `file` names what is read in messages; both must outlive the input.
  PickleInput(const InputFile& file, std::string_view bytes);
  // Bytes of the file from `begin` up to `end`, through a small buffer.
  PickleInput(const InputFile& file, uint64_t begin, uint64_t end);

  const InputFile& file() const { return *file_; }
  // Of the next byte.
  uint64_t position() const { return base_ + at_; }
  uint64_t left() const { return end_ - position(); }

  // Each throws IoError where the bytes end before.
  uint8_t byte();
  // The little-endian number of `bytes` bytes.
  uint64_t number(size_t bytes);
  // `bytes` bytes; their number is compared with what is left before anything is allocated.
  std::string take(uint64_t bytes);
  // Up to a newline, which is taken too; at most 400 bytes.
  std::string line();

  [[noreturn]] void fail(const std::string& what, const std::string& got,
                         const std::string& expected = "a complete pickle") const;

 private:
  void need(uint64_t bytes);

  const InputFile* file_;
  std::string buffer_;      // of a file
  std::string_view bytes_;  // what is at hand, from base_ on
  uint64_t base_ = 0;
  uint64_t end_ = 0;
  size_t at_ = 0;  // in bytes_
};

}  // namespace kiln::io::detail
