// U-Net (Ronneberger et al., 2015), padded, with batch norms: the keys of milesial.
#pragma once

#include <optional>

#include "kiln/models/vision_blocks.h"
#include "kiln/nn/conv_layers.h"

namespace kiln::models {

struct UNetOptions {
  int64_t n_channels = 3;
  int64_t n_classes = 1;
  bool bilinear = false;  // doubles sizes by interpolation instead of a transposed convolution
  int64_t base_channels = 64;
};

// Two 3x3 convolutions, each with a norm and ReLU.
class UNetDoubleConv : public nn::Module {
 public:
  UNetDoubleConv(int64_t inputs, int64_t outputs, int64_t middle);
  nn::Sequential double_conv;
  KILN_MODULE_DECLARED(UNetDoubleConv)
  Tensor forward(const Tensor& x) { return double_conv(x); }
};

// Halves the size.
class UNetDown : public nn::Module {
 public:
  UNetDown(int64_t inputs, int64_t outputs);
  nn::Sequential maxpool_conv;
  KILN_MODULE_DECLARED(UNetDown)
  Tensor forward(const Tensor& x) { return maxpool_conv(x); }
};

// Doubles the size of x, pads it to the size of the skip, and joins the two.
class UNetUp : public nn::Module {
 public:
  UNetUp(int64_t inputs, int64_t outputs, bool bilinear);
  std::optional<nn::ConvTranspose2d> up;
  UNetDoubleConv conv;
  KILN_MODULE_DECLARED(UNetUp)
  Tensor forward(const Tensor& x, const Tensor& skip);
};

// Images [N, n_channels, H, W], at least 16 x 16 -> [N, n_classes, H, W].
class UNet : public nn::Module {
 public:
  explicit UNet(const UNetOptions& options = {});
  UNetDoubleConv inc;
  UNetDown down1, down2, down3, down4;
  UNetUp up1, up2, up3, up4;
  nn::Sequential outc;
  KILN_MODULE_DECLARED(UNet)
  Tensor forward(const Tensor& x);
};

UNet unet(const UNetOptions& options = {});

}  // namespace kiln::models
