#include "kiln/io/zip_writer.h"

#include <algorithm>

#include "kiln/core/budget.h"
#include "kiln/core/error.h"
#include "kiln/io/crc32.h"
#include "kiln/io/input_file.h"
#include "kiln/io/zip_format.h"
#include "kiln/io/zlib_or_none.h"

namespace kiln::io {

namespace {

constexpr uint16_t kVersion = 45;       // of the format: the one that has zip64
constexpr uint32_t kDate = 0x00210000;  // 1 January 1980, midnight: the same at every run

bool is_wide(uint64_t value) { return value >= zip::kMax32; }
uint64_t narrow(uint64_t value) { return is_wide(value) ? zip::kMax32 : value; }

// At most this much content for a byte of the archive: less than what a reader takes unasked.
constexpr uint64_t kMostRatio = Budget::kRatio - 16;
constexpr size_t kChunk = size_t{1} << 20;

// One DEFLATE stream of all pieces. `content` and `archive`: the bytes that were there before, in
// the other entries and in the file.
std::string deflated(const char* op, const std::vector<ZipWriter::Piece>& pieces, uint64_t content,
                     uint64_t archive) {
  detail::require_zlib(op);
  z_stream stream{};
  if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY) !=
      Z_OK) {
    throw_error<IoError>(op, ": zlib cannot start; got no memory");
  }
  struct End {
    z_stream* stream;
    ~End() { deflateEnd(stream); }
  } end{&stream};
  std::string out;
  std::vector<char> buffer(64 * 1024);
  const auto give = [&](auto step) {
    do {
      stream.next_out = reinterpret_cast<Bytef*>(buffer.data());
      stream.avail_out = static_cast<uInt>(buffer.size());
      step();
      out.append(buffer.data(), buffer.size() - stream.avail_out);
    } while (stream.avail_out == 0);
  };
  for (const auto& piece : pieces) {
    for (size_t done = 0; done < piece.bytes;) {
      const size_t n = std::min(piece.bytes - done, kChunk);
      const bool bomb = content > kMostRatio * (archive + out.size());
      give([&] { deflateParams(&stream, bomb ? 0 : Z_DEFAULT_COMPRESSION, Z_DEFAULT_STRATEGY); });
      stream.next_in = const_cast<Bytef*>(static_cast<const Bytef*>(piece.data)) + done;
      stream.avail_in = static_cast<uInt>(n);
      give([&] { deflate(&stream, Z_NO_FLUSH); });
      done += n;
      content += n;
    }
  }
  stream.avail_in = 0;
  give([&] { deflate(&stream, Z_FINISH); });
  return out;
}

}  // namespace

ZipWriter::ZipWriter(std::string op, const std::string& path, size_t alignment)
    : op_(op), file_(std::move(op), path), alignment_(std::max<size_t>(alignment, 1)) {}

void ZipWriter::write(std::string_view bytes) {
  file_.write(bytes);
  offset_ += bytes.size();
}

void ZipWriter::write_header(const Entry& entry) {
  const bool wide = is_wide(entry.size) || is_wide(entry.compressed);
  std::string extra;
  if (wide) {
    zip::append(extra, zip::kExtraZip64, 2);
    zip::append(extra, 16, 2);
    zip::append(extra, entry.size, 8);
    zip::append(extra, entry.compressed, 8);
  }
  const uint64_t data = offset_ + zip::kLocalHeaderBytes + entry.name.size() + extra.size();
  if (entry.method == zip::kStored && data % alignment_ != 0) {
    // A field of an extra begins with four bytes of its own.
    const size_t padding = (alignment_ - (data + 4) % alignment_) % alignment_;
    zip::append(extra, zip::kExtraPadding, 2);
    zip::append(extra, padding, 2);
    extra.append(padding, 'Z');
  }
  std::string out;
  zip::append(out, zip::kLocalHeader, 4);
  zip::append(out, kVersion, 2);
  zip::append(out, 1 << 11, 2);  // names are UTF-8
  zip::append(out, entry.method, 2);
  zip::append(out, kDate, 4);
  zip::append(out, entry.crc, 4);
  zip::append(out, wide ? zip::kMax32 : entry.compressed, 4);
  zip::append(out, wide ? zip::kMax32 : entry.size, 4);
  zip::append(out, entry.name.size(), 2);
  zip::append(out, extra.size(), 2);
  write(out + entry.name + extra);
}

