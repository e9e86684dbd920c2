#include "kiln/io/image.h"

#include <random>

#include <doctest/doctest.h>
#include <zlib.h>

#include "kiln/core/allocator.h"
#include "tests/support/temp_dir.h"
#include "tests/support/throws.h"

using namespace kiln;
using namespace kiln::io;
using kiln::test::message_of;
using kiln::test::read_bytes;
using kiln::test::TempDir;
using kiln::test::write_bytes;

namespace {

enum ColourType { kGray = 0, kRgb = 2, kPalette = 3, kGrayAlpha = 4, kRgba = 6 };

const std::string kSignature("\x89PNG\r\n\x1a\n", 8);

std::string big_endian(uint32_t v) {
  return {static_cast<char>(v >> 24), static_cast<char>(v >> 16), static_cast<char>(v >> 8),
          static_cast<char>(v)};
}

std::string chunk(const std::string& type, const std::string& content) {
  const std::string body = type + content;
  const auto crc =
      crc32(0, reinterpret_cast<const Bytef*>(body.data()), static_cast<uInt>(body.size()));
  return big_endian(static_cast<uint32_t>(content.size())) + body +
         big_endian(static_cast<uint32_t>(crc));
}

std::string header(uint32_t width, uint32_t height, int depth, int colour, int interlace = 0) {
  return chunk("IHDR", big_endian(width) + big_endian(height) + static_cast<char>(depth) +
                           static_cast<char>(colour) + std::string(2, '\0') +
                           static_cast<char>(interlace));
}

// One IDAT of these rows, each with its filter byte 0.
std::string pixels(const std::vector<std::string>& rows) {
  std::string raw;
  for (const std::string& row : rows) raw += '\0' + row;
  uLongf size = compressBound(static_cast<uLong>(raw.size()));
  std::string out(size, '\0');
  compress(reinterpret_cast<Bytef*>(out.data()), &size, reinterpret_cast<const Bytef*>(raw.data()),
           static_cast<uLong>(raw.size()));
  return chunk("IDAT", out.substr(0, size));
}

std::vector<int> gray_of(const TempDir& dir, const std::string& bytes) {
  const TensorData image = read_gray_image(write_bytes(dir.path("f.png"), bytes));
  const auto values = image.as<uint8_t>();
  return {values.begin(), values.end()};
}

std::string png(const std::string& ihdr, const std::string& middle,
                const std::vector<std::string>& rows) {
  return kSignature + ihdr + middle + pixels(rows) + chunk("IEND", "");
}

TensorData image_of(const std::vector<uint8_t>& values, const Shape& shape) {
  return TensorData(values, shape);
}

std::vector<int> ints(const TensorData& image) {
  const auto values = image.as<uint8_t>();
  return {values.begin(), values.end()};
}

}  // namespace

TEST_CASE("read_gray_image: gray of every depth") {
  TempDir dir;
  CHECK(gray_of(dir, png(header(3, 2, 8, kGray), "", {std::string("\0\x80\xff", 3), "\1\2\3"})) ==
        std::vector<int>{0, 128, 255, 1, 2, 3});
  CHECK(gray_of(dir, png(header(4, 1, 1, kGray), "", {"\xa0"})) ==
        std::vector<int>{255, 0, 255, 0});
  CHECK(gray_of(dir, png(header(4, 1, 2, kGray), "", {"\x1b"})) ==
        std::vector<int>{0, 85, 170, 255});
  CHECK(gray_of(dir, png(header(2, 1, 4, kGray), "", {"\x3f"})) == std::vector<int>{51, 255});
  CHECK(gray_of(dir, png(header(3, 1, 16, kGray), "", {std::string("\0\0\x80\x80\xff\xff", 6)})) ==
        std::vector<int>{0, 128, 255});
}

TEST_CASE("read_gray_image: colours, palettes, transparency") {
  TempDir dir;
  CHECK(gray_of(dir, png(header(2, 1, 8, kRgb), "", {"\x40\x40\x40\xc8\xc8\xc8"})) ==
        std::vector<int>{64, 200});
  // Pure red, green and blue by their share of luminance (sRGB's 0.2126, 0.7152, 0.0722, then its
  // curve).
  const auto primaries =
      gray_of(dir, png(header(3, 1, 8, kRgb), "", {std::string("\xff\0\0\0\xff\0\0\0\xff", 9)}));
  CHECK(std::abs(primaries[0] - 127) <= 1);
  CHECK(std::abs(primaries[1] - 220) <= 1);
  CHECK(std::abs(primaries[2] - 76) <= 1);
  const std::string palette = chunk("PLTE", std::string("\0\0\0\x50\x50\x50\xff\xff\xff", 9));
  CHECK(gray_of(dir, png(header(4, 1, 2, kPalette), palette, {"\x18"})) ==
        std::vector<int>{0, 80, 255, 0});
  // Transparent pixels are paper.
  CHECK(gray_of(dir, png(header(2, 1, 8, kGrayAlpha), "", {std::string("\x20\xff\x20\0", 4)})) ==
        std::vector<int>{32, 255});
  CHECK(
      gray_of(dir, png(header(2, 1, 8, kRgba), "", {std::string("\x20\x20\x20\xff\0\0\0\0", 8)})) ==
      std::vector<int>{32, 255});
  CHECK(gray_of(dir, png(header(2, 1, 8, kGray), chunk("tRNS", std::string("\0\x20", 2)),
                         {"\x20\x30"})) == std::vector<int>{255, 48});
}

