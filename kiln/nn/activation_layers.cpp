#include "kiln/nn/activation_layers.h"

#include "kiln/core/error.h"
#include "kiln/nn/in_place.h"
#include "kiln/nn/relu.h"
#include "kiln/nn/repr.h"
#include "kiln/nn/sigmoid.h"
#include "kiln/nn/silu.h"
#include "kiln/nn/tanh.h"
#include "kiln/tensor/nn/activations.h"
#include "kiln/tensor/nn/activations_in_place.h"

namespace kiln::nn {

using detail::in_place;
using detail::repr;
namespace F = functional;

namespace {
const char* inplace_text(bool inplace) { return inplace ? ", inplace=True" : ""; }
const char* only_inplace(bool inplace) { return inplace ? "inplace=True" : ""; }
}  // namespace

Hardtanh::Hardtanh(HardtanhConfig config) : Layer(config) {
  const Real low = config_.min_val, high = config_.max_val;
  if (!(double(low) < double(high))) {
    throw_error<ValueError>("Hardtanh: max_val must be greater than min_val; got min_val ",
                            repr(low), " and max_val ", repr(high));
  }
}

Tensor ELU::forward(const Tensor& x) const {
  return in_place(
      config_.inplace, x, [&](const Tensor& y) { return F::elu(y, config_.alpha); },
      [&](Tensor& y) { F::elu_(y, config_.alpha); });
}
Tensor CELU::forward(const Tensor& x) const {
  return in_place(
      config_.inplace, x, [&](const Tensor& y) { return F::celu(y, config_.alpha); },
      [&](Tensor& y) { F::celu_(y, config_.alpha); });
}
Tensor SELU::forward(const Tensor& x) const {
  return in_place(
      config_.inplace, x, [&](const Tensor& y) { return F::selu(y); },
      [&](Tensor& y) { F::selu_(y); });
}
Tensor Mish::forward(const Tensor& x) const {
  return in_place(config_.inplace, x, [&](const Tensor& y) { return F::mish(y); });
}
Tensor ReLU6::forward(const Tensor& x) const {
  return in_place(
      config_.inplace, x, [&](const Tensor& y) { return F::relu6(y); },
      [&](Tensor& y) { F::relu6_(y); });
}
Tensor Hardsigmoid::forward(const Tensor& x) const {
  return in_place(
      config_.inplace, x, [](const Tensor& y) { return F::hardsigmoid(y); },
      [](Tensor& y) { F::hardsigmoid_(y); });
}
Tensor Hardswish::forward(const Tensor& x) const {
  return in_place(
      config_.inplace, x, [](const Tensor& y) { return F::hardswish(y); },
      [](Tensor& y) { F::hardswish_(y); });
}
Tensor Hardtanh::forward(const Tensor& x) const {
  return in_place(
      config_.inplace, x,
      [&](const Tensor& y) { return F::hardtanh(y, config_.min_val, config_.max_val); },
      [&](Tensor& y) { F::hardtanh_(y, config_.min_val, config_.max_val); });
}
Tensor LeakyReLU::forward(const Tensor& x) const {
  return in_place(
      config_.inplace, x, [&](const Tensor& y) { return F::leaky_relu(y, config_.negative_slope); },
      [&](Tensor& y) { F::leaky_relu_(y, config_.negative_slope); });
}
Tensor RReLU::forward(const Tensor& x) const {
  return in_place(config_.inplace, x, [&](const Tensor& y) {
    return F::rrelu(y, config_.lower, config_.upper, is_training());
  });
}
Tensor GLU::forward(const Tensor& x) const { return F::glu(x, config_.dim); }
Tensor Hardshrink::forward(const Tensor& x) const { return F::hardshrink(x, config_.lambd); }
Tensor Softshrink::forward(const Tensor& x) const { return F::softshrink(x, config_.lambd); }
Tensor Softmin::forward(const Tensor& x) const {
  const int64_t standard = x.dim() == 0 || x.dim() == 1 || x.dim() == 3 ? 0 : 1;
  return F::softmin(x, config_.dim.value_or(standard));
}
Tensor Softmax2d::forward(const Tensor& x) const {
  if (x.dim() != 3 && x.dim() != 4) {
    throw_error<ShapeError>("Softmax2d: expected [N, C, H, W] or [C, H, W]; got shape ", x.shape());
  }
  return x.softmax(-3);
}
Tensor Softplus::forward(const Tensor& x) const {
  return F::softplus(x, config_.beta, config_.threshold);
}
Tensor LogSigmoid::forward(const Tensor& x) const { return F::logsigmoid(x); }
Tensor Softsign::forward(const Tensor& x) const { return F::softsign(x); }
Tensor Tanhshrink::forward(const Tensor& x) const { return F::tanhshrink(x); }

std::string ELU::extra_repr() const {
  return concat("alpha=", repr(config_.alpha), inplace_text(config_.inplace));
}
std::string CELU::extra_repr() const {
  return concat("alpha=", repr(config_.alpha), inplace_text(config_.inplace));
}
std::string SELU::extra_repr() const { return only_inplace(config_.inplace); }
std::string Mish::extra_repr() const { return only_inplace(config_.inplace); }
std::string ReLU6::extra_repr() const { return only_inplace(config_.inplace); }
std::string Hardtanh::extra_repr() const {
  return concat("min_val=", repr(config_.min_val), ", max_val=", repr(config_.max_val),
                inplace_text(config_.inplace));
}
std::string LeakyReLU::extra_repr() const {
  return concat("negative_slope=", repr(config_.negative_slope), inplace_text(config_.inplace));
}
std::string RReLU::extra_repr() const {
  return concat("lower=", repr(config_.lower), ", upper=", repr(config_.upper),
                inplace_text(config_.inplace));
}
std::string GLU::extra_repr() const { return concat("dim=", config_.dim); }
std::string Hardshrink::extra_repr() const { return repr(config_.lambd); }
std::string Softshrink::extra_repr() const { return repr(config_.lambd); }
std::string Softmin::extra_repr() const {
  return concat("dim=", config_.dim ? std::to_string(*config_.dim) : "None");
}
std::string Softplus::extra_repr() const {
  return concat("beta=", repr(config_.beta), ", threshold=", repr(config_.threshold));
}

KILN_MODULE_DEFINED(ELU)
KILN_MODULE_DEFINED(CELU)
KILN_MODULE_DEFINED(SELU)
KILN_MODULE_DEFINED(Mish)
KILN_MODULE_DEFINED(ReLU6)
KILN_MODULE_DEFINED(Hardsigmoid)
KILN_MODULE_DEFINED(Hardswish)
KILN_MODULE_DEFINED(Hardtanh)
KILN_MODULE_DEFINED(LeakyReLU)
KILN_MODULE_DEFINED(RReLU)
KILN_MODULE_DEFINED(GLU)
KILN_MODULE_DEFINED(Hardshrink)
KILN_MODULE_DEFINED(Softshrink)
KILN_MODULE_DEFINED(Softmin)
KILN_MODULE_DEFINED(Softmax2d)
KILN_MODULE_DEFINED(Softplus)
KILN_MODULE_DEFINED(LogSigmoid)
KILN_MODULE_DEFINED(Softsign)
KILN_MODULE_DEFINED(Tanhshrink)

KILN_MODULE_DEFINED(ReLU)
KILN_MODULE_DEFINED(SiLU)
KILN_MODULE_DEFINED(Sigmoid)
KILN_MODULE_DEFINED(Tanh)

}  // namespace kiln::nn
