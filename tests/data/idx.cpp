#include "kiln/data/idx.h"

#include <algorithm>
#include <cstdlib>

#include <doctest/doctest.h>

#include "kiln/core/allocator.h"
#include "tests/support/gzip.h"
#include "tests/support/temp_dir.h"
#include "tests/support/throws.h"

using namespace kiln;
using namespace kiln::data;
using kiln::test::gzipped;
using kiln::test::message_of;
using kiln::test::TempDir;
using kiln::test::write_bytes;

namespace {

std::string big_endian(uint32_t v) {
  return {static_cast<char>(v >> 24), static_cast<char>(v >> 16), static_cast<char>(v >> 8),
          static_cast<char>(v)};
}

std::string idx(int type, const std::vector<uint32_t>& dims, const std::string& content) {
  std::string bytes{'\0', '\0', static_cast<char>(type), static_cast<char>(dims.size())};
  for (uint32_t d : dims) bytes += big_endian(d);
  return bytes + content;
}

std::vector<double> values(const std::string& path) { return read_idx(path).to_doubles(); }

void write_mnist(const TempDir& dir, const std::string& images_name, const std::string& labels_name,
                 bool zipped) {
  const std::string images = idx(8, {2, 28, 28}, std::string(784, '\1') + std::string(784, '\2'));
  const std::string labels = idx(8, {2}, std::string("\7\0", 2));
  write_bytes(dir.path(images_name), zipped ? gzipped(images) : images);
  write_bytes(dir.path(labels_name), zipped ? gzipped(labels) : labels);
}

}  // namespace

TEST_CASE("idx: every type, big-endian, plain and gzipped") {
  TempDir dir;
  const auto both = [&](const std::string& bytes, DType dtype, const Shape& shape,
                        const std::vector<double>& expected) {
    for (const std::string& stored : {bytes, gzipped(bytes)}) {
      const TensorData data = read_idx(write_bytes(dir.path("f"), stored));
      CHECK(data.dtype() == dtype);
      CHECK(data.shape() == shape);
      CHECK(data.to_doubles() == expected);
    }
  };
  both(idx(0x08, {3}, std::string("\0\1\xff", 3)), u8, {3}, {0, 1, 255});
  both(idx(0x09, {3}, std::string("\0\1\xff", 3)), i8, {3}, {0, 1, -1});
  both(idx(0x0b, {1, 2}, std::string("\1\2\xff\xfe", 4)), i16, {1, 2}, {258, -2});
  both(idx(0x0c, {2, 1}, big_endian(66051) + big_endian(0xfffffffdu)), i32, {2, 1}, {66051, -3});
  both(idx(0x0d, {2}, big_endian(0x3fc00000u) + big_endian(0xc0000000u)), f32, {2}, {1.5, -2});
  both(idx(0x0e, {1}, big_endian(0xbfe00000u) + big_endian(0)), f64, {1}, {-0.5});
  both(idx(0x08, {2, 0, 3}, ""), u8, {2, 0, 3}, {});
  both(idx(0x08, std::vector<uint32_t>(12, 1), "\5"), u8, Shape::filled(12, 1), {5});
}

TEST_CASE("idx: malformed files are IoErrors and take no memory on their word") {
  TempDir dir;
  const std::string good = idx(8, {2, 3}, "abcdef");
  const std::vector<std::pair<std::string, std::string>> bad = {
      {"", "no IDX file"},
      {good.substr(0, 3), "no IDX file"},
      {"PK" + good.substr(2), "no IDX file"},
      {idx(0x07, {1}, "a"), "unknown element type"},
      {idx(0x0a, {1}, "a"), "unknown element type"},
      {idx(0x08, {}, "a"), "number of dims"},
      {idx(0x08, std::vector<uint32_t>(13, 1), "a"), "number of dims"},
      {std::string("\0\0\x08\xff", 4) + std::string(1020, '\1'), "number of dims"},
      {good.substr(0, 4), "incomplete"},
      {good.substr(0, 11), "incomplete"},
      {good.substr(0, good.size() - 1), "dims"},
      {good + "x", "more data"},
      {idx(0x0d, {2}, "1234567"), "dims"},
      {idx(0x08, {2, 0}, "x"), "more data"},
      {idx(0x08, {0xffffffffu}, "abc"), "exceed"},
      {idx(0x0e, {0x10000u, 0x10000u, 0x10000u}, "abc"), "exceed"},
      {idx(0x0e, std::vector<uint32_t>(12, 0xffffffffu), "abc"), "overflow"},
      {idx(0x0e, {0, 0xffffffffu, 0xffffffffu, 0xffffffffu}, ""), "overflow"},
      {idx(0x08, {1u << 31, 1u << 31, 4}, "abc"), "overflow"},
  };
  for (const auto& [bytes, message] : bad) {
    for (const std::string& stored : {bytes, gzipped(bytes)}) {
      const std::string path = write_bytes(dir.path("f"), stored);
      reset_memory_stats();
      const size_t before = memory_stats().peak_bytes_in_use;
      const std::string got = message_of<IoError>([&] { read_idx(path); });
      CAPTURE(got);
      CAPTURE(message);
      // In a gzipped file the size shows only when the data ends.
      CHECK(
          (got.find(message) != std::string::npos || got.find("too little") != std::string::npos));
      CHECK(got.find(path) != std::string::npos);
      CHECK(memory_stats().peak_bytes_in_use - before < (1 << 20));
    }
  }
}

