// The numbers of the zip format (PKWARE's APPNOTE 6.3). For zip_reader.cpp and zip_writer.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace kiln::io::zip {

inline constexpr uint32_t kLocalHeader = 0x04034b50;
inline constexpr uint32_t kDirectoryEntry = 0x02014b50;
inline constexpr uint32_t kEnd = 0x06054b50;
inline constexpr uint32_t kEnd64 = 0x06064b50;
inline constexpr uint32_t kLocator64 = 0x07064b50;

inline constexpr size_t kLocalHeaderBytes = 30;
inline constexpr size_t kDirectoryEntryBytes = 46;
inline constexpr size_t kEndBytes = 22;
inline constexpr size_t kEnd64Bytes = 56;
inline constexpr size_t kLocator64Bytes = 20;

inline constexpr uint16_t kExtraZip64 = 0x0001;
inline constexpr uint16_t kExtraPadding = 0x4246;  // "FB", as PyTorch names its padding

inline constexpr uint16_t kStored = 0;
inline constexpr uint16_t kDeflate = 8;

inline constexpr uint32_t kMax32 = 0xffffffff;  // "see the zip64 record"
inline constexpr uint16_t kMax16 = 0xffff;

// The little-endian number of `bytes` bytes at `at`, which must be there.
inline uint64_t number(std::string_view record, size_t at, size_t bytes) {
  uint64_t value = 0;
  for (size_t i = bytes; i-- > 0;) {
    value = value << 8 | static_cast<unsigned char>(record[at + i]);
  }
  return value;
}
inline uint16_t number16(std::string_view record, size_t at) {
  return static_cast<uint16_t>(number(record, at, 2));
}
inline uint32_t number32(std::string_view record, size_t at) {
  return static_cast<uint32_t>(number(record, at, 4));
}
inline uint64_t number64(std::string_view record, size_t at) { return number(record, at, 8); }

inline void append(std::string& out, uint64_t value, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i) & 0xff);
}

// Whether a name would lead out of the folder that an archive is unpacked to.
inline bool leads_out(std::string_view name) {
  if (name.starts_with('/') || name.find('\\') != std::string_view::npos ||
      name.find('\0') != std::string_view::npos) {
    return true;
  }
  while (true) {
    const size_t slash = name.find('/');
    if (name.substr(0, slash) == "..") return true;
    if (slash == std::string_view::npos) return false;
    name.remove_prefix(slash + 1);
  }
}

}  // namespace kiln::io::zip
