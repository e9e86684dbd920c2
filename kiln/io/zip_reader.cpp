#include "kiln/io/zip_reader.h"

#include <algorithm>

#include "kiln/core/error.h"
#include "kiln/io/zip_format.h"

namespace kiln::io {

namespace {

// More directory than this belongs to no model; a million entries need half of it.
constexpr uint64_t kMaxDirectory = uint64_t{128} << 20;
constexpr uint64_t kBestRatio = 1032;  // of DEFLATE: 258 bytes from 2 bits

}  // namespace

struct ZipReader::Directory {
  uint64_t begin = 0;
  uint64_t bytes = 0;
  uint64_t entries = 0;
};

ZipReader::ZipReader(InputFile file, ZeroChecksum zero) : file_(std::move(file)), zero_(zero) {
  read_directory(find_directory());
  check_layout();
}

void ZipReader::malformed(const std::string& what, const std::string& got,
                          const std::string& expected) const {
  throw_error<IoError>(file_.op(), ": '", file_.path(), "' is malformed: ", what, "; got ", got,
                       "; expected ", expected);
}

const ZipEntry* ZipReader::find(std::string_view name) const {
  const auto found = index_.find(name);
  return found == index_.end() ? nullptr : &entries_[found->second];
}

// The end record stands before a comment of up to 65535 bytes, whose length it gives.
ZipReader::Directory ZipReader::find_directory() const {
  const uint64_t size = file_.size();
  const uint64_t tail_bytes = std::min<uint64_t>(
      size, zip::kEndBytes + zip::kMax16 + zip::kEnd64Bytes + zip::kLocator64Bytes);
  std::string tail(static_cast<size_t>(tail_bytes), '\0');
  file_.read_at(size - tail_bytes, tail.data(), tail.size());
  size_t at = std::string::npos;
  for (size_t i = tail.size() < zip::kEndBytes ? 0 : tail.size() - zip::kEndBytes + 1; i-- > 0;) {
    if (zip::number32(tail, i) == zip::kEnd &&
        i + zip::kEndBytes + zip::number16(tail, i + 20) == tail.size()) {
      at = i;
      break;
    }
  }
  if (at == std::string::npos) malformed("its end is missing", concat(size, " bytes"));
  const std::string_view end = std::string_view(tail).substr(at, zip::kEndBytes);
  if (zip::number16(end, 4) != 0 || zip::number16(end, 6) != 0 ||
      zip::number16(end, 8) != zip::number16(end, 10)) {
    malformed("it is one of several disks", concat("disk ", zip::number16(end, 4)), "one file");
  }
  Directory out{zip::number32(end, 16), zip::number32(end, 12), zip::number16(end, 10)};
  uint64_t end_begin = size - tail.size() + at;

  const bool has_locator = at >= zip::kLocator64Bytes &&
                           zip::number32(tail, at - zip::kLocator64Bytes) == zip::kLocator64;
  if (has_locator) {
    const std::string_view locator = std::string_view(tail).substr(at - zip::kLocator64Bytes);
    const uint64_t begin64 = zip::number64(locator, 8);
    const uint64_t limit = end_begin - zip::kLocator64Bytes;
    if (begin64 > limit || limit - begin64 < zip::kEnd64Bytes) {
      malformed("its zip64 record lies outside", concat("byte ", begin64));
    }
    std::string end64(zip::kEnd64Bytes, '\0');
    file_.read_at(begin64, end64.data(), end64.size());
    const Directory wide{zip::number64(end64, 48), zip::number64(end64, 40),
                         zip::number64(end64, 32)};
    const bool agrees = (out.begin == zip::kMax32 || out.begin == wide.begin) &&
                        (out.bytes == zip::kMax32 || out.bytes == wide.bytes) &&
                        (out.entries == zip::kMax16 || out.entries == wide.entries);
    if (zip::number32(end64, 0) != zip::kEnd64 || !agrees || zip::number32(end64, 16) != 0 ||
        zip::number64(end64, 24) != wide.entries) {
      malformed("its two end records contradict each other",
                concat(wide.entries, " and ", out.entries, " entries"));
    }
    out = wide;
    end_begin = begin64;
  }
  if (out.begin > end_begin || out.bytes != end_begin - out.begin) {
    malformed("its directory does not reach to its end",
              concat(out.bytes, " bytes at byte ", out.begin));
  }
  if (out.bytes > kMaxDirectory) {
    malformed("its directory is too large", concat(out.bytes, " bytes"),
              concat("at most ", kMaxDirectory));
  }
  if (out.entries > out.bytes / zip::kDirectoryEntryBytes) {
    malformed("its directory cannot hold so many entries", concat(out.entries),
              concat("at most ", out.bytes / zip::kDirectoryEntryBytes));
  }
  return out;
}

void ZipReader::read_directory(const Directory& directory) {
  std::string bytes(static_cast<size_t>(directory.bytes), '\0');
  file_.read_at(directory.begin, bytes.data(), bytes.size());
  std::string_view rest = bytes;
  // Entries, their names, and their places in the index.
  file_.budget().charge(directory.entries * (sizeof(ZipEntry) + 160) + 2 * directory.bytes,
                        "its directory");
  entries_.reserve(static_cast<size_t>(directory.entries));
  for (uint64_t i = 0; i < directory.entries; ++i) {
    size_t length = 0;
    entries_.push_back(parse_entry(rest, &length));
    locate(entries_.back(), directory.begin);
    rest.remove_prefix(length);
  }
  if (!rest.empty()) {
    malformed("its directory holds more than its entries", concat(rest.size(), " bytes"), "none");
  }
  index_.reserve(entries_.size());
  for (size_t i = 0; i < entries_.size(); ++i) {
    if (!index_.try_emplace(entries_[i].name, i).second) {
      malformed("a name occurs twice", concat("'", printable(entries_[i].name), "'"),
                "distinct names");
    }
  }
}

ZipEntry ZipReader::parse_entry(std::string_view record, size_t* length) const {
  const auto truncated = [&] {
    malformed("its directory is truncated", concat(record.size(), " bytes"), "another entry");
  };
  if (record.size() < zip::kDirectoryEntryBytes ||
      zip::number32(record, 0) != zip::kDirectoryEntry) {
    truncated();
  }
  const size_t name_bytes = zip::number16(record, 28);
  const size_t extra_bytes = zip::number16(record, 30);
  *length = zip::kDirectoryEntryBytes + name_bytes + extra_bytes + zip::number16(record, 32);
  if (*length > record.size()) truncated();
  ZipEntry entry;
  entry.name = record.substr(zip::kDirectoryEntryBytes, name_bytes);
  entry.method = zip::number16(record, 10);
  entry.crc = zip::number32(record, 16);
  entry.compressed = zip::number32(record, 20);
  entry.size = zip::number32(record, 24);
  entry.header = zip::number32(record, 42);
  const std::string who = concat("entry '", printable(entry.name), "' ");
  if (entry.name.empty() || zip::leads_out(entry.name)) {
    malformed("the name of an entry leads out of the archive",
              concat("'", printable(entry.name), "'"), "a plain relative name");
  }
  constexpr uint16_t kEncrypted = 1 << 0 | 1 << 6 | 1 << 13;
  if ((zip::number16(record, 8) & kEncrypted) != 0) {
    malformed(who + "is encrypted", "encrypted data", "plain or compressed data");
  }
  // Zip64: the fields that did not fit, in this order.
  std::string_view extra = record.substr(zip::kDirectoryEntryBytes + name_bytes, extra_bytes);
  while (extra.size() >= 4) {
    const size_t bytes = zip::number16(extra, 2);
    if (bytes > extra.size() - 4) break;
    if (zip::number16(extra, 0) == zip::kExtraZip64) {
      size_t at = 4;
      for (uint64_t* field : {&entry.size, &entry.compressed, &entry.header}) {
        if (*field != zip::kMax32) continue;
        if (at + 8 > 4 + bytes) malformed(who + "has an incomplete zip64 field", concat(bytes));
        *field = zip::number64(extra, at);
        at += 8;
      }
      break;
    }
    extra.remove_prefix(4 + bytes);
  }
  return entry;
}

// Reads the local header, which must say what the directory says.
void ZipReader::locate(ZipEntry& entry, uint64_t directory_begin) const {
  const std::string who = concat("entry '", printable(entry.name), "' ");
  const uint64_t fixed = zip::kLocalHeaderBytes + entry.name.size();
  if (entry.header > directory_begin || directory_begin - entry.header < fixed) {
    malformed(who + "lies outside the file", concat("byte ", entry.header));
  }
  std::string local(static_cast<size_t>(fixed), '\0');
  file_.read_at(entry.header, local.data(), local.size());
  if (zip::number32(local, 0) != zip::kLocalHeader ||
      zip::number16(local, 26) != entry.name.size() ||
      std::string_view(local).substr(zip::kLocalHeaderBytes) != entry.name ||
      zip::number16(local, 8) != entry.method) {
    malformed(who + "is another one in the directory than in its place",
              concat("another header at byte ", entry.header));
  }
  const uint64_t before = fixed + zip::number16(local, 28);
  const uint64_t room = directory_begin - entry.header;
  if (room < before || room - before < entry.compressed) {
    malformed(who + "lies outside the file", concat(entry.compressed, " bytes"));
  }
  entry.offset = entry.header + before;
  const bool sizes_follow = (zip::number16(local, 6) & 8) != 0;
  const auto differs = [&](size_t at, uint64_t expected) {
    const uint32_t said = zip::number32(local, at);
    return !sizes_follow && said != zip::kMax32 && said != expected;
  };
  if (differs(18, entry.compressed) || differs(22, entry.size)) {
    malformed(who + "has another size in the directory than in its place",
              concat(entry.size, " bytes"));
  }
  const uint64_t most = entry.method == zip::kStored ? entry.compressed
                        : entry.compressed > UINT64_MAX / kBestRatio
                            ? UINT64_MAX
                            : entry.compressed * kBestRatio;
  if (entry.size > most || (entry.method == zip::kStored && entry.size < entry.compressed)) {
    malformed(who + "claims a size that its data cannot have",
              concat(entry.size, " bytes from ", entry.compressed), concat("at most ", most));
  }
}

// Overlapping entries are how an archive of megabytes holds terabytes.
void ZipReader::check_layout() {
  std::vector<const ZipEntry*> order;
  order.reserve(entries_.size());
  for (const ZipEntry& entry : entries_) order.push_back(&entry);
  std::sort(order.begin(), order.end(),
            [](const ZipEntry* a, const ZipEntry* b) { return a->header < b->header; });
  for (size_t i = 1; i < order.size(); ++i) {
    if (order[i]->header < order[i - 1]->offset + order[i - 1]->compressed) {
      malformed(concat("entry '", printable(order[i]->name), "' overlaps '",
                       printable(order[i - 1]->name), "'"),
                concat("byte ", order[i]->header), "entries one after the other");
    }
  }
}

void ZipReader::check_crc(const ZipEntry& entry, uint32_t crc) const {
  if (entry.crc == crc || (entry.crc == 0 && zero_ == ZeroChecksum::is_none)) return;
  malformed(concat("entry '", printable(entry.name), "' is damaged"), concat("checksum ", crc),
            concat(entry.crc));
}

}  // namespace kiln::io
