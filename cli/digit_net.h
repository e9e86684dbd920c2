// DigitNet: the convolutional network that reads digits, and its file.
#pragma once

#include <string>

#include "kiln/io/safetensors.h"
#include "kiln/nn/nn.h"

namespace kiln::cli {

inline constexpr int64_t kDigitClasses = 10;
inline constexpr int64_t kDigitSide = 28;

// How pixels are brought to mean 0 and standard deviation 1; in units of 1 for white.
struct Normalization {
  double mean = 0.0;
  double std = 1.0;
};

// Images u8 [N, 1, 28, 28], white on black -> logits [N, 10].
class DigitNet : public nn::Module {
 public:
  explicit DigitNet(const Normalization& pixels = {}) : pixels_(pixels) {}

  nn::Conv2d conv1{1, 32, 3, {.padding = 1}};
  nn::BatchNorm2d norm1{32};
  nn::Conv2d conv2{32, 64, 3, {.padding = 1}};
  nn::BatchNorm2d norm2{64};
  nn::MaxPool2d pool{2};
  nn::Linear hidden{64 * 7 * 7, 128};
  nn::Dropout dropout{0.3};
  nn::Linear classes{128, kDigitClasses};
  KILN_MODULE(DigitNet, conv1, norm1, conv2, norm2, pool, hidden, dropout, classes)

  Tensor forward(const Tensor& images) const;
  const Normalization& pixels() const { return pixels_; }

 private:
  Normalization pixels_;
};

// Writes the network with all that reading digits needs; `facts` are added to the file's metadata.
void save_digit_net(const DigitNet& net, const std::string& path, const io::Metadata& facts);

struct DigitModel {
  DigitNet net;  // in eval mode
  io::Metadata facts;
};
// Throws IoError when the file is missing, damaged, or no digit network.
DigitModel load_digit_net(const std::string& path);

}  // namespace kiln::cli