TEST_CASE("idx: a damaged gzip file, and a limit on the size") {
  TempDir dir;
  const std::string good = gzipped(idx(8, {1000}, std::string(1000, 'x')));
  for (size_t n = 2; n < good.size(); ++n) {
    CHECK_THROWS_AS(values(write_bytes(dir.path("f"), good.substr(0, n))), IoError);
  }
  std::string wrong_checksum = good;
  wrong_checksum[good.size() - 6] ^= 1;
  CHECK_THROWS_AS(values(write_bytes(dir.path("f"), wrong_checksum)), IoError);
  // A bomb behind small dims is cut at once; one with honest dims meets the limit.
  const std::string zeros(20'000'000, '\0');
  CHECK_THROWS_AS(values(write_bytes(dir.path("f"), gzipped(idx(8, {10}, zeros)))), IoError);
  const std::string large = write_bytes(dir.path("f"), gzipped(idx(8, {20'000'000}, zeros)));
  CHECK_THROWS_AS(read_idx(large, 1'000'000), IoError);
  CHECK(message_of<IoError>([&] { read_idx(large); }).find("64 times") != std::string::npos);
  const std::string some =
      write_bytes(dir.path("g"), gzipped(idx(8, {4'000'000}, zeros.substr(0, 4'000'000))));
  CHECK(read_idx(some).numel() == 4'000'000);
  CHECK_THROWS_AS(read_idx(dir.path("none")), IoError);
}

TEST_CASE("load_mnist: each way the files are named") {
  for (const bool zipped : {false, true}) {
    const std::string end = zipped ? ".gz" : "";
    for (const std::string dot : {"-", "."}) {
      TempDir dir;
      write_mnist(dir, "train-images" + dot + "idx3-ubyte" + end,
                  "train-labels" + dot + "idx1-ubyte" + end, zipped);
      const ImageSet set = load_mnist(dir.path(), true);
      CHECK(set.images.shape() == Shape{2, 28, 28});
      CHECK(set.images.as<uint8_t>()[784] == 2);
      CHECK(set.labels.as<int64_t>()[0] == 7);
      const std::string message = message_of<IoError>([&] { load_mnist(dir.path(), false); });
      CHECK(message.find("t10k-images-idx3-ubyte") != std::string::npos);
    }
  }
}

TEST_CASE("load_mnist: what is missing or does not fit is named") {
  TempDir dir;
  CHECK_THROWS_AS(load_mnist(dir.path("none"), true), IoError);
  const std::string images = "train-images-idx3-ubyte";
  const std::string labels = "train-labels-idx1-ubyte";
  const auto message = [&] { return message_of<IoError>([&] { load_mnist(dir.path(), true); }); };
  const std::string pixels(1568, '\0');
  write_bytes(dir.path(images), idx(8, {2, 28, 28}, pixels));
  CHECK(message().find(labels) != std::string::npos);
  write_bytes(dir.path(labels), idx(8, {3}, std::string(3, '\0')));
  CHECK(message().find("does not fit") != std::string::npos);
  write_bytes(dir.path(labels), idx(8, {2}, std::string("\0\12", 2)));
  CHECK(message().find("bad label") != std::string::npos);
  write_bytes(dir.path(labels), idx(9, {2}, std::string(2, '\0')));
  CHECK(message().find("does not fit") != std::string::npos);
  write_bytes(dir.path(images), idx(8, {2, 14, 56}, pixels));
  CHECK(message().find("no MNIST images") != std::string::npos);
  write_bytes(dir.path(images), idx(8, {1568}, pixels));
  CHECK(message().find("no MNIST images") != std::string::npos);
}

TEST_CASE("load_mnist: the real set") {
  const char* data = std::getenv("KILN_TEST_DATA");
  if (data == nullptr) {
    MESSAGE("skipped: KILN_TEST_DATA is not set");
    return;
  }
  const std::string dir = std::string(data) + "/mnist";
  const ImageSet train = load_mnist(dir, true);
  const ImageSet test = load_mnist(dir, false);
  CHECK(train.images.shape() == Shape{60000, 28, 28});
  CHECK(test.images.shape() == Shape{10000, 28, 28});
  // Known facts: the first labels, the number of ones, the mean and the ink of the training pixels.
  const auto labels = train.labels.as<int64_t>();
  CHECK(std::vector<int64_t>(labels.begin(), labels.begin() + 5) ==
        std::vector<int64_t>{5, 0, 4, 1, 9});
  CHECK(test.labels.as<int64_t>()[0] == 7);
  CHECK(std::count(labels.begin(), labels.end(), 1) == 6742);
  double sum = 0;
  for (uint8_t v : train.images.as<uint8_t>()) sum += v;
  CHECK(sum / 255 / (60000.0 * 784) == doctest::Approx(0.1307).epsilon(0.001));
}
