#include "kiln/nn/padding_layers.h"

#include <string_view>

#include "kiln/core/error.h"
#include "kiln/nn/repr.h"
#include "kiln/tensor/nn/padding.h"

namespace kiln::nn {
namespace {

// As PyTorch's layers keep and print it.
void expand(const char* name, int dims, Required<SizeNd>& padding) {
  padding = padding.value().expanded(2 * dims, concat(name, ": padding"));
}

}  // namespace

PadLayer::PadLayer(const char* name, int dims, const char* mode, const PadConfig& config)
    : Layer(config), name_(name), dims_(dims), mode_(mode) {
  expand(name, dims, config_.padding);
}

Tensor PadLayer::forward(const Tensor& x) const {
  const int64_t rank = x.dim();
  if (std::string_view(mode_) != "constant" && rank != dims_ + 1 && rank != dims_ + 2) {
    throw_error<ShapeError>(name_, ": expected ", dims_ + 1, " or ", dims_ + 2, " dims; got shape ",
                            x.shape());
  }
  return functional::pad(x, config_.padding.value().values(), mode_);
}

std::string PadLayer::extra_repr() const { return detail::repr(config_.padding.value().values()); }

ConstantPadLayer::ConstantPadLayer(const char* name, int dims, const ConstantPadConfig& config)
    : Layer(config) {
  expand(name, dims, config_.padding);
}

Tensor ConstantPadLayer::forward(const Tensor& x) const {
  return functional::pad(x, config_.padding.value().values(), "constant", config_.value.value());
}

std::string ConstantPadLayer::extra_repr() const {
  return concat("padding=", detail::repr(config_.padding.value().values()),
                ", value=", detail::repr(config_.value.value()));
}

KILN_MODULE_DEFINED(ConstantPad1d)
KILN_MODULE_DEFINED(ConstantPad2d)
KILN_MODULE_DEFINED(ConstantPad3d)
KILN_MODULE_DEFINED(ZeroPad1d)
KILN_MODULE_DEFINED(ZeroPad2d)
KILN_MODULE_DEFINED(ZeroPad3d)
KILN_MODULE_DEFINED(ReflectionPad1d)
KILN_MODULE_DEFINED(ReflectionPad2d)
KILN_MODULE_DEFINED(ReflectionPad3d)
KILN_MODULE_DEFINED(ReplicationPad1d)
KILN_MODULE_DEFINED(ReplicationPad2d)
KILN_MODULE_DEFINED(ReplicationPad3d)
KILN_MODULE_DEFINED(CircularPad1d)
KILN_MODULE_DEFINED(CircularPad2d)
KILN_MODULE_DEFINED(CircularPad3d)

}  // namespace kiln::nn
