// Zip archives that lie.
#include <doctest/doctest.h>

#include "kiln/io/zip_reader.h"
#include "kiln/io/zip_writer.h"
#include "tests/support/hostile.h"
#include "tests/support/zip_bytes.h"

using namespace kiln;
using namespace kiln::io;
using kiln::test::check_refused;
using kiln::test::fuzz;
using kiln::test::TempDir;
using kiln::test::zip_of;
using kiln::test::ZipPart;

namespace {

// Opens an archive and reads all of it.
void read_all(const std::string& path) {
  const ZipReader zip(InputFile("test", path));
  for (const ZipEntry& entry : zip.entries()) {
    // 1032 to 1 is what DEFLATE can do.
    CHECK(entry.size <= (uint64_t{1} << 31));
    zip.read(entry, 1 << 20);
  }
}

std::string words(const std::string& text, int times) {
  std::string out;
  for (int i = 0; i < times; ++i) out += text;
  return out;
}

}  // namespace

TEST_CASE("zip: honest archives of every kind") {
  TempDir dir;
  const std::string long_text = words("kiln ", 100'000);
  const std::string path = test::write_bytes(
      dir.path("a.zip"),
      zip_of({{"a", "hello"}, {"b/c", long_text, true}, {"empty", ""}, {"none", "", true}}, -1, -1,
             -1, "a comment"));
  const ZipReader zip(InputFile("test", path));
  REQUIRE(zip.entries().size() == 4);
  CHECK(zip.read(*zip.find("a"), 100) == "hello");
  CHECK(zip.read(*zip.find("b/c"), 1 << 20) == long_text);
  CHECK(zip.read(*zip.find("empty"), 0).empty());
  CHECK(zip.read(*zip.find("none"), 0).empty());
  CHECK(zip.find("d") == nullptr);
  CHECK_THROWS_AS(zip.read(*zip.find("b/c"), 100), IoError);
  std::string into(long_text.size(), '\0');
  zip.read_into(*zip.find("b/c"), into.data());
  CHECK(into == long_text);
  CHECK(
      ZipReader(InputFile("test", test::write_bytes(dir.path("e"), zip_of({})))).entries().empty());
}

TEST_CASE("zip: the writer's archives come back, aligned, the same every time") {
  TempDir dir;
  const auto write = [&](const char* name) {
    ZipWriter zip("test", dir.path(name), 64);
    zip.add("one", "1");
    const std::string a(100'000, 'a');
    zip.add("many/pieces", {{a.data(), a.size()}, {"b", 1}, {a.data(), 10}});
    zip.add("packed", a, ZipMethod::deflate);
    zip.add("nothing", "");
    CHECK_THROWS_AS(zip.add("one", "again"), ValueError);
    CHECK_THROWS_AS(zip.add("../up", ""), ValueError);
    CHECK_THROWS_AS(zip.add("", ""), ValueError);
    zip.finish();
  };
  write("a.zip");
  write("b.zip");
  CHECK(test::read_bytes(dir.path("a.zip")) == test::read_bytes(dir.path("b.zip")));
  const ZipReader zip(InputFile("test", dir.path("a.zip")));
  REQUIRE(zip.entries().size() == 4);
  for (const ZipEntry& entry : zip.entries()) {
    if (entry.method == 0) CHECK(entry.offset % 64 == 0);
  }
  CHECK(zip.read(*zip.find("many/pieces"), 1 << 20) ==
        std::string(100'000, 'a') + "b" + std::string(10, 'a'));
  CHECK(zip.find("packed")->compressed < 1000);
  CHECK(zip.read(*zip.find("packed"), 1 << 20) == std::string(100'000, 'a'));
}

TEST_CASE("zip: more entries than 16 bits count") {
  TempDir dir;
  ZipWriter writer("test", dir.path("a.zip"), 1);
  for (int i = 0; i < 70'000; ++i) writer.add(std::to_string(i), std::to_string(i));
  writer.finish();
  const ZipReader zip(InputFile("test", dir.path("a.zip")));
  CHECK(zip.entries().size() == 70'000);
  CHECK(zip.read(*zip.find("69999"), 10) == "69999");
}

TEST_CASE("zip: every lie is an IoError that says which") {
  TempDir dir;
  const auto refused = [&](const char* what, const std::string& bytes, const char* message) {
    check_refused(dir, what, bytes, message, read_all);
  };
  const ZipPart a{"a", "hello"};
  const ZipPart b{"b", "world"};
  refused("empty file", "", "its end is missing");
  refused("no zip", words("x", 100), "its end is missing");
  refused("a comment that is too long", zip_of({a}) + "x", "its end is missing");
  refused("more entries than there are", zip_of({a}, 2), "cannot hold so many");
  refused("absurdly many entries", zip_of({a}, 65534), "cannot hold so many");
  refused("fewer entries", zip_of({a, b}, 1), "more than its entries");
  refused("directory elsewhere", zip_of({a}, -1, 3), "does not reach to its end");
  refused("directory beyond the end", zip_of({a}, -1, 1'000'000), "does not reach to its end");
  refused("directory of another size", zip_of({a}, -1, -1, 10), "does not reach to its end");
  refused("the same name twice", zip_of({a, a}), "a name occurs twice");
  refused("two entries in one place", zip_of({a, {.name = "a2", .content = "x", .header = 0}}),
          "another one in the directory");
  refused("no header where it should be", zip_of({a, {.name = "b", .content = "x", .header = 3}}),
          "another one in the directory");
  refused("a header in the directory",
          zip_of({a, {.name = "b", .content = "x", .header = 1'000'000}}), "outside the file");
  refused("another name in place", zip_of({{.name = "a", .content = "x", .local_name = "b"}}),
          "another one in the directory");
  refused("another size in place", zip_of({{.name = "a", .content = "x", .local_size = 9}}),
          "another size in the directory");
  refused("absolute name", zip_of({{"/etc/passwd", "x"}}), "leads out");
  refused("name upwards", zip_of({{"a/../../b", "x"}}), "leads out");
  refused("name upwards at the end", zip_of({{"a/..", "x"}}), "leads out");
  refused("backslashes", zip_of({{"..\\b", "x"}}), "leads out");
  refused("a zero byte in a name", zip_of({{std::string("a\0b", 3), "x"}}), "leads out");
  refused("no name", zip_of({{"", "x"}}), "leads out");
  refused("encrypted", zip_of({{.name = "a", .content = "x", .flags = 1}}), "encrypted");
  refused("another compression", zip_of({{.name = "a", .content = "xxxx", .method = 12}}),
          "compressed in another way");
  refused("wrong checksum", zip_of({{.name = "a", .content = "x", .crc = 5}}), "is damaged");
  refused("no DEFLATE", zip_of({{.name = "a", .content = "hello hello", .method = 8}}),
          "is damaged");
  refused("longer than it says",
          zip_of({{.name = "a", .content = words("ab", 100), .deflate = true, .size = 100}}),
          "does not end where it says");
  refused("shorter than it says",
          zip_of({{.name = "a", .content = words("ab", 100), .deflate = true, .size = 300}}),
          "is damaged");
  refused("more compressed bytes than there are",
          zip_of({{.name = "a", .content = "x", .size = 2000, .compressed = 2000}}),
          "outside the file");
  refused("stored with two sizes", zip_of({{.name = "a", .content = "xx", .size = 1}}),
          "cannot have");
  refused(
      "a bomb beyond what DEFLATE can do",
      zip_of({{.name = "a", .content = words("a", 5000), .deflate = true, .size = 2'000'000'000}}),
      "cannot have");
}

TEST_CASE("zip: entries that overlap are refused, as the bombs that share their data are") {
  TempDir dir;
  // A whole local header and its data inside the data of another entry.
  const std::string inner = test::zip_of({{"b", words("b", 50)}});
  const size_t local = 30 + 1 + 50;
  const ZipPart outer{"a", inner.substr(0, local)};
  const ZipPart shared{.name = "b", .content = words("b", 50), .header = 31};
  std::string bytes = zip_of({outer, shared});
  check_refused(dir, "quoted overlap", bytes, "overlaps", read_all);
}

TEST_CASE("zip: contradictory zip64 records") {
  TempDir dir;
  const std::string plain = zip_of({{"a", "hello"}});
  const size_t end = plain.size() - 22;
  const uint64_t directory = 30 + 1 + 5;
  const auto with64 = [&](uint64_t entries, uint64_t bytes, uint64_t at, uint64_t record) {
    return plain.substr(0, end) + "PK\6\6" + test::little_endian(44, 8) + std::string(12, '\0') +
           test::little_endian(entries, 8) + test::little_endian(entries, 8) +
           test::little_endian(bytes, 8) + test::little_endian(at, 8) + "PK\6\7" +
           std::string(4, '\0') + test::little_endian(record, 8) + test::little_endian(1, 4) +
           plain.substr(end);
  };
  const uint64_t bytes = end - directory;
  read_all(test::write_bytes(dir.path("good"), with64(1, bytes, directory, end)));
  const auto refused = [&](const std::string& file, const char* message) {
    check_refused(dir, message, file, message, read_all);
  };
  refused(with64(2, bytes, directory, end), "contradict each other");
  refused(with64(1, bytes + 1, directory, end), "contradict each other");
  refused(with64(UINT64_MAX, bytes, directory, end), "contradict each other");
  refused(with64(1, bytes, directory, 5), "contradict each other");
  refused(with64(1, bytes, directory, UINT64_MAX), "lies outside");
}

TEST_CASE("zip: an archive cut anywhere is refused") {
  TempDir dir;
  const std::string good = zip_of({{"a", "hello"}, {"b", words("b", 300), true}});
  for (size_t n = 0; n < good.size(); ++n) {
    const std::string path = test::rewrite(dir.path("f"), good.substr(0, n));
    CHECK_THROWS_AS(read_all(path), IoError);
  }
}

TEST_CASE("zip: mutations give a result or an IoError, nothing else") {
  TempDir dir;
  const std::string good =
      zip_of({{"a", "hello"}, {"b/c", words("world", 60), true}, {"d", ""}}, -1, -1, -1, "c");
  const auto count = fuzz(dir, good, 4000, 1, read_all);
  CHECK(count.results > 50);
  CHECK(count.errors > 1000);
}
