#include "kiln/io/gzip.h"

#include <algorithm>
#include <cstring>

#include "kiln/core/error.h"
#include "kiln/io/input_file.h"
#include "kiln/io/zlib_or_none.h"

namespace kiln::io {

namespace {
constexpr size_t kInputChunk = 64 * 1024;
constexpr uint64_t kBestRatio = 1032;  // 258 bytes from 2 bits
}  // namespace

struct GzipFile::State {
  State(std::string op, std::string path) : file(std::move(op), std::move(path)) {}
  ~State() {
    if (compressed) inflateEnd(&stream);
  }

  [[noreturn]] void fail(const char* what, const std::string& got) const {
    throw_error<IoError>(file.op(), ": ", what, " in '", file.path(), "'; got ", got,
                         "; expected a complete gzip file");
  }

  // Makes some compressed bytes available; false at the end of the file.
  bool refill() {
    if (stream.avail_in > 0) return true;
    const size_t n = static_cast<size_t>(std::min<uint64_t>(kInputChunk, file.size() - offset));
    if (n == 0) return false;
    file.read_at(offset, input.data(), n);
    offset += n;
    stream.next_in = input.data();
    stream.avail_in = static_cast<uInt>(n);
    return true;
  }

  // At the end of a member: whether another one follows. Padding with zeros, as tape tools leave
  // it, may follow too.
  bool next_member() {
    bool padding = false;
    while (refill()) {
      if (*stream.next_in != 0) {
        if (padding) fail("there is more data after the end", "bytes after the zero padding");
        if (inflateReset(&stream) != Z_OK) fail("zlib cannot start", "an internal error");
        return true;
      }
      padding = true;
      ++stream.next_in;
      --stream.avail_in;
    }
    return false;
  }

  size_t inflate_some(void* out, size_t bytes) {
    size_t done = 0;
    while (done < bytes && !ended) {
      if (!refill()) fail("the compressed data is truncated", concat(file.size(), " bytes"));
      const size_t room = std::min<size_t>(bytes - done, size_t{1} << 30);
      stream.next_out = static_cast<Bytef*>(out) + done;
      stream.avail_out = static_cast<uInt>(room);
      const int rc = inflate(&stream, Z_NO_FLUSH);
      done += room - stream.avail_out;
      if (rc == Z_STREAM_END) {
        ended = !next_member();
      } else if (rc != Z_OK && rc != Z_BUF_ERROR) {
        fail("the compressed data is damaged", stream.msg != nullptr ? stream.msg : "a bad stream");
      }
    }
    return done;
  }

  InputFile file;
  std::vector<unsigned char> input;
  z_stream stream{};
  uint64_t offset = 0;  // of the next byte to take from the file
  bool compressed = false;
  bool ended = false;
};

GzipFile::GzipFile(std::string op, std::string path)
    : state_(std::make_unique<State>(std::move(op), std::move(path))) {
  unsigned char magic[2] = {};
  if (state_->file.size() < sizeof magic) return;
  state_->file.read_at(0, magic, sizeof magic);
  if (magic[0] != 0x1f || magic[1] != 0x8b) return;
  detail::require_zlib(state_->file.op().c_str());
  state_->input.resize(kInputChunk);
  // 16 asks for the gzip wrapper: zlib then checks header, length and CRC.
  if (inflateInit2(&state_->stream, 15 + 16) != Z_OK)
    state_->fail("zlib cannot start", "no memory");
  state_->compressed = true;
}

GzipFile::~GzipFile() = default;

bool GzipFile::is_compressed() const { return state_->compressed; }

uint64_t GzipFile::size_bound() const {
  const uint64_t size = state_->file.size();
  if (!state_->compressed) return size;
  return size > UINT64_MAX / kBestRatio ? UINT64_MAX : size * kBestRatio;
}

size_t GzipFile::read(void* out, size_t bytes) {
  State& s = *state_;
  if (s.compressed) return s.inflate_some(out, bytes);
  const auto n = static_cast<size_t>(std::min<uint64_t>(bytes, s.file.size() - s.offset));
  s.file.read_at(s.offset, out, n);
  s.offset += n;
  return n;
}

bool GzipFile::at_end() {
  char next;
  return read(&next, 1) == 0;
}

Budget& GzipFile::budget() const { return state_->file.budget(); }
const std::string& GzipFile::op() const { return state_->file.op(); }
const std::string& GzipFile::path() const { return state_->file.path(); }

std::vector<std::byte> read_all(GzipFile& file, uint64_t max_bytes) {
  std::vector<std::byte> content;
  const uint64_t bound = std::min(file.size_bound(), max_bytes);
  // A plain file at once; a compressed one grows with what has really arrived.
  const uint64_t first = file.is_compressed() ? std::min<uint64_t>(bound, kInputChunk) : bound;
  for (uint64_t room = first; room > 0;
       room = std::min<uint64_t>(bound - content.size(), content.size())) {
    const size_t size = content.size();
    file.budget().grow(content, static_cast<size_t>(room), "its content");
    content.resize(size + static_cast<size_t>(room));
    const size_t got = file.read(content.data() + size, static_cast<size_t>(room));
    content.resize(size + got);
    if (got < room) break;
  }
  if (!file.at_end()) {
    throw_error<IoError>(file.op(), ": '", file.path(), "' is too large; got more than ",
                         content.size(), " bytes; expected at most ", max_bytes);
  }
  return content;
}

std::vector<std::byte> read_file(const char* op, const std::string& path, uint64_t max_bytes) {
  GzipFile file(op, path);
  return read_all(file, max_bytes);
}

std::string compress_gzip(std::string_view content, int level, uint64_t at_least) {
  detail::require_zlib("compress_gzip");
  z_stream stream{};
  if (deflateInit2(&stream, level, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
    throw_error<ValueError>("compress_gzip: zlib cannot start; got level ", level,
                            "; expected 0 to 9");
  }
  std::string out;
  std::vector<unsigned char> buffer(kInputChunk);
  const auto give = [&](auto step) {
    do {
      stream.next_out = buffer.data();
      stream.avail_out = static_cast<uInt>(buffer.size());
      step();
      out.append(reinterpret_cast<char*>(buffer.data()), buffer.size() - stream.avail_out);
    } while (stream.avail_out == 0);
  };
  const double share =
      content.empty() ? 0.0 : static_cast<double>(at_least) / static_cast<double>(content.size());
  for (size_t taken = 0; taken < content.size();) {
    const size_t n = std::min(content.size() - taken, size_t{1} << 20);
    const bool too_short = static_cast<double>(out.size()) < share * static_cast<double>(taken);
    give([&] { deflateParams(&stream, too_short ? 0 : level, Z_DEFAULT_STRATEGY); });
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data() + taken));
    stream.avail_in = static_cast<uInt>(n);
    give([&] { deflate(&stream, Z_NO_FLUSH); });
    taken += n;
  }
  stream.avail_in = 0;
  give([&] { deflate(&stream, Z_FINISH); });
  deflateEnd(&stream);
  return out;
}

}  // namespace kiln::io
