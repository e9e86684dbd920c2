// Reading zip archives: the container of PyTorch's and NumPy's files.
//
// Note [Own zip code]. libzip and its like do not say where in the file an entry's bytes lie, which
// is what reading straight into a tensor needs, nor do they place an entry at a multiple of 64
// bytes when writing; and they accept archives that this one refuses: entries that overlap, names
// that occur twice, local headers that contradict the directory. Compression itself is zlib's.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "kiln/io/input_file.h"

namespace kiln::io {

struct ZipEntry {
  std::string name;
  uint16_t method = 0;      // 0: stored, 8: deflate
  uint32_t crc = 0;         // of the content
  uint64_t compressed = 0;  // bytes in the file
  uint64_t size = 0;        // bytes of the content
  uint64_t header = 0;      // where its local header begins in the file
  uint64_t offset = 0;      // where its bytes begin in the file
};

// What a checksum of 0 means: itself, or (PyTorch writes such files when asked to) that none was
// computed.
enum class ZeroChecksum { is_a_checksum, is_none };

// Opens an archive and validates its directory against its local headers; reads on request.
//
// Refused, with an IoError: truncated or contradictory structures, encryption, several disks,
// entries that overlap or share a name, names that lead out of a folder, sizes that DEFLATE cannot
// reach from the bytes there are. Zip64 is understood. The directory is charged to the file's
// budget.
class ZipReader {
 public:
  explicit ZipReader(InputFile file, ZeroChecksum zero = ZeroChecksum::is_a_checksum);

  const InputFile& file() const { return file_; }
  // In the order of the directory.
  const std::vector<ZipEntry>& entries() const { return entries_; }
  // Null when there is none.
  const ZipEntry* find(std::string_view name) const;

  // The whole content, charged to the file's budget. Throws IoError when it has more than
  // `max_bytes`, is damaged, or is compressed by a method other than DEFLATE.
  std::string read(const ZipEntry& entry, uint64_t max_bytes) const;
  // The whole content into entry.size bytes at `out`; a large stored entry by several threads.
  void read_into(const ZipEntry& entry, void* out) const;
  // Whether `crc` is what the entry should have.
  void check_crc(const ZipEntry& entry, uint32_t crc) const;

  [[noreturn]] void malformed(const std::string& what, const std::string& got,
                              const std::string& expected = "a complete zip archive") const;

 private:
  struct Directory;
  Directory find_directory() const;
  void read_directory(const Directory& directory);
  ZipEntry parse_entry(std::string_view record, size_t* length) const;
  void locate(ZipEntry& entry, uint64_t directory_begin) const;
  void check_layout();

  InputFile file_;
  ZeroChecksum zero_;
  std::vector<ZipEntry> entries_;
  std::unordered_map<std::string_view, size_t> index_;  // views of entries_' names
};

// The content of one entry, piece by piece. Reading the last byte also checks the checksum.
class ZipStream {
 public:
  // Both must outlive the stream. Throws IoError for an unknown compression method.
  ZipStream(const ZipReader& zip, const ZipEntry& entry);
  ~ZipStream();
  ZipStream(const ZipStream&) = delete;
  ZipStream& operator=(const ZipStream&) = delete;

  uint64_t left() const { return left_; }
  // Reads exactly `bytes`, at most left().
  void read(void* out, size_t bytes);

 private:
  struct Inflater;
  void finish();

  const ZipReader& zip_;
  const ZipEntry& entry_;
  uint64_t left_;
  uint32_t crc_ = 0;
  std::unique_ptr<Inflater> inflater_;  // null for a stored entry
};

}  // namespace kiln::io
