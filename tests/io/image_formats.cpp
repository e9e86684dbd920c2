// JPEG and WebP, on files that Pillow wrote and read: tests/fixtures/make_images.py.
#include <fstream>
#include <sstream>

#include <doctest/doctest.h>

#include "kiln/core/allocator.h"
#include "kiln/io/exif.h"
#include "kiln/io/image.h"
#include "tests/support/fixtures.h"
#include "tests/support/temp_dir.h"
#include "tests/support/throws.h"

using namespace kiln;
using namespace kiln::io;
using kiln::test::message_of;
using kiln::test::read_bytes;
using kiln::test::TempDir;
using kiln::test::write_bytes;

namespace {

std::string fixture(const std::string& name) { return test::fixture("images/" + name); }

// Whether this build reads the file's format.
bool is_read(const std::string& name) {
  if (name.ends_with(".jpg")) return reads_image_format("jpeg");
  if (name.ends_with(".webp")) return reads_image_format("webp");
  return true;
}

std::pair<int64_t, int64_t> sums_of(const TensorData& image) {
  int64_t sum = 0, weighted = 0, at = 0;
  for (const uint8_t sample : image.as<uint8_t>()) {
    sum += sample;
    weighted += sample * (at++ % 251);
  }
  return {sum, weighted};
}

std::string refusal(const std::string& name, const ReadImageOptions& options = {}) {
  return message_of<IoError>([&] { read_image(fixture(name), options); });
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("read_image: JPEG and WebP as Pillow reads them") {
  std::ifstream list(fixture("expected.txt"));
  int files = 0;
  for (std::string line; std::getline(list, line); ++files) {
    std::istringstream words(line);
    std::string name, mode;
    int64_t height = 0, width = 0, sum = 0, weighted = 0;
    words >> name >> mode >> height >> width >> sum >> weighted;
    CAPTURE(name);
    if (!is_read(name)) {
      CHECK(contains(refusal(name), "this build of Kiln does not read"));
      continue;
    }
    const TensorData image = read_image(fixture(name));
    CHECK(image.shape() == Shape{3, height, width});
    // Another version of the library may round otherwise, here and there by 1.
    const auto [found, placed] = sums_of(image);
    CHECK(std::abs(found - sum) <= sum / 1000);
    CHECK(std::abs(placed - weighted) <= weighted / 1000);
    const TensorData gray = read_image(fixture(name), {.gray = true});
    CHECK(gray.shape() == Shape{1, height, width});
    CHECK(read_gray_image(fixture(name)).shape() == Shape{height, width});
  }
  CHECK(files == 15);
}

TEST_CASE("read_image: gray is the luma of the colours") {
  for (const char* name : {"444.jpg", "cmyk.jpg", "keep_rgb.jpg", "lossless.webp"}) {
    if (!is_read(name)) continue;
    CAPTURE(name);
    const TensorData colour = read_image(fixture(name));
    const TensorData gray = read_image(fixture(name), {.gray = true});
    const auto c = colour.as<uint8_t>(), g = gray.as<uint8_t>();
    const size_t plane = g.size();
    for (size_t i = 0; i < plane; ++i) {
      const double luma = 0.299 * c[i] + 0.587 * c[plane + i] + 0.114 * c[2 * plane + i];
      // A JPEG's own luma is what its colours were made of, before they were cut to 0 to 255.
      if (std::abs(luma - g[i]) > (name[0] == '4' ? 6 : 0.6))
        FAIL_CHECK(i, ": ", luma, " ", int(g[i]));
    }
  }
}

TEST_CASE("read_image: EXIF's orientation, where it is asked for") {
  for (const char* name : {"turned.jpg", "turned.webp", "turned.png"}) {
    if (!is_read(name)) continue;
    CAPTURE(name);
    CHECK(exif_orientation(read_bytes(fixture(name))) == 6);
    const TensorData stored = read_image(fixture(name));
    const TensorData upright = read_image(fixture(name), {.apply_exif_orientation = true});
    CHECK(stored.shape() == Shape{3, 29, 37});
    REQUIRE(upright.shape() == Shape{3, 37, 29});
    // 6: a quarter turn to the right. What stood at the bottom left is the first pixel.
    CHECK(upright.as<uint8_t>()[0] == stored.as<uint8_t>()[28 * 37]);
    CHECK(upright.as<uint8_t>()[28] == stored.as<uint8_t>()[0]);
  }
  CHECK(exif_orientation(read_bytes(fixture("420.jpg"))) == 1);
  CHECK(exif_orientation("") == 1);
}

TEST_CASE("turn_upright: the eight orientations") {
  // 1 2 3
  // 4 5 6
  const TensorData image(std::vector<uint8_t>{1, 2, 3, 4, 5, 6}, Shape{1, 2, 3});
  const std::vector<std::vector<int>> expected{
      {1, 2, 3, 4, 5, 6}, {3, 2, 1, 6, 5, 4}, {6, 5, 4, 3, 2, 1}, {4, 5, 6, 1, 2, 3},
      {1, 4, 2, 5, 3, 6}, {4, 1, 5, 2, 6, 3}, {6, 3, 5, 2, 4, 1}, {3, 6, 2, 5, 1, 4}};
  for (int orientation = 1; orientation <= 8; ++orientation) {
    CAPTURE(orientation);
    const TensorData out = turn_upright(image, orientation);
    CHECK(out.shape() == (orientation >= 5 ? Shape{1, 3, 2} : Shape{1, 2, 3}));
    const auto values = out.as<uint8_t>();
    CHECK(std::vector<int>(values.begin(), values.end()) ==
          expected[static_cast<size_t>(orientation) - 1]);
  }
}

TEST_CASE("read_image: damaged JPEG and WebP name the file") {
  if (reads_image_format("jpeg")) {
    CHECK(contains(refusal("cut.jpg"), "cut.jpg' is no usable JPEG; got Premature end"));
    CHECK(contains(refusal("twelve_bits.jpg"), "precision 12"));
    CHECK(contains(refusal("arithmetic.jpg"), "arithmetic coding"));
    reset_memory_stats();
    const size_t before = memory_stats().peak_bytes_in_use;
    CHECK(contains(refusal("lies.jpg"), "60000x60000 pixels in"));
    CHECK(memory_stats().peak_bytes_in_use - before < 1'000'000);
  }
  if (reads_image_format("webp")) {
    CHECK(contains(refusal("cut.webp"), "cut.webp' is no usable WebP"));
    CHECK(contains(refusal("animated.webp"), "an animation"));
  }
}

TEST_CASE("read_image: a JPEG or a WebP cut anywhere is an image or an IoError") {
  for (const char* name : {"progressive.jpg", "restarts.jpg", "clear_lossy.webp", "turned.png"}) {
    if (!is_read(name)) continue;
    CAPTURE(name);
    const std::string whole = read_bytes(fixture(name));
    size_t images = 0;
    for (size_t size = 0; size < whole.size(); ++size) {
      try {
        decode_image(whole.substr(0, size), "cut", {.apply_exif_orientation = true});
        ++images;
      } catch (const IoError& error) {
        CHECK(contains(error.what(), "'cut'"));
      }
    }
    CHECK(images <= 24);  // the last bytes of some say nothing
  }
}
