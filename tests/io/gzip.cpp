#include "kiln/io/gzip.h"

#include <random>

#include <doctest/doctest.h>

#include "kiln/core/error.h"
#include "tests/support/gzip.h"
#include "tests/support/temp_dir.h"
#include "tests/support/throws.h"

using namespace kiln;
using namespace kiln::io;
using kiln::test::gzipped;
using kiln::test::message_of;
using kiln::test::TempDir;
using kiln::test::write_bytes;

namespace {

std::string read_all(const std::string& path, uint64_t max_bytes = 1 << 24) {
  const auto bytes = read_file("test", path, max_bytes);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string noise(size_t n) {
  std::mt19937 random(7);
  std::string out;
  for (size_t i = 0; i < n; ++i) out += static_cast<char>(random());
  return out;
}

}  // namespace

TEST_CASE("gzip: plain and compressed files read alike") {
  TempDir dir;
  for (const std::string& content : {std::string(), std::string("x"), std::string("hello hello"),
                                     noise(300'000), std::string(1'000'000, 'a')}) {
    CHECK(read_all(write_bytes(dir.path("plain"), content)) == content);
    CHECK(read_all(write_bytes(dir.path("zipped"), gzipped(content))) == content);
  }
  // `printf hello | gzip -n`, as bytes
  const std::string hello(
      "\x1f\x8b\x08\0\0\0\0\0\0\x03\xcb\x48\xcd\xc9\xc9\x07\0\x86\xa6\x10\x36"
      "\x05\0\0\0",
      25);
  CHECK(read_all(write_bytes(dir.path("known"), hello)) == "hello");
}

TEST_CASE("gzip: members are joined, zero padding is ignored, other bytes are not") {
  TempDir dir;
  const std::string a = gzipped("one ");
  CHECK(read_all(write_bytes(dir.path("f"), a + gzipped("") + gzipped("two"))) == "one two");
  CHECK(read_all(write_bytes(dir.path("f"), a + std::string(600, '\0'))) == "one ");
  CHECK_THROWS_AS(read_all(write_bytes(dir.path("f"), a + "garbage")), IoError);
  CHECK_THROWS_AS(read_all(write_bytes(dir.path("f"), a + std::string(9, '\0') + a)), IoError);
}

TEST_CASE("gzip: every truncation is an IoError") {
  TempDir dir;
  const std::string whole = gzipped(noise(200) + std::string(200, 'a'));
  for (size_t n = 2; n < whole.size(); ++n) {
    CAPTURE(n);
    const std::string path = write_bytes(dir.path("f"), whole.substr(0, n));
    CHECK(message_of<IoError>([&] { read_all(path); }).find("truncated") != std::string::npos);
  }
}

TEST_CASE("gzip: every flipped bit is noticed or does not matter") {
  TempDir dir;
  const std::string content = noise(60) + std::string(100, 'a');
  const std::string whole = gzipped(content);
  for (size_t bit = 16; bit < whole.size() * 8; ++bit) {
    std::string bytes = whole;
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << (bit % 8)));
    CAPTURE(bit);
    write_bytes(dir.path("f"), bytes);
    try {
      CHECK(read_all(dir.path("f")) == content);  // header fields such as the time stamp
    } catch (const IoError&) {
    }
  }
}

TEST_CASE("gzip: a wrong checksum or length is an IoError") {
  TempDir dir;
  for (const size_t from_end : {1u, 5u}) {
    std::string bytes = gzipped("some content");
    bytes[bytes.size() - from_end] ^= 1;
    const std::string path = write_bytes(dir.path("f"), bytes);
    CHECK(message_of<IoError>([&] { read_all(path); }).find("damaged") != std::string::npos);
  }
}

TEST_CASE("gzip: a bomb stops at the limit") {
  TempDir dir;
  const std::string bomb = write_bytes(dir.path("f"), gzipped(std::string(4'000'000, '\0')));
  CHECK(message_of<IoError>([&] { read_all(bomb, 1'000'000); }).find("too large") !=
        std::string::npos);
  CHECK(read_all(bomb, 4'000'000).size() == 4'000'000);
  CHECK_THROWS_AS(read_all(bomb, 3'999'999), IoError);
  write_bytes(dir.path("f"), gzipped(std::string(50'000'000, '\0')));
  CHECK(message_of<IoError>([&] { read_all(bomb); }).find("64 times") != std::string::npos);
  const std::string plain = write_bytes(dir.path("g"), "12345");
  CHECK(read_all(plain, 5) == "12345");
  CHECK_THROWS_AS(read_all(plain, 4), IoError);
  CHECK_THROWS_AS(read_all(plain, 0), IoError);
}

TEST_CASE("gzip: the bound on the content's size holds") {
  TempDir dir;
  const std::string content(10'000'000, '\0');  // as compressible as can be
  write_bytes(dir.path("f"), gzipped(content));
  CHECK(GzipFile("test", dir.path("f")).size_bound() >= content.size());
  write_bytes(dir.path("g"), "12345");
  CHECK(GzipFile("test", dir.path("g")).size_bound() == 5);
}

TEST_CASE("gzip: missing files and folders") {
  TempDir dir;
  CHECK_THROWS_AS(read_all(dir.path("none")), IoError);
  CHECK_THROWS_AS(read_all(dir.path()), IoError);
}
