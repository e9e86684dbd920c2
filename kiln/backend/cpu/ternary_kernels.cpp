#include "kiln/backend/cpu/function_kernels.h"
#include "kiln/backend/cpu/kernel_table.h"

// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kiln/backend/cpu/ternary_kernels.cpp"
#include <hwy/foreach_target.h>
#include "kiln/backend/cpu/loops-inl.h"
// clang-format on

#ifndef KILN_BACKEND_CPU_TERNARY_TABLE
#define KILN_BACKEND_CPU_TERNARY_TABLE
namespace kiln::cpu {
struct TernaryKernels {
  Kernel kernels[static_cast<int>(TernaryFunction::Type::count)][2];  // float, double
};
}  // namespace kiln::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace kiln::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class Op, class T>
void ternary(const KernelArgs& args) {
  const hn::ScalableTag<T> d;
  using D = decltype(d);
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const T value = *static_cast<const T*>(args.params);
  T* out = static_cast<T*>(args.out);
  if (args.n == 0) return;
  const T* const px = static_cast<const T*>(args.in[0]);
  const T* const py = static_cast<const T*>(args.in[1]);
  const T* const pz = static_cast<const T*>(args.in[2]);
  const bool one_x = (args.scalars & 1) != 0;
  const bool one_y = (args.scalars & 2) != 0;
  const bool one_z = (args.scalars & 4) != 0;
  const auto x0 = hn::Set(d, px[0]);
  const auto y0 = hn::Set(d, py[0]);
  const auto z0 = hn::Set(d, pz[0]);
  int64_t i = 0;
  for (; i + lanes <= args.n; i += lanes) {
    const auto x = one_x ? x0 : hn::LoadU(d, px + i);
    const auto y = one_y ? y0 : hn::LoadU(d, py + i);
    const auto z = one_z ? z0 : hn::LoadU(d, pz + i);
    const auto w = Op::template run<D>(d, x, y, z, value);
    if (args.stream) {
      hn::Stream(w, d, out + i);
    } else {
      hn::StoreU(w, d, out + i);
    }
  }
  if (args.stream) hwy::FlushStream();
  if (i < args.n) {
    const int64_t left = args.n - i;
    const auto x = one_x ? x0 : loops::load_tail(d, px + i, left);
    const auto y = one_y ? y0 : loops::load_tail(d, py + i, left);
    const auto z = one_z ? z0 : loops::load_tail(d, pz + i, left);
    loops::store_tail(Op::template run<D>(d, x, y, z, value), d, out + i, left);
  }
}

#define KILN_TERNARY(Name, ...)                                                                \
  template <class T>                                                                           \
  struct Name {                                                                                \
    template <class D>                                                                         \
    static HWY_INLINE hn::Vec<D> run(D d, hn::Vec<D> x, hn::Vec<D> y, hn::Vec<D> z, T value) { \
      (void)d;                                                                                 \
      (void)value;                                                                             \
      __VA_ARGS__                                                                              \
    }                                                                                          \
  };

// From the nearer end, so that both ends are exact.
KILN_TERNARY(LerpOp, {
  const auto distance = hn::Sub(y, x);
  const auto near = hn::Lt(hn::Abs(z), hn::Set(d, T(0.5)));
  return hn::IfThenElse(near, hn::MulAdd(z, distance, x),
                        hn::NegMulAdd(distance, hn::Sub(hn::Set(d, T(1)), z), y));
})
KILN_TERNARY(AddcmulOp, { return hn::MulAdd(hn::Mul(hn::Set(d, value), y), z, x); })
KILN_TERNARY(AddcdivOp, { return hn::Add(x, hn::Div(hn::Mul(hn::Set(d, value), y), z)); })
// Comparisons with NaN are false: a NaN among the bounds must win by itself.
KILN_TERNARY(ClampOp, {
  const auto raised = hn::IfThenElse(hn::Or(hn::Gt(x, y), hn::IsNaN(x)), x, y);
  return hn::IfThenElse(hn::Or(hn::Lt(raised, z), hn::IsNaN(raised)), raised, z);
})
#undef KILN_TERNARY

#define KILN_ROW(Op) \
  { ternary<Op<float>, float>, ternary<Op<double>, double> }

const TernaryKernels* ternary_table() {
  static constexpr TernaryKernels table = {
      {KILN_ROW(LerpOp), KILN_ROW(AddcmulOp), KILN_ROW(AddcdivOp), KILN_ROW(ClampOp)}};
  return &table;
}
#undef KILN_ROW

}  // namespace kiln::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kiln::cpu {
HWY_EXPORT(ternary_table);
Kernel function_kernel(TernaryFunction::Type type, bool is_double) {
  static constinit KernelTable<TernaryKernels> table(
      [] { return HWY_DYNAMIC_DISPATCH(ternary_table)(); });
  return table.get().kernels[static_cast<int>(type)][is_double];
}
}  // namespace kiln::cpu
#endif
