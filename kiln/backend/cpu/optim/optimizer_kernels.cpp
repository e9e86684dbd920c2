#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kiln/backend/cpu/optim/optimizer_kernels.cpp"
#include <hwy/foreach_target.h>
// Highway's order: the above includes this file once for each target.
#include <cmath>
#include <type_traits>

#include <hwy/highway.h>

#include "kiln/backend/cpu/kernel_table.h"
#include "kiln/backend/cpu/optim/formula_vectors-inl.h"
#include "kiln/backend/cpu/optim/optimizer_kernels.h"
#include "kiln/backend/cpu/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kiln::cpu::HWY_NAMESPACE {
namespace {

template <class T, class Step>
void run(T* p, const T* g, const Slots<T>& slots, const Step& step, int64_t n) {
  const hn::ScalableTag<T> d;
  const Formula<Step> formula(step);
  // One by one: Clang 16 captures no structured bindings beside OpenMP.
  T *s0 = slots[0], *s1 = slots[1], *s2 = slots[2], *s3 = slots[3];
  if constexpr (std::is_same_v<Step, SgdStep>) {
    if (step.slots() == 0 && step.weight_decay == 0.0) {
      // The compiler sees that nothing but the last line of the formula is left.
      const Formula<SgdStep> plain(SgdStep{.lr = step.lr});
      for_each_vector(d, n, [&](int64_t i, auto io) HWY_ATTR {
        auto pv = io.load(p + i), none = pv;
        plain(pv, io.load(g + i), none, none, none, none);
        io.store(pv, p + i);
      });
      return;
    }
  }
  for_each_vector(d, n, [&](int64_t i, auto io) HWY_ATTR {
    auto pv = io.load(p + i);
    auto v0 = s0 == nullptr ? pv : io.load(s0 + i);
    auto v1 = s1 == nullptr ? pv : io.load(s1 + i);
    auto v2 = s2 == nullptr ? pv : io.load(s2 + i);
    auto v3 = s3 == nullptr ? pv : io.load(s3 + i);
    formula(pv, io.load(g + i), v0, v1, v2, v3);
    if (s0 != nullptr) io.store(v0, s0 + i);
    if (s1 != nullptr) io.store(v1, s1 + i);
    if (s2 != nullptr) io.store(v2, s2 + i);
    if (s3 != nullptr) io.store(v3, s3 + i);
    io.store(pv, p + i);
  });
}

template <class T>
void optimizer_step(T* p, const T* g, const Slots<T>& slots, const OptimizerStep& step, int64_t n) {
  std::visit([&](const auto& rule) { run<T>(p, g, slots, rule, n); }, step);
}

template <class T>
constexpr OptimizerKernels<T> kOptimizerKernels = {&optimizer_step<T>};

const OptimizerKernels<float>* optimizer_f32() { return &kOptimizerKernels<float>; }
const OptimizerKernels<double>* optimizer_f64() { return &kOptimizerKernels<double>; }

}  // namespace
}  // namespace kiln::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kiln::cpu {
KILN_KERNEL_TABLE_OF(float, OptimizerKernels, optimizer_kernels, optimizer_f32)
KILN_KERNEL_TABLE_OF(double, OptimizerKernels, optimizer_kernels, optimizer_f64)
}  // namespace kiln::cpu
#endif
