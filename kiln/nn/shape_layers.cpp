#include "kiln/nn/shape_layers.h"

#include "kiln/nn/flatten.h"
#include "kiln/nn/identity.h"
#include "kiln/nn/repr.h"
#include "kiln/tensor/nn/folding.h"
#include "kiln/tensor/nn/interpolate.h"
#include "kiln/tensor/nn/losses.h"
#include "kiln/tensor/shape/rearranging.h"

namespace kiln::nn {

using detail::repr;
namespace F = functional;

namespace {

Shape shape_of(const std::vector<int64_t>& sizes) { return Shape(std::span<const int64_t>(sizes)); }

// "scale_factor=2.0" or "size=(4, 4)", and the mode.
std::string repr_of(const std::optional<SizeNd>& size, const std::vector<double>& factors,
                    const std::string& mode) {
  std::string out;
  if (factors.size() == 1) {
    out = "scale_factor=" + repr(factors[0]);
  } else if (!factors.empty()) {
    out = "scale_factor=(";
    for (size_t i = 0; i < factors.size(); ++i) out += (i > 0 ? ", " : "") + repr(factors[i]);
    out += ")";
  } else {
    out = "size=" + (size ? repr(*size) : "None");
  }
  return out + ", mode='" + mode + "'";
}

Tensor resize(const Tensor& x, const std::optional<SizeNd>& size,
              const std::vector<double>& factors, const std::string& mode,
              std::optional<bool> align_corners, bool recompute = false) {
  F::InterpolateOptions options;
  if (size) options.size = size->values();
  options.scale_factor = factors;
  options.mode = mode;
  options.align_corners = align_corners;
  options.recompute_scale_factor = recompute;
  return F::interpolate(x, options);
}

}  // namespace

Tensor Unflatten::forward(const Tensor& x) const {
  return unflatten(x, config_.dim, shape_of(config_.unflattened_size));
}
std::string Unflatten::extra_repr() const {
  return concat("dim=", config_.dim.value(),
                ", unflattened_size=", repr(shape_of(config_.unflattened_size)));
}

Tensor PixelShuffle::forward(const Tensor& x) const {
  return F::pixel_shuffle(x, config_.upscale_factor);
}
std::string PixelShuffle::extra_repr() const {
  return concat("upscale_factor=", config_.upscale_factor.value());
}
Tensor PixelUnshuffle::forward(const Tensor& x) const {
  return F::pixel_unshuffle(x, config_.downscale_factor);
}
std::string PixelUnshuffle::extra_repr() const {
  return concat("downscale_factor=", config_.downscale_factor.value());
}
Tensor ChannelShuffle::forward(const Tensor& x) const {
  return F::channel_shuffle(x, config_.groups);
}
std::string ChannelShuffle::extra_repr() const { return concat("groups=", config_.groups.value()); }

Tensor Unfold::forward(const Tensor& x) const {
  return F::unfold(x, config_.kernel_size.value().sizes(), config_.dilation.sizes(),
                   config_.padding.sizes(), config_.stride.sizes());
}
std::string Unfold::extra_repr() const {
  return concat("kernel_size=", repr(config_.kernel_size.value()),
                ", dilation=", repr(config_.dilation), ", padding=", repr(config_.padding),
                ", stride=", repr(config_.stride));
}
Tensor Fold::forward(const Tensor& x) const {
  return F::fold(x, config_.output_size.value().sizes(), config_.kernel_size.value().sizes(),
                 config_.dilation.sizes(), config_.padding.sizes(), config_.stride.sizes());
}
std::string Fold::extra_repr() const {
  return concat("output_size=", repr(config_.output_size.value()),
                ", kernel_size=", repr(config_.kernel_size.value()),
                ", dilation=", repr(config_.dilation), ", padding=", repr(config_.padding),
                ", stride=", repr(config_.stride));
}

Tensor Upsample::forward(const Tensor& x) const {
  return resize(x, config_.size, config_.scale_factor, config_.mode, config_.align_corners,
                config_.recompute_scale_factor.value_or(false));
}
std::string Upsample::extra_repr() const {
  return repr_of(config_.size, config_.scale_factor, config_.mode);
}
Tensor UpsamplingNearest2d::forward(const Tensor& x) const {
  return resize(x, config_.size, config_.scale_factor, "nearest", {});
}
std::string UpsamplingNearest2d::extra_repr() const {
  return repr_of(config_.size, config_.scale_factor, "nearest");
}
Tensor UpsamplingBilinear2d::forward(const Tensor& x) const {
  return resize(x, config_.size, config_.scale_factor, "bilinear", true);
}
std::string UpsamplingBilinear2d::extra_repr() const {
  return repr_of(config_.size, config_.scale_factor, "bilinear");
}

Tensor CosineSimilarity::forward(const Tensor& x1, const Tensor& x2) const {
  return F::cosine_similarity(x1, x2, config_.dim, config_.eps);
}
Tensor PairwiseDistance::forward(const Tensor& x1, const Tensor& x2) const {
  return F::pairwise_distance(x1, x2, config_.p, config_.eps, config_.keepdim);
}

KILN_MODULE_DEFINED(Unflatten)
KILN_MODULE_DEFINED(PixelShuffle)
KILN_MODULE_DEFINED(PixelUnshuffle)
KILN_MODULE_DEFINED(ChannelShuffle)
KILN_MODULE_DEFINED(Unfold)
KILN_MODULE_DEFINED(Fold)
KILN_MODULE_DEFINED(Upsample)
KILN_MODULE_DEFINED(UpsamplingNearest2d)
KILN_MODULE_DEFINED(UpsamplingBilinear2d)
KILN_MODULE_DEFINED(CosineSimilarity)
KILN_MODULE_DEFINED(PairwiseDistance)

KILN_MODULE_DEFINED(Identity)
KILN_MODULE_DEFINED(Flatten)

}  // namespace kiln::nn
