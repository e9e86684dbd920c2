#include "tests/fuzz/file_mutator.h"

#include <algorithm>
#include <limits>

#include <zlib.h>

#include "kiln/io/zip_format.h"
#include "tests/support/gzip.h"
#include "tests/support/zip_bytes.h"

namespace kiln::fuzz {

namespace {

// A mutant may grow to this, so that a round takes milliseconds.
constexpr size_t kLargest = size_t{8} << 20;

// All that DEFLATE gives of `bytes`; window as inflateInit2 takes it. What is damaged gives a part.
std::string inflated(const std::string& bytes, int window) {
  z_stream stream{};
  if (inflateInit2(&stream, window) != Z_OK) return "";
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  std::string out;
  int rc = Z_OK;
  while (rc == Z_OK && out.size() < kLargest) {
    char buffer[16384];
    stream.next_out = reinterpret_cast<Bytef*>(buffer);
    stream.avail_out = sizeof buffer;
    rc = inflate(&stream, Z_NO_FLUSH);
    out.append(buffer, sizeof buffer - stream.avail_out);
  }
  inflateEnd(&stream);
  return out;
}

// The entries of a zip file, as its local headers give them.
std::vector<test::ZipPart> zip_parts(std::string_view bytes) {
  std::vector<test::ZipPart> out;
  while (bytes.size() >= io::zip::kLocalHeaderBytes &&
         io::zip::number32(bytes, 0) == io::zip::kLocalHeader) {
    const size_t size = io::zip::number32(bytes, 18);
    const size_t name = io::zip::number16(bytes, 26);
    const size_t begin = io::zip::kLocalHeaderBytes + name + io::zip::number16(bytes, 28);
    if (begin > bytes.size() || size > bytes.size() - begin) break;
    test::ZipPart part;
    part.name = bytes.substr(io::zip::kLocalHeaderBytes, name);
    part.content = bytes.substr(begin, size);
    part.deflate = io::zip::number16(bytes, 8) == io::zip::kDeflate;
    if (part.deflate) part.content = inflated(part.content, -15);
    out.push_back(std::move(part));
    bytes.remove_prefix(begin + size);
  }
  return out;
}

}  // namespace

// Numbers where limits are, in place of some bytes.
void FileMutator::edit_number(std::string& bytes) {
  static constexpr uint64_t kNumbers[] = {0,
                                          1,
                                          2,
                                          0x7f,
                                          0x80,
                                          0xff,
                                          0x7fff,
                                          0xffff,
                                          0x10000,
                                          0x7fffffff,
                                          0x80000000,
                                          0xffffffff,
                                          0x100000000,
                                          0x7fffffffffffffff,
                                          0x8000000000000000,
                                          std::numeric_limits<uint64_t>::max()};
  static constexpr size_t kWidths[] = {1, 2, 4, 8};
  const size_t width = kWidths[below(4)];
  if (bytes.size() < width) return;
  const uint64_t number =
      chance(70) ? kNumbers[below(std::size(kNumbers))] : bytes.size() + below(5) - 2;
  std::string text = test::little_endian(number, width);
  if (chance(30)) std::reverse(text.begin(), text.end());
  bytes.replace(below(bytes.size() - width + 1), width, text);
}

// A decimal number of a text.
void FileMutator::edit_header(std::string& bytes) {
  const size_t from = below(bytes.size());
  const size_t at = bytes.find_first_of("0123456789", from);
  if (at == std::string::npos || at > from + 200) return;
  static constexpr const char* kNumbers[] = {"0",           "1",    "-1",    "9",
                                             "99999999999", "1e99", "1.5",   "null",
                                             "[]",          "{}",   "\"x\"", "9223372036854775808"};
  bytes.replace(at, 1, kNumbers[below(std::size(kNumbers))]);
}

void FileMutator::repeat(std::string& bytes) {
  if (bytes.empty()) return;
  const size_t at = below(bytes.size());
  const std::string part = bytes.substr(at, 1 + below(chance(50) ? 4 : 40));
  const size_t times = size_t{1} << below(21);
  std::string many;
  while (many.size() < part.size() * times && many.size() < kLargest / 2) many += part;
  bytes.insert(at, many);
}

std::string FileMutator::edited(std::string bytes, const std::string& other) {
  // Opcodes of pickles, and what begins values in the other formats.
  static constexpr char kText[] =
      "\0\1\2\x80\x90\xc0\xdd\xff.()]}2NKRbetuqrhj0\x85\x8f\x91\x93\x94{}[],:\"0\\";
  static constexpr std::string_view kBytes(kText, sizeof(kText) - 1);
  for (size_t edits = 1 + below(chance(20) ? 12 : 3); edits > 0 && !bytes.empty(); --edits) {
    const size_t at = below(bytes.size());
    switch (below(12)) {
      case 0:
      case 1:
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(8)));
        break;
      case 2:
        bytes[at] = kBytes[below(kBytes.size())];
        break;
      case 3:
      case 4:
        bytes.insert(at, 1 + below(4), kBytes[below(kBytes.size())]);
        break;
      case 5:
        bytes.erase(at, 1 + below(chance(80) ? 4 : 400));
        break;
      case 6:
        bytes.insert(at, bytes.substr(below(bytes.size()), below(100)));
        break;
      case 7:
        bytes.insert(at, other.substr(below(other.size() + 1), below(200)));
        break;
      case 8:
        edit_number(bytes);
        break;
      case 9:
        edit_header(bytes);
        break;
      case 10:
        if (chance(40)) repeat(bytes);
        break;
      default:
        if (chance(30)) bytes.resize(at + 1);
    }
  }
  if (bytes.size() > kLargest) bytes.resize(kLargest);
  return bytes;
}

