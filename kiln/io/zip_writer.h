// Writing zip archives whose entries lie where they can be read in place.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "kiln/io/atomic_file.h"

namespace kiln::io {

enum class ZipMethod { stored, deflate };

// Writes to an AtomicFile: nothing is at `path` until finish(). Sizes beyond 4 GiB and more than
// 65535 entries are written as zip64. Compressed archives stay within a reader's Budget: a part of
// what would be compressed further is stored. Two writes of the same content give the same bytes.
class ZipWriter {
 public:
  // Stored entries begin at a multiple of `alignment` bytes (0 or 1: anywhere).
  ZipWriter(std::string op, const std::string& path, size_t alignment = 64);

  // One entry of several pieces, in one go. Names must be new, non-empty and at most 65535 bytes
  // (ValueError).
  struct Piece {
    const void* data = nullptr;
    size_t bytes = 0;
  };
  void add(const std::string& name, const std::vector<Piece>& pieces,
           ZipMethod method = ZipMethod::stored);
  void add(const std::string& name, std::string_view content,
           ZipMethod method = ZipMethod::stored) {
    add(name, {{content.data(), content.size()}}, method);
  }
  // Writes the directory and puts the file in place.
  void finish();

 private:
  struct Entry {
    std::string name;
    uint16_t method = 0;
    uint32_t crc = 0;
    uint64_t compressed = 0;
    uint64_t size = 0;
    uint64_t header = 0;
  };
  void write(std::string_view bytes);
  void write_header(const Entry& entry);

  std::string op_;
  AtomicFile file_;
  size_t alignment_;
  uint64_t offset_ = 0;
  uint64_t content_ = 0;  // bytes of all entries so far
  std::vector<Entry> entries_;
  std::unordered_set<std::string> names_;
};

}  // namespace kiln::io