void ZipWriter::add(const std::string& name, const std::vector<Piece>& pieces, ZipMethod method) {
  if (name.empty() || name.size() > zip::kMax16 || zip::leads_out(name)) {
    throw_error<ValueError>(op_, ": no entry can have this name; got '", printable(name),
                            "'; expected a relative path of 1 to 65535 bytes without '..'");
  }
  if (!names_.insert(name).second) {
    throw_error<ValueError>(op_, ": a name appears twice; got '", printable(name),
                            "'; expected distinct names");
  }
  Entry entry;
  entry.name = name;
  entry.header = offset_;
  for (const Piece& piece : pieces) {
    entry.crc = crc32_joined(entry.crc, crc32_of(piece.data, piece.bytes), piece.bytes);
    entry.size += piece.bytes;
  }
  if (method == ZipMethod::deflate) {
    const std::string packed = deflated(op_.c_str(), pieces, content_, offset_);
    entry.method = zip::kDeflate;
    entry.compressed = packed.size();
    write_header(entry);
    write(packed);
  } else {
    entry.compressed = entry.size;
    write_header(entry);
    for (const Piece& piece : pieces) {
      file_.write(piece.data, piece.bytes);
      offset_ += piece.bytes;
    }
  }
  content_ += entry.size;
  entries_.push_back(std::move(entry));
}

void ZipWriter::finish() {
  const uint64_t begin = offset_;
  std::string out;
  for (const Entry& entry : entries_) {
    std::string extra;
    for (const uint64_t value : {entry.size, entry.compressed, entry.header}) {
      if (is_wide(value)) zip::append(extra, value, 8);
    }
    if (!extra.empty()) {
      std::string head;
      zip::append(head, zip::kExtraZip64, 2);
      zip::append(head, extra.size(), 2);
      extra = head + extra;
    }
    zip::append(out, zip::kDirectoryEntry, 4);
    zip::append(out, kVersion, 2);
    zip::append(out, kVersion, 2);
    zip::append(out, 1 << 11, 2);
    zip::append(out, entry.method, 2);
    zip::append(out, kDate, 4);
    zip::append(out, entry.crc, 4);
    zip::append(out, narrow(entry.compressed), 4);
    zip::append(out, narrow(entry.size), 4);
    zip::append(out, entry.name.size(), 2);
    zip::append(out, extra.size(), 2);
    out.append(2 + 2 + 2 + 4, '\0');  // comment, disk, attributes
    zip::append(out, narrow(entry.header), 4);
    out += entry.name + extra;
  }
  const uint64_t end = begin + out.size();
  const bool wide = is_wide(begin) || is_wide(end - begin) || entries_.size() >= zip::kMax16;
  if (wide) {
    zip::append(out, zip::kEnd64, 4);
    zip::append(out, zip::kEnd64Bytes - 12, 8);
    zip::append(out, kVersion, 2);
    zip::append(out, kVersion, 2);
    zip::append(out, 0, 8);
    zip::append(out, entries_.size(), 8);
    zip::append(out, entries_.size(), 8);
    zip::append(out, end - begin, 8);
    zip::append(out, begin, 8);
    zip::append(out, zip::kLocator64, 4);
    zip::append(out, 0, 4);
    zip::append(out, end, 8);
    zip::append(out, 1, 4);
  }
  const uint64_t count = std::min<uint64_t>(entries_.size(), zip::kMax16);
  zip::append(out, zip::kEnd, 4);
  zip::append(out, 0, 4);
  zip::append(out, count, 2);
  zip::append(out, count, 2);
  zip::append(out, narrow(end - begin), 4);
  zip::append(out, narrow(begin), 4);
  zip::append(out, 0, 2);
  write(out);
  file_.commit();
}

}  // namespace kiln::io
