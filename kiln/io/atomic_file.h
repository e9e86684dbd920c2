// Writing a file so that a reader sees the old content or the new one, and never a part of either.
#pragma once

#include <atomic>
#include <cstddef>
#include <string>
#include <string_view>

namespace kiln::io {

// Collects the new content under a temporary name in the target's directory; commit() syncs it and
// renames it over the target. Without commit() the destructor removes the temporary, and what was
// at `path` stays as it was. A symbolic link is followed; an existing file keeps its permission
// bits. Every failure is an IoError that names the path and the system's reason.
//
// Note [Temporaries of killed saves]. A temporary is locked (flock) while it is written, and its
// name says whose it is: ".NAME.PID-N.tmp". The next save to the same name removes those that
// nobody has locked and whose process is gone. So a save that is under way, here or in another
// process, never loses its own.
class AtomicFile {
 public:
  // `op` names the caller in messages. Throws when the directory is missing or unwritable, or when
  // `path` is there but is no regular file or is write-protected.
  AtomicFile(std::string op, const std::string& path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(const void* data, size_t bytes);
  void write(std::string_view text) { write(text.data(), text.size()); }

  // Brings the content to the disk, still under the temporary name; nothing can be written after.
  // Files that belong together are all synced before the first is committed.
  void sync();

  // Puts the content in place; call it once, after the last write. When it throws, the target is
  // untouched, unless the message says that the directory could not be synced: then the new content
  // is there but may not survive a power failure.
  void commit();

 private:
  void create_temporary(unsigned mode);
  void remove_stale(const std::string& prefix) const;
  void discard() noexcept;
  [[noreturn]] void fail(const char* what, int error) const;

  std::string op_;
  std::string path_;       // as the caller gave it, for messages
  std::string target_;     // with links resolved
  std::string directory_;  // of the target
  std::string temporary_;
  int fd_ = -1;
  bool synced_ = false;
};

// Removes the temporaries that killed saves left in a folder, to whatever names. Best effort.
void remove_stale_temporaries(const std::string& folder);

// Replaces the content of `path` by `content`.
void write_file_atomically(const char* op, const std::string& path, std::string_view content);

namespace detail {

// Tests set a function that every step of a save calls before it is taken ("open", "write", "sync",
// "rename", "unlink"), and end the process in it.
using FileStep = void (*)(const char* step);
extern std::atomic<FileStep> file_step;
inline void before_file_step(const char* step) {
  if (const FileStep f = file_step.load(std::memory_order_relaxed)) f(step);
}

}  // namespace detail

}  // namespace kiln::io