std::string FileMutator::in_zip(const std::string& bytes, const std::string& other) {
  std::vector<test::ZipPart> parts = zip_parts(bytes);
  if (parts.empty()) return edited(bytes, other);
  test::ZipPart& part = parts[below(parts.size())];
  part.content = edited(part.content, other);
  if (chance(60)) part.deflate = true;
  if (chance(5)) part.name = edited(part.name, other);
  if (chance(5)) part.size = static_cast<int64_t>(below(size_t{1} << 40));
  if (chance(5)) parts.push_back(parts[below(parts.size())]);
  return test::zip_of(parts);
}

std::string FileMutator::in_gzip(const std::string& bytes, const std::string& other) {
  return test::gzipped(edited(inflated(bytes, 15 + 16), other));
}

// Changes a chunk and gives it the checksum that it then has.
std::string FileMutator::in_png(const std::string& bytes, const std::string& other) {
  std::string out = bytes.substr(0, 8);
  for (size_t at = 8; at + 12 <= bytes.size();) {
    size_t size = 0;
    for (size_t i = 0; i < 4; ++i) size = size << 8 | static_cast<uint8_t>(bytes[at + i]);
    if (size > bytes.size() - at - 12) break;
    const std::string type = bytes.substr(at + 4, 4);
    std::string content = bytes.substr(at + 8, size);
    if (chance(40)) {
      if (type == "IDAT" && chance(50)) {
        const std::string pixels = edited(inflated(content, 15), other);
        uLongf room = compressBound(static_cast<uLong>(pixels.size()));
        content.resize(room);
        compress(reinterpret_cast<Bytef*>(content.data()), &room,
                 reinterpret_cast<const Bytef*>(pixels.data()), static_cast<uLong>(pixels.size()));
        content.resize(room);
      } else {
        content = edited(content, other);
      }
    }
    const std::string body = type + content;
    const auto crc = static_cast<uint64_t>(
        ::crc32_z(0, reinterpret_cast<const Bytef*>(body.data()), body.size()));
    std::string length = test::little_endian(content.size(), 4);
    std::string checksum = test::little_endian(crc, 4);
    std::reverse(length.begin(), length.end());
    std::reverse(checksum.begin(), checksum.end());
    out += length + body + checksum;
    at += 12 + size;
  }
  return out;
}

std::string FileMutator::mutated(const std::string& bytes, const std::string& other) {
  const bool inside = chance(75);
  if (inside && bytes.starts_with("PK")) return in_zip(bytes, other);
  if (inside && bytes.starts_with("\x1f\x8b")) return in_gzip(bytes, other);
  if (inside && bytes.starts_with("\x89PNG")) return in_png(bytes, other);
  std::string out = edited(bytes, other);
  // The length of a safetensors header, so that the rest is read.
  if (inside && out.size() > 9 && out[8] == '{') {
    const size_t end = out.rfind("}}");
    if (end != std::string::npos && end > 8) out.replace(0, 8, test::little_endian(end + 2 - 8, 8));
  }
  // Readers of configurations and records take compressed files too.
  if (inside && !out.empty() && (out[0] == '{' || out[0] == '[') && chance(50)) {
    out = test::gzipped(out);
  }
  return out;
}

}  // namespace kiln::fuzz
