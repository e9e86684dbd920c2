// Parametrization: a module that computes another module's parameter, in the way of PyTorch's
// torch.nn.utils.parametrize. See Note [Computed parameters] in param.h.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "kiln/nn/module.h"
#include "kiln/tensor/ops.h"

namespace kiln::nn {

// A class of one's own says what the value is, which shape and dtype it has, and has a KILN_MODULE
// line; its parameters then train, save and move with the module that it belongs to:
//
//   struct Symmetric : kiln::nn::Parametrization {
//     explicit Symmetric(Param<Tensor> former) : base(std::move(former)) {}
//     Param<Tensor> base;
//     KILN_MODULE(Symmetric, base)
//     Tensor value() const override { return (*base + base->t()) / 2; }
//     const Param<Tensor>& like() const override { return base; }
//     std::string suffix() const override { return "symmetric"; }
//   };
//   kiln::nn::parametrize<Symmetric>(linear.weight);
//   linear(x);                      // with the symmetric weight
//   linear.state_dict();            // weight_symmetric.base, bias
//   kiln::nn::unparametrize(linear.weight);
class Parametrization : public Module, public ParamSource<Tensor> {
 public:
  // The parameter called "weight" is shown as the module "weight_<suffix>".
  virtual std::string suffix() const = 0;
  // A parameter of the shape, dtype and device of the value.
  virtual const Param<Tensor>& like() const = 0;

  // What a layer computes from the parameter; a parametrization that need not make the whole value
  // for it overrides them.
  virtual Tensor linear(TensorArg x, const Tensor& bias) const;
  virtual Tensor conv2d(TensorArg x, const Tensor& bias, const ConvOptions& options) const;
  // Shows the parts of the parameter called `name`.
  virtual void visit_as(MemberVisitor& visitor, std::string_view name);

  const Tensor& held_value() const final;
  Device device() const override { return like().lazy_device(); }
  Shape shape() const override { return like().lazy_shape(); }
  std::optional<DType> dtype() const override { return like().lazy_dtype(); }
  bool is_require_grad() const override { return like().lazy_is_require_grad(); }
  // Of all its parameters.
  void set_require_grad(bool value) override { requires_grad_(value); }
  std::unique_ptr<ParamSource<Tensor>> clone_source() const final;

 private:
  // The last value that each thread asked for by reference. A copy begins with none.
  class Held {
   public:
    Held();
    ~Held();
    Held(const Held&) : Held() {}
    Held& operator=(const Held&) { return *this; }
    const Tensor& put(Tensor value) const;

   private:
    struct Slots;
    std::unique_ptr<Slots> slots_;
  };
  Held held_;
};

// The parametrization that computes a parameter; null when none does.
Parametrization* parametrization(const Param<Tensor>& param);

// Has a P made from the parameter as it was, and `args`, compute it from now on.
template <class P, class... Args>
P& parametrize(Param<Tensor>& param, Args&&... args) {
  Param<Tensor> former = std::move(param);
  std::unique_ptr<P> made;
  try {
    made = std::make_unique<P>(std::move(former), std::forward<Args>(args)...);
  } catch (...) {
    // What the constructor threw before it took the parameter leaves it as it was.
    if (former.defined()) param = std::move(former);
    throw;
  }
  P& out = *made;
  param.compute_by(std::move(made));  // NOLINT(bugprone-use-after-move): it takes a new source
  return out;
}
// Ends it: the parameter holds, as an ordinary one, what it read as. Throws ValueError when it is
// not computed.
void unparametrize(Param<Tensor>& param, bool requires_grad = true);

namespace detail {
Tensor computed_linear(const Param<Tensor>& weight, TensorArg x, const Tensor& bias);
// conv2d with the numbers as a layer keeps them.
Tensor conv2d_with(TensorArg x, const Tensor& weight, const Tensor& bias,
                   const ConvOptions& options);
Tensor computed_conv2d(const Param<Tensor>& weight, TensorArg x, const Tensor& bias,
                       const ConvOptions& options);
}  // namespace detail
}  // namespace kiln::nn
