// The digit network of Kiln's README, cut into pieces that are short enough for a page: between two
// of them a browser can show how far it has come.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <kiln/kiln.h>

namespace kiln::web {

struct DigitNet : nn::Module {
  nn::Conv2d conv{1, 8, 5, {.stride = 2}};
  nn::Linear fc{8 * 12 * 12, 10};
  KILN_MODULE(DigitNet, conv, fc)

  Tensor forward(const Tensor& x) const { return fc(relu(conv(x)).flatten(1)); }
};

class DigitTrainer {
 public:
  static constexpr int64_t kSide = 28;
  static constexpr int64_t kPixels = kSide * kSide;
  static constexpr int64_t kBatch = 32;

  // Seeds Kiln's generator with `seed`. Throws ValueError unless both counts are 1 or more.
  DigitTrainer(int64_t train_count, int64_t test_count, uint64_t seed);

  // Draws up to `count` more digits, those for the test last; returns how many there are.
  int64_t draw(int64_t count);
  // How many there will be.
  int64_t total() const { return train_count_ + test_count_; }
  // Digit `index` of those drawn: its pixels, white on black, and its class. Throws IndexError.
  std::span<const uint8_t> pixels(int64_t index) const;
  int64_t label(int64_t index) const;

  // One batch: returns its loss. Epochs follow one another. Throws RuntimeError before all digits
  // are drawn.
  double step();
  int64_t steps() const { return steps_; }
  int64_t steps_per_epoch() const { return (train_count_ + kBatch - 1) / kBatch; }

  // The share of the test digits that are read rightly, 0 to 1. Throws RuntimeError like step().
  double accuracy() const;
  // The probability of each class for an image of kPixels. Throws ShapeError.
  std::array<float, 10> read(std::span<const uint8_t> image) const;

  // A number that any other bit in any weight would change.
  uint64_t fingerprint() const;

 private:
  void check_drawn(const char* op) const;

  int64_t train_count_;
  int64_t test_count_;
  uint64_t seed_;
  std::vector<uint8_t> pixels_;
  std::vector<int64_t> labels_;
  DigitNet net_;
  optim::Adam optimizer_;
  std::optional<data::DataLoader> loader_;
  std::optional<data::DataLoader::Iterator> batches_;
  Tensor test_images_, test_labels_;
  int64_t steps_ = 0;
};

// A drawing u8 [side, side], white on black, as DigitTrainer::read wants it: cut to what is drawn,
// made as large as the digits of the set are, and put in the middle. Throws ShapeError for another
// number of pixels, and ValueError where nothing is drawn.
std::array<uint8_t, DigitTrainer::kPixels> fit_drawing(std::span<const uint8_t> drawing,
                                                       int64_t side);

}  // namespace kiln::web
