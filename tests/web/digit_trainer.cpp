// The C++ of the page examples/web, compiled for this machine. script/wasm runs these tests in
// Node, too, and the page itself in a browser.
#include "examples/web/digit_trainer.h"

#include <algorithm>
#include <cmath>
#include <string>

#include <doctest/doctest.h>

using namespace kiln;
using web::DigitTrainer;

extern "C" {
const char* kiln_web_error();
double kiln_web_start(int train_count, int test_count, unsigned seed);
double kiln_web_draw(int count);
double kiln_web_label(int index);
const uint8_t* kiln_web_pixels(int index);
double kiln_web_step();
double kiln_web_steps_per_epoch();
double kiln_web_accuracy();
double kiln_web_fingerprint(int high);
uint8_t* kiln_web_drawing();
const uint8_t* kiln_web_fitted();
const float* kiln_web_probabilities();
double kiln_web_read(int side);
}

namespace {

DigitTrainer drawn(int64_t train_count, int64_t test_count, uint64_t seed) {
  DigitTrainer out(train_count, test_count, seed);
  while (out.draw(70) < out.total()) {
  }
  return out;
}

// A filled box on a drawing of side x side.
std::vector<uint8_t> box(int64_t side, int64_t top, int64_t left, int64_t height, int64_t width) {
  std::vector<uint8_t> out(static_cast<size_t>(side * side));
  for (int64_t y = top; y < top + height; ++y) {
    for (int64_t x = left; x < left + width; ++x) out[static_cast<size_t>(y * side + x)] = 255;
  }
  return out;
}

}  // namespace

TEST_CASE("web: the page's network learns to read digits") {
  DigitTrainer trainer = drawn(4000, 500, 1);
  CHECK(trainer.steps_per_epoch() == 125);
  // Before training it guesses: the loss is near log 10.
  CHECK(std::abs(trainer.step() - std::log(10.0)) < 0.7);
  CHECK(trainer.accuracy() < 0.6);
  while (trainer.steps() < 6 * trainer.steps_per_epoch()) trainer.step();
  CHECK(trainer.accuracy() > 0.9);
  // It reads single digits as it reads the test: the last is one of them.
  int right = 0;
  for (int64_t i = 4000; i < 4500; ++i) {
    const auto read = trainer.read(trainer.pixels(i));
    float sum = 0;
    for (float p : read) sum += p;
    CHECK(std::abs(sum - 1) < 1e-5f);
    right += std::max_element(read.begin(), read.end()) - read.begin() == trainer.label(i);
  }
  CHECK(right == std::lround(500 * trainer.accuracy()));
}

TEST_CASE("web: two runs of one seed have the same bits, other seeds others") {
  const auto run = [](uint64_t seed) {
    DigitTrainer trainer = drawn(128, 32, seed);
    for (int i = 0; i < 6; ++i) trainer.step();
    return trainer.fingerprint();
  };
  const uint64_t first = run(3);
  CHECK(run(3) == first);
  CHECK(run(4) != first);
}

TEST_CASE("web: no digit of the test is one to learn from") {
  const DigitTrainer trainer = drawn(300, 100, 5);
  for (int64_t test = 300; test < 400; ++test) {
    const auto a = trainer.pixels(test);
    for (int64_t train = 0; train < 300; ++train) {
      const auto b = trainer.pixels(train);
      REQUIRE_FALSE(std::equal(a.begin(), a.end(), b.begin()));
    }
  }
}

TEST_CASE("web: drawings are cut, scaled and put in the middle") {
  // Twice as high as wide: 20 x 10 pixels of 28 x 28, wherever it was.
  for (const auto& [top, left] : {std::pair<int64_t, int64_t>{10, 60}, {55, 3}}) {
    const auto fitted = web::fit_drawing(box(112, top, left, 40, 20), 112);
    for (int64_t y = 0; y < 28; ++y) {
      for (int64_t x = 0; x < 28; ++x) {
        const bool inside = y >= 4 && y < 24 && x >= 9 && x < 19;
        REQUIRE(fitted[static_cast<size_t>(y * 28 + x)] == (inside ? 255 : 0));
      }
    }
  }
  // A single point grows, too.
  const auto point = web::fit_drawing(box(112, 5, 5, 1, 1), 112);
  CHECK(std::count(point.begin(), point.end(), 255) == 400);

  const std::vector<uint8_t> empty(112 * 112);
  CHECK_THROWS_AS(web::fit_drawing(empty, 112), ValueError);
  CHECK_THROWS_AS(web::fit_drawing(empty, 111), ShapeError);
  CHECK_THROWS_AS(web::fit_drawing({}, 0), ShapeError);
}

TEST_CASE("web: wrong calls are typed errors") {
  CHECK_THROWS_AS(DigitTrainer(0, 1, 0), ValueError);
  CHECK_THROWS_AS(DigitTrainer(1, -1, 0), ValueError);
  DigitTrainer trainer(40, 10, 0);
  CHECK_THROWS_AS(trainer.step(), RuntimeError);
  CHECK_THROWS_AS(trainer.accuracy(), RuntimeError);
  CHECK_THROWS_AS(trainer.pixels(0), IndexError);
  trainer.draw(1000);
  CHECK_THROWS_AS(trainer.label(50), IndexError);
  CHECK_THROWS_AS(trainer.label(-1), IndexError);
  CHECK_THROWS_AS(trainer.read(trainer.pixels(0).first(100)), ShapeError);
}

TEST_CASE("web: the functions that the page calls") {
  CHECK(kiln_web_step() == -1);
  CHECK(std::string(kiln_web_error()).find("kiln_web_start") != std::string::npos);
  CHECK(kiln_web_start(0, 0, 1) == -1);
  CHECK(kiln_web_start(64, 32, 1) == 96);
  CHECK(std::string(kiln_web_error()).empty());
  CHECK(kiln_web_pixels(0) == nullptr);
  CHECK(kiln_web_draw(60) == 64);  // pieces of 50, but none of both kinds
  CHECK(kiln_web_draw(60) == 96);
  CHECK(kiln_web_steps_per_epoch() == 2);
  const double before = kiln_web_fingerprint(0);
  CHECK(kiln_web_step() > 0);
  CHECK(kiln_web_fingerprint(0) != before);
  CHECK(kiln_web_accuracy() >= 0);
  CHECK(kiln_web_label(95) >= 0);
  CHECK(kiln_web_pixels(95) != nullptr);
  CHECK(kiln_web_pixels(96) == nullptr);

  std::fill_n(kiln_web_drawing(), 112 * 112, uint8_t{0});
  CHECK(kiln_web_read(112) == -1);
  CHECK(std::string(kiln_web_error()).find("nothing is drawn") != std::string::npos);
  CHECK(kiln_web_read(1 << 20) == -1);
  const auto drawing = box(112, 20, 50, 60, 8);
  std::copy(drawing.begin(), drawing.end(), kiln_web_drawing());
  const double digit = kiln_web_read(112);
  REQUIRE(digit >= 0);
  const float* const all = kiln_web_probabilities();
  CHECK(std::max_element(all, all + 10) - all == static_cast<int>(digit));
  CHECK(kiln_web_fitted()[14 * 28 + 14] == 255);

  // One of the network's own size is read as it is.
  const uint8_t* const known = kiln_web_pixels(3);
  std::copy_n(known, 784, kiln_web_drawing());
  REQUIRE(kiln_web_read(28) >= 0);
  CHECK(std::equal(known, known + 784, kiln_web_fitted()));
}
