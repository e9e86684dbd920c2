#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kiln/backend/cpu/optim/optimizer_kernels.cpp"
#include <hwy/foreach_target.h>
// Highway's order: the above includes this file once for each target.
#include <hwy/highway.h>

#include "kiln/backend/cpu/kernel_table.h"
#include "kiln/backend/cpu/optim/optimizer_kernels.h"
#include "kiln/backend/cpu/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kiln::cpu::HWY_NAMESPACE {
namespace {

template <class T>
void sgd(T* p, const T* g, T* buffer, const SgdStep& step, int64_t n) {
  const hn::ScalableTag<T> d;
  const auto lr = hn::Set(d, static_cast<T>(step.lr));
  const auto decay = hn::Set(d, static_cast<T>(step.weight_decay));
  const auto momentum = hn::Set(d, static_cast<T>(step.momentum));
  const auto share = hn::Set(d, static_cast<T>(1.0 - step.dampening));
  const bool decays = step.weight_decay != 0.0;
  for_each_vector(d, n, [&](int64_t i, auto io) HWY_ATTR {
    const auto pv = io.load(p + i);
    auto gv = io.load(g + i);
    if (decays) gv = hn::MulAdd(decay, pv, gv);
    if (buffer != nullptr) {
      const auto b =
          step.first_step ? gv : hn::MulAdd(momentum, io.load(buffer + i), hn::Mul(share, gv));
      io.store(b, buffer + i);
      gv = step.nesterov ? hn::MulAdd(momentum, b, gv) : b;
    }
    io.store(hn::NegMulAdd(lr, gv, pv), p + i);
  });
}

template <class T>
void adam(T* p, const T* g, T* m, T* v, T* largest, const AdamStep& step,
          const AdamCorrections& corrections, int64_t n) {
  const hn::ScalableTag<T> d;
  const auto beta1 = hn::Set(d, static_cast<T>(step.beta1));
  const auto beta2 = hn::Set(d, static_cast<T>(step.beta2));
  const auto rest1 = hn::Set(d, static_cast<T>(1.0 - step.beta1));
  const auto rest2 = hn::Set(d, static_cast<T>(1.0 - step.beta2));
  const auto rate = hn::Set(d, static_cast<T>(step.lr / corrections.first));
  const auto inverse2 = hn::Set(d, static_cast<T>(1.0 / corrections.second));
  const auto eps = hn::Set(d, static_cast<T>(step.eps));
  const auto shrink = hn::Set(d, static_cast<T>(1.0 - step.lr * step.weight_decay));
  const auto decay = hn::Set(d, static_cast<T>(step.weight_decay));
  const bool decays = step.weight_decay != 0.0;
  for_each_vector(d, n, [&](int64_t i, auto io) HWY_ATTR {
    auto pv = io.load(p + i);
    auto gv = io.load(g + i);
    if (decays) {
      if (step.decoupled) {
        pv = hn::Mul(pv, shrink);
      } else {
        gv = hn::MulAdd(decay, pv, gv);
      }
    }
    const auto mv = hn::MulAdd(beta1, io.load(m + i), hn::Mul(rest1, gv));
    auto vv = hn::MulAdd(beta2, io.load(v + i), hn::Mul(rest2, hn::Mul(gv, gv)));
    io.store(mv, m + i);
    io.store(vv, v + i);
    if (largest != nullptr) {
      const auto before = io.load(largest + i);
      // NaN in either stays, as in float_maximum.
      vv = hn::IfThenElse(hn::Or(hn::Gt(before, vv), hn::Ne(before, before)), before, vv);
      io.store(vv, largest + i);
    }
    const auto root = hn::Add(hn::Sqrt(hn::Mul(vv, inverse2)), eps);
    io.store(hn::Sub(pv, hn::Div(hn::Mul(rate, mv), root)), p + i);
  });
}

template <class T>
constexpr OptimizerKernels<T> kOptimizerKernels = {&sgd<T>, &adam<T>};

const OptimizerKernels<float>* optimizer_f32() { return &kOptimizerKernels<float>; }
const OptimizerKernels<double>* optimizer_f64() { return &kOptimizerKernels<double>; }

}  // namespace
}  // namespace kiln::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kiln::cpu {

HWY_EXPORT(optimizer_f32);
HWY_EXPORT(optimizer_f64);

template <>
const OptimizerKernels<float>& optimizer_kernels<float>() {
  static constinit KernelTable<OptimizerKernels<float>> table(
      [] { return HWY_DYNAMIC_DISPATCH(optimizer_f32)(); });
  return table.get();
}

template <>
const OptimizerKernels<double>& optimizer_kernels<double>() {
  static constinit KernelTable<OptimizerKernels<double>> table(
      [] { return HWY_DYNAMIC_DISPATCH(optimizer_f64)(); });
  return table.get();
}

}  // namespace kiln::cpu
#endif
