// AppendFile: a log that grows record by record, and that a resumed run cuts back to where its
// checkpoint was made.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace kiln::train {

// Each record is on its way to the disk when append() returns: a process that is killed then has
// written it.
class AppendFile {
 public:
  // `position`: the bytes to keep of what is there; negative: all. Throws IoError.
  explicit AppendFile(std::string path, int64_t position = 0);
  ~AppendFile();
  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;

  // A whole record or, with an IoError, nothing of it.
  void append(std::string_view record);
  // Bytes so far.
  int64_t position() const { return position_; }
  const std::string& path() const { return path_; }

 private:
  [[noreturn]] void fail(int error) const;

  std::string path_;
  int fd_ = -1;
  int64_t position_ = 0;
};

}  // namespace kiln::train
