// Reading files that may be gzipped. Whether one is, its first two bytes tell; its name does not
// matter.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "kiln/core/budget.h"

namespace kiln::io {

// The content of a plain or gzipped file as a stream. Truncated data, a wrong checksum, and bytes
// after the end of the compressed data are IoErrors.
class GzipFile {
 public:
  // `op` names the caller in messages.
  GzipFile(std::string op, std::string path);
  ~GzipFile();

  bool is_compressed() const;
  // The most bytes the content can have: exact for a plain file; for a gzipped one what DEFLATE's
  // best ratio, 1032 to 1, would give. A size that the content claims for itself is checked against
  // it before anything is allocated.
  uint64_t size_bound() const;

  // Of the file: whoever keeps what he reads charges it.
  Budget& budget() const;
  const std::string& op() const;
  const std::string& path() const;

  // Reads the next bytes into `out`; fewer than `bytes` only where the content ends.
  size_t read(void* out, size_t bytes);
  // True when everything has been read. Reads on to see that, so that the last checksum is verified
  // too.
  bool at_end();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The rest of the content, charged to the file's budget. Throws IoError when there are more than
// `max_bytes` of it.
std::vector<std::byte> read_all(GzipFile& file, uint64_t max_bytes);
// The whole content of a plain or gzipped file.
std::vector<std::byte> read_file(const char* op, const std::string& path, uint64_t max_bytes);

// `content` as a gzip file. Level 0 stores, 9 compresses most. Where the result would be shorter
// than `at_least` bytes, parts of the content are stored as they are.
std::string compress_gzip(std::string_view content, int level = 6, uint64_t at_least = 0);

}  // namespace kiln::io
