// What the page calls: a DigitTrainer behind plain functions. None of them throws; what went wrong
// is what kiln_web_error() says, and such a call returns -1.
#include <algorithm>
#include <cstring>
#include <exception>
#include <memory>
#include <string>

#include "digit_trainer.h"

namespace {

using kiln::web::DigitTrainer;

std::string last_error;
std::unique_ptr<DigitTrainer> trainer;

// The page writes an image or a drawing here, and reads what came out of it.
constexpr int64_t kMostSide = 512;
uint8_t drawing[kMostSide * kMostSide];
uint8_t fitted[DigitTrainer::kPixels];
float probabilities[10];

template <class F>
double guarded(F f) {
  last_error.clear();
  try {
    return static_cast<double>(f());
  } catch (const std::exception& e) {
    last_error = e.what();
  } catch (...) {
    last_error = "an exception of an unknown type";
  }
  return -1;
}

DigitTrainer& current() {
  if (!trainer)
    throw kiln::RuntimeError("kiln_web: there is no trainer; call kiln_web_start first");
  return *trainer;
}

}  // namespace

#define KILN_WEB extern "C" __attribute__((used, visibility("default")))

KILN_WEB const char* kiln_web_error() { return last_error.c_str(); }
KILN_WEB const char* kiln_web_version() { return KILN_VERSION; }

KILN_WEB double kiln_web_start(int train_count, int test_count, unsigned seed) {
  return guarded([&] {
    trainer = std::make_unique<DigitTrainer>(train_count, test_count, seed);
    return trainer->total();
  });
}
KILN_WEB double kiln_web_draw(int count) {
  return guarded([&] { return current().draw(count); });
}
KILN_WEB double kiln_web_label(int index) {
  return guarded([&] { return current().label(index); });
}
// Pixels of a digit that was drawn; null where there is none.
KILN_WEB const uint8_t* kiln_web_pixels(int index) {
  const uint8_t* out = nullptr;
  guarded([&] {
    out = current().pixels(index).data();
    return 0;
  });
  return out;
}
KILN_WEB double kiln_web_step() {
  return guarded([&] { return current().step(); });
}
KILN_WEB double kiln_web_steps_per_epoch() {
  return guarded([&] { return current().steps_per_epoch(); });
}
KILN_WEB double kiln_web_accuracy() {
  return guarded([&] { return current().accuracy(); });
}

// The weights' fingerprint in two halves, since a number of JavaScript holds 53 bits.
KILN_WEB double kiln_web_fingerprint(int high) {
  return guarded([&] {
    const uint64_t all = current().fingerprint();
    return static_cast<uint32_t>(high != 0 ? all >> 32 : all);
  });
}

KILN_WEB uint8_t* kiln_web_drawing() { return drawing; }
KILN_WEB const uint8_t* kiln_web_fitted() { return fitted; }
KILN_WEB const float* kiln_web_probabilities() { return probabilities; }
// Reads what is drawn on side x side pixels in kiln_web_drawing(): the class that is most probable.
// An image of the network's own size is read as it is, others are fitted.
KILN_WEB double kiln_web_read(int side) {
  return guarded([&] {
    if (side < 1 || side > kMostSide) {
      throw kiln::ValueError(
          kiln::concat("kiln_web_read: bad side; got ", side, "; expected 1 to ", int{kMostSide}));
    }
    const size_t pixels = static_cast<size_t>(side) * static_cast<size_t>(side);
    if (side == DigitTrainer::kSide) {
      std::memcpy(fitted, drawing, sizeof fitted);
    } else {
      const auto image = kiln::web::fit_drawing({drawing, pixels}, side);
      std::memcpy(fitted, image.data(), image.size());
    }
    const auto read = current().read(fitted);
    std::memcpy(probabilities, read.data(), sizeof probabilities);
    return std::max_element(read.begin(), read.end()) - read.begin();
  });
}