TEST_CASE("read_image: colours by channel, and sizes that are lies") {
  TempDir dir;
  const std::string colours =
      png(header(2, 1, 8, kRgb), "", {std::string("\x01\x02\x03\x04\x05\x06", 6)});
  const TensorData image = read_image(write_bytes(dir.path("c.png"), colours));
  CHECK(image.shape() == Shape{3, 1, 2});
  CHECK(ints(image) == std::vector<int>{1, 4, 2, 5, 3, 6});
  const std::string gray = png(header(2, 1, 8, kGray), "", {"\x07\x08"});
  CHECK(ints(decode_image(gray, "g")) == std::vector<int>{7, 8, 7, 8, 7, 8});
  CHECK(decode_image(gray, "g", {.gray = true}).shape() == Shape{1, 1, 2});
  CHECK(ints(decode_image(gray, "g", {.gray = true})) == std::vector<int>{7, 8});
  const std::string lies = png(header(8000, 8000, 8, kRgb), "", {"\x07\x08"});
  CHECK(message_of<IoError>([&] { decode_image(lies, "lies"); }).find("8000x8000 pixels in") !=
        std::string::npos);
  CHECK(message_of<IoError>([&] {
          decode_image(colours.substr(0, 50), "cut");
        }).starts_with("decode_image: 'cut' is no usable PNG"));
  CHECK_THROWS_AS(decode_image("", "none"), IoError);
}

TEST_CASE("read_gray_image: raw files of 28x28") {
  TempDir dir;
  std::string raw(784, '\0');
  raw[29] = '\x7f';
  const TensorData image = read_gray_image(write_bytes(dir.path("f"), raw));
  CHECK(image.shape() == Shape{28, 28});
  CHECK(image.as<uint8_t>()[29] == 127);
  for (const size_t n : {0u, 1u, 783u, 785u, 3136u}) {
    CHECK_THROWS_AS(read_gray_image(write_bytes(dir.path("f"), std::string(n, 'x'))), IoError);
  }
}

TEST_CASE("read_gray_image: malformed files are IoErrors") {
  TempDir dir;
  const std::string good = png(header(3, 2, 8, kGray), "", {"abc", "def"});
  CHECK(gray_of(dir, good).size() == 6);
  CHECK_THROWS_AS(read_gray_image(dir.path("none")), IoError);
  CHECK_THROWS_AS(read_gray_image(dir.path()), IoError);
  const size_t end_chunk = 12;  // a file that lacks only this one may pass
  for (size_t n = 0; n < good.size() - end_chunk; ++n) {
    CAPTURE(n);
    CHECK_THROWS_AS(gray_of(dir, good.substr(0, n)), IoError);
  }
  const std::string end = chunk("IEND", "");
  for (const std::string& bytes : {
           kSignature + end, kSignature + header(3, 2, 8, kGray) + end,  // no pixels
           kSignature + pixels({"abc"}) + end,                           // no header
           png(header(0, 2, 8, kGray), "", {"abc"}),                     // no width
           png(header(3, 0x80000000u, 8, kGray), "", {"abc"}),           // too high
           png(header(3, 2, 7, kGray), "", {"abc"}),                     // no such depth
           png(header(3, 2, 8, 5), "", {"abc"}),                         // no such colour
           png(header(3, 2, 8, kPalette), "", {"abc", "def"}),           // no palette
           png(header(3, 2, 8, kGray), "", {"abc"}),                     // a row is missing
           kSignature + header(3, 2, 8, kGray) + chunk("IDAT", "not zlib") + end,  // no data
       }) {
    CHECK_THROWS_AS(gray_of(dir, bytes), IoError);
  }
}

