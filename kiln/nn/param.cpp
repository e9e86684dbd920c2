#include "kiln/nn/param.h"

#include <mutex>
#include <ostream>

#include "kiln/core/complex.h"
#include "kiln/tensor/autograd/grad_mode.h"
#include "kiln/tensor/creation.h"

namespace kiln::nn {

template class Param<Tensor>;

Tensor ParameterTraits<Tensor>::set_require_grad(Tensor x, bool value) {
  if (x.requires_grad() == value) return x;
  if (!x.is_leaf()) x = x.detach();
  x.requires_grad_(value);
  return x;
}

Tensor ParameterTraits<Tensor>::clone(const Tensor& x) {
  if (!x.defined()) return x;
  NoGradGuard no_grad;
  Tensor out = detail::ShareOnCopy::active() ? x.detach() : x.detach().clone();
  if (x.requires_grad()) out.requires_grad_();
  return out;
}

Tensor ParameterTraits<Tensor>::to_device(Tensor x, const Device& device) {
  NoGradGuard no_grad;
  return x.to(device).detach();
}

Tensor ParameterTraits<Tensor>::as_parameter(const Tensor& x) {
  if (!x.defined()) return x;
  Tensor out = x.detach();
  if (out.is_floating_point() || is_complex(out.dtype())) out.requires_grad_();
  return out;
}

void ParameterTraits<Tensor>::take_values(Tensor& x, const Tensor& from) {
  NoGradGuard no_grad;
  x.copy_(from.detach());
}

void ParameterTraits<Tensor>::cast(Tensor& x, DType dtype) {
  if (x.dtype() == dtype) return;
  NoGradGuard no_grad;
  const bool wanted = x.requires_grad();
  x = x.detach().to(dtype);
  if (wanted) x.requires_grad_();
}

const Tensor& ParameterTraits<Tensor>::none() {
  static const Tensor undefined;
  return undefined;
}

namespace detail {

namespace {
constinit thread_local bool sharing = false;
}  // namespace

ShareOnCopy::ShareOnCopy() : before_(sharing) { sharing = true; }
ShareOnCopy::~ShareOnCopy() { sharing = before_; }
bool ShareOnCopy::active() { return sharing; }

// Recursive, so that a function that reads its own parameter gets an error instead of a deadlock.
struct InitLock::Impl {
  std::recursive_mutex mutex;
  bool running = false;  // guarded by the mutex
};

InitLock::InitLock() : impl_(std::make_unique<Impl>()) {}
InitLock::~InitLock() = default;
void InitLock::lock() { impl_->mutex.lock(); }
void InitLock::unlock() { impl_->mutex.unlock(); }

void InitLock::begin() {
  if (impl_->running) {
    throw_error<ValueError>("Param: an initializer reads the parameter that it is to make");
  }
  impl_->running = true;
}

void InitLock::end() { impl_->running = false; }

void throw_no_parameter() {
  throw_error<ValueError>("Param: there is no value; it was constructed without one or moved from");
}

}  // namespace detail

std::string to_string(const Param<Tensor>& param) {
  if (param.is_initialized()) return "Parameter containing:\n" + to_string(param.get());
  if (!param.defined()) return "None";
  if (param.is_computed()) {
    return concat("Computed parameter of shape ", param.lazy_shape(), " on ", param.lazy_device());
  }
  return concat("Uninitialized parameter of shape ", param.lazy_shape(), " on ",
                param.lazy_device());
}

std::ostream& operator<<(std::ostream& out, const Param<Tensor>& param) {
  return out << to_string(param);
}

Param<Tensor> parameter(const Shape& shape, std::function<void(Tensor&)> fill,
                        const ParamOptions& options) {
  checked_numel("parameter", shape);
  const DType dtype = options.dtype.value_or(default_dtype());
  if (options.initializer && shape.rank() >= 2) fill = options.initializer;
  auto init = [shape, dtype, fill = std::move(fill)](const Device& device, bool require_grad) {
    NoGradGuard no_grad;
    Tensor value = empty(shape, {.dtype = dtype, .device = device});
    fill(value);
    if (require_grad) value.requires_grad_();
    return value;
  };
  return Param<Tensor>::uninitialized(ParamId(), std::move(init), options.device,
                                      options.requires_grad, shape, dtype);
}

void tie_weights(Param<Tensor>& param, const Param<Tensor>& with) {
  const auto check = [](const Param<Tensor>& p) {
    if (p.defined() && !p.is_computed()) return;
    throw_error<ValueError>(
        "tie_weights: only parameters with values of their own can be tied; got ", to_string(p));
  };
  check(param);
  check(with);
  if (!(param.lazy_shape() == with.lazy_shape())) {
    throw_error<ShapeError>("tie_weights: the shapes differ; got ", param.lazy_shape(), " and ",
                            with.lazy_shape());
  }
  param.replace(with.get());
}

void refill(Param<Tensor>& param, const std::function<void(Tensor&)>& fill) {
  if (!param.is_initialized() || !param->defined()) return;
  NoGradGuard no_grad;
  fill(*param);
}

}  // namespace kiln::nn
