// Zip archives made byte by byte, so that they can lie. Independent of Kiln's own writer.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <zlib.h>

namespace kiln::test {

inline std::string little_endian(uint64_t value, size_t bytes) {
  std::string out;
  for (size_t i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i));
  return out;
}

inline std::string deflated(const std::string& bytes) {
  z_stream stream{};
  deflateInit2(&stream, 9, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&stream, bytes.size()) + 16, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

// One entry, and the lies about it: what is empty (-1) is the truth.
struct ZipPart {
  std::string name;
  std::string content;
  bool deflate = false;
  int64_t size = -1;        // in the directory and the local header
  int64_t compressed = -1;  // in both
  int64_t crc = -1;
  int64_t header = -1;      // where the directory says that the local header is
  int64_t local_size = -1;  // in the local header alone
  std::string local_name = {};
  int method = -1;
  int flags = 0;
};

inline std::string zip_of(const std::vector<ZipPart>& parts, int64_t entries = -1,
                          int64_t directory_at = -1, int64_t directory_bytes = -1,
                          const std::string& comment = "") {
  const auto or_else = [](int64_t lie, uint64_t truth) {
    return lie < 0 ? truth : static_cast<uint64_t>(lie);
  };
  std::string out;
  std::string directory;
  for (const ZipPart& p : parts) {
    const std::string data = p.deflate ? deflated(p.content) : p.content;
    const uint64_t size = or_else(p.size, p.content.size());
    const uint64_t compressed = or_else(p.compressed, data.size());
    const uint64_t crc = or_else(
        p.crc, ::crc32_z(0, reinterpret_cast<const Bytef*>(p.content.data()), p.content.size()));
    const uint64_t method = or_else(p.method, p.deflate ? 8 : 0);
    const uint64_t at = or_else(p.header, out.size());
    const std::string& local = p.local_name.empty() ? p.name : p.local_name;
    const std::string common = little_endian(20, 2) +
                               little_endian(static_cast<uint64_t>(p.flags), 2) +
                               little_endian(method, 2) + little_endian(0, 4) +
                               little_endian(crc, 4) + little_endian(compressed, 4);
    out += "PK\3\4" + common + little_endian(or_else(p.local_size, size), 4) +
           little_endian(local.size(), 2) + little_endian(0, 2) + local + data;
    directory += "PK\1\2" + little_endian(20, 2) + common + little_endian(size, 4) +
                 little_endian(p.name.size(), 2) + std::string(12, '\0') + little_endian(at, 4) +
                 p.name;
  }
  const uint64_t begin = out.size();
  out += directory;
  const uint64_t n = or_else(entries, parts.size());
  return out + "PK\5\6" + std::string(4, '\0') + little_endian(n, 2) + little_endian(n, 2) +
         little_endian(or_else(directory_bytes, directory.size()), 4) +
         little_endian(or_else(directory_at, begin), 4) + little_endian(comment.size(), 2) +
         comment;
}

}  // namespace kiln::test