TEST_CASE(
    "read_gray_image: sizes beyond the limit, or beyond what the file can hold, take no memory") {
  TempDir dir;
  for (const auto& [width, height] : {std::pair{1000000u, 1000000u},
                                      {0x7fffffffu, 1u},
                                      {8193u, 8192u},
                                      {8192u, 8192u},
                                      {4000u, 4000u}}) {
    const std::string path =
        write_bytes(dir.path("f"), png(header(width, height, 8, kGray), "", {"abc"}));
    reset_memory_stats();
    const size_t before = memory_stats().peak_bytes_in_use;
    const std::string message = message_of<IoError>([&] { read_gray_image(path); });
    CHECK(message.find(path) != std::string::npos);
    CHECK(memory_stats().peak_bytes_in_use - before < (1 << 21));
  }
}

TEST_CASE("read_gray_image: mutations give an image or an IoError, nothing else") {
  TempDir dir;
  std::mt19937 random(5);
  const std::string good =
      png(header(3, 2, 8, kRgb, 0), chunk("gAMA", big_endian(45455)), {"abcdefghi", "jklmnopqr"});
  int images = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string bytes = good;
    for (int k = 0; k < 2; ++k)
      bytes[8 + random() % (bytes.size() - 8)] = static_cast<char>(random());
    if (i % 3 == 0) {  // with a header whose checksum is right
      bytes.replace(8, 25, chunk("IHDR", bytes.substr(16, 13)));
    }
    try {
      images += read_gray_image(write_bytes(dir.path("f"), bytes)).numel() > 0;
    } catch (const IoError&) {
    }
  }
  CHECK(images > 0);
}

TEST_CASE("write_png_gray: comes back, and replaces a file only when complete") {
  TempDir dir;
  std::vector<uint8_t> values(35);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<uint8_t>(i * 7);
  const TensorData image = image_of(values, {5, 7});
  const std::string path = dir.path("f.png");
  write_png_gray(path, image);
  const TensorData back = read_gray_image(path);
  CHECK(back.shape() == Shape{5, 7});
  CHECK(ints(back) == ints(image));

  const std::string before = read_bytes(path);
  CHECK_THROWS_AS(write_png_gray(path, image_of(values, {35})), ShapeError);
  CHECK_THROWS_AS(write_png_gray(path, image_of({}, {0, 7})), ShapeError);
  CHECK_THROWS_AS(write_png_gray(path, TensorData(Shape{5, 7}, f32)), DTypeError);
  CHECK_THROWS_AS(write_png_gray(dir.path("none/f.png"), image), IoError);
  CHECK(read_bytes(path) == before);
}

TEST_CASE("resize_gray: shrinking takes the mean of the area, growing interpolates") {
  CHECK(ints(resize_gray(image_of({0, 100, 50, 250}, {2, 2}), 1, 1)) == std::vector<int>{100});
  CHECK(ints(resize_gray(image_of({0, 100, 50, 250}, {1, 4}), 1, 2)) == std::vector<int>{50, 150});
  // 3 to 2: each takes one whole pixel and half of the middle one.
  CHECK(ints(resize_gray(image_of({0, 90, 240}, {3, 1}), 2, 1)) == std::vector<int>{30, 190});
  CHECK(ints(resize_gray(image_of({0, 100}, {1, 2}), 1, 4)) == std::vector<int>{0, 25, 75, 100});
  CHECK(ints(resize_gray(image_of({9}, {1, 1}), 2, 3)) == std::vector<int>(6, 9));
  CHECK(ints(resize_gray(image_of({1, 2, 3, 4}, {2, 2}), 2, 2)) == std::vector<int>{1, 2, 3, 4});
  // wider and lower at once
  CHECK(ints(resize_gray(image_of({0, 100, 100, 200}, {2, 2}), 1, 4)) ==
        std::vector<int>{50, 75, 125, 150});
  CHECK(resize_gray(image_of(std::vector<uint8_t>(70, 255), {7, 10}), 28, 28).as<uint8_t>()[783] ==
        255);
}

TEST_CASE("resize_gray: bad arguments, and extreme shapes in little memory") {
  const TensorData image = image_of({1, 2, 3, 4}, {2, 2});
  CHECK_THROWS_AS(resize_gray(image, 0, 1), ValueError);
  CHECK_THROWS_AS(resize_gray(image, 1, -1), ValueError);
  CHECK_THROWS_AS(resize_gray(image, 65537, 1), ValueError);
  CHECK_THROWS_AS(resize_gray(image, 65536, 65536), ValueError);
  CHECK_THROWS_AS(resize_gray(image_of({1, 2}, {2}), 1, 1), ShapeError);
  CHECK_THROWS_AS(resize_gray(image_of({}, {0, 2}), 1, 1), ShapeError);
  CHECK_THROWS_AS(resize_gray(TensorData(Shape{2, 2}, i8), 1, 1), DTypeError);
  const TensorData column = image_of(std::vector<uint8_t>(1 << 20, 7), {1 << 20, 1});
  CHECK(resize_gray(column, 1, 65536).as<uint8_t>()[65535] == 7);
}
