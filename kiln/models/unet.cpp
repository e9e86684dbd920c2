#include "kiln/models/unet.h"

#include <algorithm>

#include "kiln/core/error.h"
#include "kiln/nn/max_pool2d.h"
#include "kiln/nn/relu.h"
#include "kiln/tensor/nn/interpolate.h"
#include "kiln/tensor/nn/padding.h"
#include "kiln/tensor/shape/joining.h"

namespace kiln::models {

UNetDoubleConv::UNetDoubleConv(int64_t inputs, int64_t outputs, int64_t middle)
    : double_conv(nn::Conv2d(inputs, middle, 3, {.padding = 1, .bias = false}),
                  nn::BatchNorm2d(middle), nn::ReLU(),
                  nn::Conv2d(middle, outputs, 3, {.padding = 1, .bias = false}),
                  nn::BatchNorm2d(outputs), nn::ReLU()) {}
KILN_MODULE_DEFINED(UNetDoubleConv, double_conv)

UNetDown::UNetDown(int64_t inputs, int64_t outputs)
    : maxpool_conv(nn::MaxPool2d(2), UNetDoubleConv(inputs, outputs, outputs)) {}
KILN_MODULE_DEFINED(UNetDown, maxpool_conv)

UNetUp::UNetUp(int64_t inputs, int64_t outputs, bool bilinear)
    : conv(inputs, outputs, bilinear ? inputs / 2 : outputs) {
  if (!bilinear) up.emplace(inputs, inputs / 2, 2, nn::ConvTransposeOptions{.stride = 2});
}

Tensor UNetUp::forward(const Tensor& x, const Tensor& skip) {
  Tensor y = up ? (*up)(x)
                : functional::interpolate(
                      x, {.scale_factor = {2}, .mode = "bilinear", .align_corners = true});
  const int64_t dy = skip.size(2) - y.size(2), dx = skip.size(3) - y.size(3);
  y = functional::pad(y, {dx / 2, dx - dx / 2, dy / 2, dy - dy / 2});
  return conv(cat({skip, y}, 1));
}
KILN_MODULE_DEFINED(UNetUp, up, conv)

namespace {

// The channels of level i, 0 to 4; with `bilinear` the deepest has no more than the one above.
int64_t width(const UNetOptions& o, int i) { return o.base_channels << i; }

}  // namespace

UNet::UNet(const UNetOptions& o)
    : inc(o.n_channels, width(o, 0), width(o, 0)),
      down1(width(o, 0), width(o, 1)),
      down2(width(o, 1), width(o, 2)),
      down3(width(o, 2), width(o, 3)),
      down4(width(o, 3), width(o, 4) / (o.bilinear ? 2 : 1)),
      up1(width(o, 4), width(o, 3) / (o.bilinear ? 2 : 1), o.bilinear),
      up2(width(o, 3), width(o, 2) / (o.bilinear ? 2 : 1), o.bilinear),
      up3(width(o, 2), width(o, 1) / (o.bilinear ? 2 : 1), o.bilinear),
      up4(width(o, 1), width(o, 0), o.bilinear) {
  require_positive("UNet", "n_channels", o.n_channels);
  require_positive("UNet", "n_classes", o.n_classes);
  require_positive("UNet", "base_channels", o.base_channels);
  outc.push_back("conv", nn::Conv2d(width(o, 0), o.n_classes, 1));
}

Tensor UNet::forward(const Tensor& x) {
  if (x.dim() != 4 || std::min(x.size(2), x.size(3)) < 16) {
    throw_error<ValueError>("UNet: expected images [N, C, H, W] of at least 16 x 16; got ",
                            to_string(x.shape()));
  }
  const Tensor x1 = inc(x), x2 = down1(x1), x3 = down2(x2), x4 = down3(x3);
  return outc(up4(up3(up2(up1(down4(x4), x4), x3), x2), x1));
}
KILN_MODULE_DEFINED(UNet, inc, down1, down2, down3, down4, up1, up2, up3, up4, outc)

UNet unet(const UNetOptions& options) { return UNet(options); }

}  // namespace kiln::models
