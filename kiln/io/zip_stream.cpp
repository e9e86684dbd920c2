// The content of zip entries.
#include <algorithm>

#include "kiln/core/error.h"
#include "kiln/core/parallel.h"
#include "kiln/io/crc32.h"
#include "kiln/io/zip_format.h"
#include "kiln/io/zip_reader.h"
#include "kiln/io/zlib_or_none.h"

namespace kiln::io {

namespace {
constexpr size_t kZipChunk = 64 * 1024;
}  // namespace

struct ZipStream::Inflater {
  Inflater(const InputFile& f, const ZipEntry& entry)
      : file(f), offset(entry.offset), left(entry.compressed) {
    detail::require_zlib(file.op().c_str());
    input.resize(static_cast<size_t>(std::min<uint64_t>(kZipChunk, left)));
    // A negative number asks for DEFLATE without a wrapper.
    if (inflateInit2(&stream, -15) != Z_OK) {
      throw_error<IoError>(file.op(), ": zlib cannot start; got no memory");
    }
  }
  ~Inflater() { inflateEnd(&stream); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  // Inflates into `room` bytes and returns how many came; fewer only where the stream ends
  // (`ended`), where the data ends without it, or where it is bad (`bad`).
  size_t inflate_some(unsigned char* out, size_t room) {
    size_t done = 0;
    while (done < room && !ended && !bad) {
      if (stream.avail_in == 0 && left > 0) refill();
      const size_t part = std::min<size_t>(room - done, size_t{1} << 30);
      stream.next_out = out + done;
      stream.avail_out = static_cast<uInt>(part);
      const int rc = inflate(&stream, Z_NO_FLUSH);
      const size_t got = part - stream.avail_out;
      done += got;
      ended = rc == Z_STREAM_END;
      bad = rc != Z_OK && rc != Z_STREAM_END && rc != Z_BUF_ERROR;
      if (got == 0 && stream.avail_in == 0 && left == 0) break;
    }
    return done;
  }

  void refill() {
    const auto n = static_cast<size_t>(std::min<uint64_t>(left, input.size()));
    file.read_at(offset, input.data(), n);
    offset += n;
    left -= n;
    stream.next_in = input.data();
    stream.avail_in = static_cast<uInt>(n);
  }

  const InputFile& file;
  uint64_t offset;  // of the next byte to take from the file
  uint64_t left;    // compressed bytes not taken yet
  z_stream stream{};
  std::vector<unsigned char> input;
  bool ended = false;
  bool bad = false;
};

ZipStream::ZipStream(const ZipReader& zip, const ZipEntry& entry)
    : zip_(zip), entry_(entry), left_(entry.size) {
  if (entry.method == zip::kDeflate) {
    inflater_ = std::make_unique<Inflater>(zip.file(), entry);
  } else if (entry.method != zip::kStored) {
    zip.malformed(concat("entry '", printable(entry.name), "' is compressed in another way"),
                  concat("method ", entry.method), "method 0 (stored) or 8 (deflate)");
  }
  if (left_ == 0) finish();
}

ZipStream::~ZipStream() = default;

void ZipStream::read(void* out, size_t bytes) {
  if (bytes > left_) {
    zip_.malformed(concat("entry '", printable(entry_.name), "' is too short"),
                   concat(entry_.size, " bytes"), concat(bytes - left_, " bytes more"));
  }
  if (bytes == 0) return;
  if (inflater_ == nullptr) {
    zip_.file().read_at(entry_.offset + (entry_.size - left_), out, bytes);
  } else if (inflater_->inflate_some(static_cast<unsigned char*>(out), bytes) < bytes) {
    zip_.malformed(concat("entry '", printable(entry_.name), "' is damaged"),
                   inflater_->bad ? "a bad DEFLATE stream" : "the end of its data",
                   concat(entry_.size, " bytes"));
  }
  left_ -= bytes;
  crc_ = crc32_joined(crc_, crc32_of(out, bytes), bytes);
  if (left_ == 0) finish();
}

void ZipStream::finish() {
  if (inflater_ != nullptr && !inflater_->ended) {
    unsigned char extra = 0;
    if (inflater_->inflate_some(&extra, 1) > 0 || !inflater_->ended) {
      zip_.malformed(concat("entry '", printable(entry_.name), "' does not end where it says"),
                     "more data, or no end", concat(entry_.size, " bytes"));
    }
  }
  zip_.check_crc(entry_, crc_);
}

std::string ZipReader::read(const ZipEntry& entry, uint64_t max_bytes) const {
  if (entry.size > max_bytes) {
    malformed(concat("entry '", printable(entry.name), "' is too large"),
              concat(entry.size, " bytes"), concat("at most ", max_bytes));
  }
  file_.budget().charge(entry.size, "an entry");
  ZipStream stream(*this, entry);
  std::string out(static_cast<size_t>(entry.size), '\0');
  stream.read(out.data(), out.size());
  return out;
}

void ZipReader::read_into(const ZipEntry& entry, void* out) const {
  if (entry.method != zip::kStored || entry.size <= static_cast<uint64_t>(kCrcPiece)) {
    ZipStream stream(*this, entry);
    stream.read(out, static_cast<size_t>(entry.size));
    return;
  }
  // Each piece is checksummed while it is in the cache.
  const auto bytes = static_cast<int64_t>(entry.size);
  std::vector<uint32_t> crcs(static_cast<size_t>((bytes + kCrcPiece - 1) / kCrcPiece));
  parallel_for(bytes, kCrcPiece, [&](int64_t begin, int64_t end) {
    char* const to = static_cast<char*>(out) + begin;
    file_.read_at(entry.offset + static_cast<uint64_t>(begin), to,
                  static_cast<size_t>(end - begin));
    crcs[static_cast<size_t>(begin / kCrcPiece)] = crc32_of(to, static_cast<size_t>(end - begin));
  });
  uint32_t crc = 0;
  for (size_t i = 0; i < crcs.size(); ++i) {
    const int64_t begin = static_cast<int64_t>(i) * kCrcPiece;
    crc = crc32_joined(crc, crcs[i], static_cast<size_t>(std::min(kCrcPiece, bytes - begin)));
  }
  check_crc(entry, crc);
}

}  // namespace kiln::io
