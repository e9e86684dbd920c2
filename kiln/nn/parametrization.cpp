#include "kiln/nn/parametrization.h"

#include <list>
#include <mutex>
#include <thread>

#include "kiln/core/error.h"
#include "kiln/tensor/autograd/grad_mode.h"
#include "kiln/tensor/nn/convolution.h"

namespace kiln::nn {

struct Parametrization::Held::Slots {
  std::mutex mutex;
  std::list<std::pair<std::thread::id, Tensor>> values;  // a list: references stay good
};

Parametrization::Held::Held() : slots_(std::make_unique<Slots>()) {}
Parametrization::Held::~Held() = default;

const Tensor& Parametrization::Held::put(Tensor value) const {
  const auto self = std::this_thread::get_id();
  const std::lock_guard guard(slots_->mutex);
  for (auto& [thread, held] : slots_->values) {
    if (thread == self) return held = std::move(value);
  }
  return slots_->values.emplace_back(self, std::move(value)).second;
}

const Tensor& Parametrization::held_value() const { return held_.put(value()); }

Tensor Parametrization::linear(TensorArg x, const Tensor& bias) const {
  return functional::linear(x, value(), bias);
}

Tensor Parametrization::conv2d(TensorArg x, const Tensor& bias, const ConvOptions& options) const {
  return detail::conv2d_with(x, value(), bias, options);
}

void Parametrization::visit_as(MemberVisitor& visitor, std::string_view name) {
  visitor.module(std::string(name) + "_" + suffix(), *this);
}

std::unique_ptr<ParamSource<Tensor>> Parametrization::clone_source() const {
  std::unique_ptr<Module> copy = clone_module();
  // clone_module() gives an object of this very class.
  return std::unique_ptr<ParamSource<Tensor>>(dynamic_cast<Parametrization*>(copy.release()));
}

Parametrization* parametrization(const Param<Tensor>& param) {
  return dynamic_cast<Parametrization*>(param.source());
}

void unparametrize(Param<Tensor>& param, bool requires_grad) {
  if (!param.is_computed()) {
    throw_error<ValueError>("unparametrize: the parameter is an ordinary one; got ",
                            to_string(param.id()),
                            "; expected one that parametrize() was called on");
  }
  NoGradGuard no_grad;
  Tensor value = param.val().detach();
  if (requires_grad && value.is_floating_point()) value.requires_grad_();
  param.replace(std::move(value));
}

namespace detail {

void visit_computed(MemberVisitor& visitor, std::string_view name, Param<Tensor>& param) {
  if (Parametrization* source = parametrization(param)) source->visit_as(visitor, name);
}

Tensor computed_linear(const Param<Tensor>& weight, TensorArg x, const Tensor& bias) {
  const Parametrization* source = parametrization(weight);
  return source != nullptr ? source->linear(x, bias) : functional::linear(x, weight.val(), bias);
}

Tensor conv2d_with(TensorArg x, const Tensor& weight, const Tensor& bias,
                   const ConvOptions& options) {
  return functional::conv2d(x, weight, bias, options.stride, Sizes(options.padding),
                            options.dilation, options.groups);
}

Tensor computed_conv2d(const Param<Tensor>& weight, TensorArg x, const Tensor& bias,
                       const ConvOptions& options) {
  const Parametrization* source = parametrization(weight);
  return source != nullptr ? source->conv2d(x, bias, options)
                           : conv2d_with(x, weight.val(), bias, options);
}

}  // namespace detail
}  // namespace kiln::nn
