#include "digit_trainer.h"

#include <algorithm>
#include <cstring>

#include <kiln/io/image.h>

namespace kiln::web {

namespace {

constexpr int64_t kPiece = 50;  // digits drawn at once
constexpr int64_t kDigit = 20;  // the longer side of most digits of the set
constexpr uint8_t kInk = 40;    // what is darker counts as paper

// The network takes numbers of 0 to 1.
Tensor scaled(const Tensor& images) { return images.to(f32) / 255.0; }

Tensor tensor_of(std::span<const uint8_t> pixels) {
  const auto count = static_cast<int64_t>(pixels.size()) / DigitTrainer::kPixels;
  const Shape shape{count, 1, DigitTrainer::kSide, DigitTrainer::kSide};
  return from_data(TensorData(pixels, shape));
}

Tensor tensor_of(std::span<const int64_t> labels) {
  return from_data(TensorData(labels, Shape{static_cast<int64_t>(labels.size())}));
}

}  // namespace

DigitTrainer::DigitTrainer(int64_t train_count, int64_t test_count, uint64_t seed)
    : train_count_(train_count),
      test_count_(test_count),
      seed_(seed),
      net_((manual_seed(seed), DigitNet())),
      optimizer_(net_.parameters(), {.lr = 2e-3}) {
  if (train_count < 1 || test_count < 1) {
    throw_error<ValueError>("DigitTrainer: too few digits; got ", train_count, " to learn and ",
                            test_count, " to test; expected 1 or more");
  }
}

int64_t DigitTrainer::draw(int64_t count) {
  for (; count > 0 && static_cast<int64_t>(labels_.size()) < total(); count -= kPiece) {
    const auto drawn = static_cast<int64_t>(labels_.size());
    const bool is_test = drawn >= train_count_;
    const int64_t left = is_test ? total() - drawn : train_count_ - drawn;
    // Each piece is a set of its own, and none of the test is one of those to learn from.
    const auto piece = static_cast<uint64_t>(drawn / kPiece) + (is_test ? uint64_t{1} << 32 : 0);
    const data::ImageSet set = data::make_digits(std::min(kPiece, left), seed_ * 1'000'003 + piece);
    const auto images = set.images.as<uint8_t>();
    const auto labels = set.labels.as<int64_t>();
    pixels_.insert(pixels_.end(), images.begin(), images.end());
    labels_.insert(labels_.end(), labels.begin(), labels.end());
  }
  const auto drawn = static_cast<int64_t>(labels_.size());
  if (drawn == total() && !loader_) {
    const auto pixels = std::span<const uint8_t>(pixels_);
    const auto labels = std::span<const int64_t>(labels_);
    const auto images = static_cast<size_t>(train_count_);
    const size_t cut = images * kPixels;
    loader_.emplace(
        data::TensorDataset(tensor_of(pixels.first(cut)), tensor_of(labels.first(images))),
        data::DataLoaderOptions{.batch_size = kBatch, .shuffle = true, .seed = seed_});
    test_images_ = tensor_of(pixels.subspan(cut));
    test_labels_ = tensor_of(labels.subspan(images));
  }
  return drawn;
}

std::span<const uint8_t> DigitTrainer::pixels(int64_t index) const {
  static_cast<void>(label(index));
  return std::span(pixels_).subspan(static_cast<size_t>(index * kPixels), kPixels);
}

int64_t DigitTrainer::label(int64_t index) const {
  if (index < 0 || index >= static_cast<int64_t>(labels_.size())) {
    throw_error<IndexError>("DigitTrainer: no such digit; got ", index, "; expected 0 to ",
                            static_cast<int64_t>(labels_.size()) - 1);
  }
  return labels_[static_cast<size_t>(index)];
}

void DigitTrainer::check_drawn(const char* op) const {
  if (!loader_) {
    throw_error<RuntimeError>("DigitTrainer::", op, ": digits are missing; got ",
                              static_cast<int64_t>(labels_.size()), "; expected draw() until all ",
                              total(), " are there");
  }
}

double DigitTrainer::step() {
  check_drawn("step");
  if (!batches_ || *batches_ == loader_->end()) batches_ = loader_->begin();
  const data::Batch& batch = **batches_;
  const Tensor loss = functional::cross_entropy(net_(scaled(batch[0])), batch[1]);
  optimizer_.step(loss.backward());
  ++*batches_;
  ++steps_;
  return loss.item();
}

double DigitTrainer::accuracy() const {
  check_drawn("accuracy");
  const NoGradGuard no_grad;
  return net_(scaled(test_images_)).argmax(1).eq(test_labels_).to(f32).mean().item();
}

std::array<float, 10> DigitTrainer::read(std::span<const uint8_t> image) const {
  if (image.size() != kPixels) {
    throw_error<ShapeError>("DigitTrainer::read: bad image; got ", image.size(),
                            " pixels; expected ", kPixels);
  }
  const NoGradGuard no_grad;
  const auto values = softmax(net_(scaled(tensor_of(image))), 1).to_vector<float>();
  std::array<float, 10> out{};
  std::copy(values.begin(), values.end(), out.begin());
  return out;
}

uint64_t DigitTrainer::fingerprint() const {
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (const auto& [name, tensor] : net_.state_dict()) {
    const TensorData data = tensor.to_data();
    for (size_t i = 0; i < data.bytes(); ++i) {
      hash = (hash ^ static_cast<uint64_t>(data.data()[i])) * 0x100000001b3;
    }
  }
  return hash;
}

std::array<uint8_t, DigitTrainer::kPixels> fit_drawing(std::span<const uint8_t> drawing,
                                                       int64_t side) {
  if (side < 1 || static_cast<uint64_t>(side) * static_cast<uint64_t>(side) != drawing.size()) {
    throw_error<ShapeError>("fit_drawing: bad drawing; got ", drawing.size(), " pixels; expected ",
                            side, " x ", side);
  }
  int64_t top = side, bottom = -1, left = side, right = -1;
  for (int64_t y = 0; y < side; ++y) {
    for (int64_t x = 0; x < side; ++x) {
      if (drawing[static_cast<size_t>(y * side + x)] < kInk) continue;
      top = std::min(top, y);
      bottom = std::max(bottom, y);
      left = std::min(left, x);
      right = std::max(right, x);
    }
  }
  if (bottom < 0) {
    throw_error<ValueError>("fit_drawing: nothing is drawn; expected a stroke of ", int{kInk},
                            " or lighter");
  }
  const int64_t height = bottom - top + 1, width = right - left + 1;
  TensorData cut(Shape{height, width}, DType::u8);
  for (int64_t y = 0; y < height; ++y) {
    std::memcpy(cut.as_mutable<uint8_t>().data() + y * width,
                drawing.data() + (top + y) * side + left, static_cast<size_t>(width));
  }
  const double scale = static_cast<double>(kDigit) / static_cast<double>(std::max(height, width));
  const auto resized = [scale](int64_t length) {
    return std::clamp<int64_t>(std::llround(scale * static_cast<double>(length)), 1, kDigit);
  };
  const int64_t new_height = resized(height), new_width = resized(width);
  const TensorData small = io::resize_gray(cut, new_height, new_width);
  std::array<uint8_t, DigitTrainer::kPixels> out{};
  const int64_t y0 = (DigitTrainer::kSide - new_height) / 2;
  const int64_t x0 = (DigitTrainer::kSide - new_width) / 2;
  for (int64_t y = 0; y < new_height; ++y) {
    std::memcpy(out.data() + (y0 + y) * DigitTrainer::kSide + x0,
                small.as<uint8_t>().data() + y * new_width, static_cast<size_t>(new_width));
  }
  return out;
}

}  // namespace kiln::web
