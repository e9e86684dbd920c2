#include "kiln/nn/pooling_layers.h"

#include "kiln/core/error.h"
#include "kiln/nn/repr.h"
#include "kiln/tensor/nn/pooling.h"

namespace kiln::nn {

using detail::repr;
namespace F = functional;

namespace {

std::optional<Sizes> sizes_of(const std::optional<SizeNd>& size) {
  return size ? std::optional<Sizes>(size->sizes()) : std::nullopt;
}

// For an op, which keeps the input's size where it is -1.
Sizes wanted_sizes(const SizeNd& size) {
  Shape out;
  for (const int64_t v : size.values()) out.push_back(v == SizeNd::kNone ? -1 : v);
  return out;
}

// Calls the op for as many dims as the layer has.
template <class One, class Two, class Three, class... A>
auto by_dims(int dims, One one, Two two, Three three, const A&... args) {
  return dims == 1 ? one(args...) : dims == 2 ? two(args...) : three(args...);
}

template <class Config>
std::string avg_repr(const Config& c) {
  return concat("kernel_size=", repr(c.kernel_size.value()), ", stride=", repr(*c.stride),
                ", padding=", repr(c.padding));
}

}  // namespace

// ---- Max

MaxPoolLayer::MaxPoolLayer(int dims, MaxPoolConfig config) : Layer(std::move(config)), dims_(dims) {
  if (!config_.stride) config_.stride = config_.kernel_size.value();
}
Tensor MaxPoolLayer::forward(const Tensor& x) const {
  return by_dims(dims_, F::max_pool1d, F::max_pool2d, F::max_pool3d, x,
                 config_.kernel_size.value().sizes(), sizes_of(config_.stride),
                 config_.padding.sizes(), config_.dilation.sizes(), config_.ceil_mode);
}
std::pair<Tensor, Tensor> MaxPoolLayer::forward_with_indices(const Tensor& x) const {
  return by_dims(dims_, F::max_pool1d_with_indices, F::max_pool2d_with_indices,
                 F::max_pool3d_with_indices, x, config_.kernel_size.value().sizes(),
                 sizes_of(config_.stride), config_.padding.sizes(), config_.dilation.sizes(),
                 config_.ceil_mode);
}
std::string MaxPoolLayer::extra_repr() const {
  return concat("kernel_size=", repr(config_.kernel_size.value()),
                ", stride=", repr(*config_.stride), ", padding=", repr(config_.padding),
                ", dilation=", repr(config_.dilation), ", ceil_mode=", repr(config_.ceil_mode));
}

// ---- Mean

AvgPool1d::AvgPool1d(AvgPool1dConfig config) : Layer(std::move(config)) {
  config_.kernel_size = config_.kernel_size.value().expanded(1, "AvgPool1d: kernel_size");
  config_.stride =
      config_.stride.value_or(config_.kernel_size.value()).expanded(1, "AvgPool1d: stride");
  config_.padding = config_.padding.expanded(1, "AvgPool1d: padding");
}
Tensor AvgPool1d::forward(const Tensor& x) const {
  return F::avg_pool1d(x, config_.kernel_size.value().sizes(), sizes_of(config_.stride),
                       config_.padding.sizes(), config_.ceil_mode, config_.count_include_pad);
}
std::string AvgPool1d::extra_repr() const { return avg_repr(config_); }

AvgPool3d::AvgPool3d(AvgPool3dConfig config) : Layer(std::move(config)) {
  if (!config_.stride) config_.stride = config_.kernel_size.value();
}
Tensor AvgPool3d::forward(const Tensor& x) const {
  return F::avg_pool3d(x, config_.kernel_size.value().sizes(), sizes_of(config_.stride),
                       config_.padding.sizes(), config_.ceil_mode, config_.count_include_pad,
                       config_.divisor_override);
}
std::string AvgPool3d::extra_repr() const { return avg_repr(config_); }

// ---- Powers

Tensor LPPoolLayer::forward(const Tensor& x) const {
  return by_dims(dims_, F::lp_pool1d, F::lp_pool2d, F::lp_pool3d, x,
                 double(config_.norm_type.value()), config_.kernel_size.value().sizes(),
                 sizes_of(config_.stride), config_.ceil_mode);
}
std::string LPPoolLayer::extra_repr() const {
  return concat("norm_type=", repr(config_.norm_type.value()),
                ", kernel_size=", repr(config_.kernel_size.value()),
                ", stride=", config_.stride ? repr(*config_.stride) : "None",
                ", ceil_mode=", repr(config_.ceil_mode));
}

// ---- Max, undone

MaxUnpoolLayer::MaxUnpoolLayer(const char* name, int dims, MaxUnpoolConfig config)
    : Layer(std::move(config)), dims_(dims) {
  const auto expand = [&](const SizeNd& size, const char* what) {
    return size.expanded(dims, concat(name, ": ", what));
  };
  config_.kernel_size = expand(config_.kernel_size, "kernel_size");
  config_.stride = expand(config_.stride.value_or(config_.kernel_size.value()), "stride");
  config_.padding = expand(config_.padding, "padding");
}
Tensor MaxUnpoolLayer::forward(const Tensor& x, const Tensor& indices,
                               const std::optional<std::vector<int64_t>>& output_size) const {
  std::optional<Shape> size;
  if (output_size) {
    std::span<const int64_t> given(*output_size);
    // All sizes are legal too; the last ones are the spatial ones.
    if (static_cast<int>(given.size()) > dims_ && static_cast<int64_t>(given.size()) == x.dim()) {
      given = given.last(static_cast<size_t>(dims_));
    }
    size = Shape(given);
  }
  return by_dims(dims_, F::max_unpool1d, F::max_unpool2d, F::max_unpool3d, x, indices,
                 config_.kernel_size.value().sizes(), sizes_of(config_.stride),
                 config_.padding.sizes(), size);
}
std::string MaxUnpoolLayer::extra_repr() const { return avg_repr(config_); }

// ---- Adaptive

Tensor AdaptiveMaxPoolLayer::forward(const Tensor& x) const {
  return by_dims(dims_, F::adaptive_max_pool1d, F::adaptive_max_pool2d, F::adaptive_max_pool3d, x,
                 wanted_sizes(config_.output_size));
}
std::pair<Tensor, Tensor> AdaptiveMaxPoolLayer::forward_with_indices(const Tensor& x) const {
  return by_dims(dims_, F::adaptive_max_pool1d_with_indices, F::adaptive_max_pool2d_with_indices,
                 F::adaptive_max_pool3d_with_indices, x, wanted_sizes(config_.output_size));
}
std::string AdaptiveMaxPoolLayer::extra_repr() const {
  return "output_size=" + repr(config_.output_size.value());
}
Tensor AdaptiveAvgPoolLayer::forward(const Tensor& x) const {
  return by_dims(dims_, F::adaptive_avg_pool1d, F::adaptive_avg_pool2d, F::adaptive_avg_pool3d, x,
                 wanted_sizes(config_.output_size));
}
std::string AdaptiveAvgPoolLayer::extra_repr() const {
  return "output_size=" + repr(config_.output_size.value());
}

KILN_MODULE_DEFINED(AvgPool1d)
KILN_MODULE_DEFINED(AvgPool3d)
KILN_MODULE_DEFINED(MaxPool1d)
KILN_MODULE_DEFINED(MaxPool3d)
KILN_MODULE_DEFINED(LPPool1d)
KILN_MODULE_DEFINED(LPPool2d)
KILN_MODULE_DEFINED(LPPool3d)
KILN_MODULE_DEFINED(MaxUnpool1d)
KILN_MODULE_DEFINED(MaxUnpool2d)
KILN_MODULE_DEFINED(MaxUnpool3d)
KILN_MODULE_DEFINED(AdaptiveMaxPool1d)
KILN_MODULE_DEFINED(AdaptiveMaxPool2d)
KILN_MODULE_DEFINED(AdaptiveMaxPool3d)
KILN_MODULE_DEFINED(AdaptiveAvgPool1d)
KILN_MODULE_DEFINED(AdaptiveAvgPool2d)
KILN_MODULE_DEFINED(AdaptiveAvgPool3d)

}  // namespace kiln::nn
