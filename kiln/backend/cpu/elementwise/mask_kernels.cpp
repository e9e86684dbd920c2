#include "kiln/backend/cpu/elementwise/mask_kernels.h"

#include "kiln/backend/cpu/kernel_table.h"

// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kiln/backend/cpu/elementwise/mask_kernels.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace kiln::cpu::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

template <class D, class U = hn::TFromD<D>>
HWY_INLINE hn::Vec<D> load_or_set(D d, const U* x, bool is_scalar, int64_t i) {
  return is_scalar ? hn::Set(d, x[0]) : hn::LoadU(d, x + i);
}

template <class U>
void choose(const KernelArgs& args) {
  const auto* x = static_cast<const U*>(args.in[0]);
  const auto* mask = static_cast<const uint8_t*>(args.in[1]);
  const auto* value = static_cast<const U*>(args.in[2]);
  auto* out = static_cast<U*>(args.out);
  const bool scalar_x = (args.scalars & 1) != 0, scalar_mask = (args.scalars & 2) != 0,
             scalar_value = (args.scalars & 4) != 0;
  const hn::ScalableTag<U> d;
  const hn::Rebind<uint8_t, decltype(d)> d8;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  if (!scalar_mask) {
    for (; i + lanes <= args.n; i += lanes) {
      const auto bytes = hn::LoadU(d8, mask + i);
      hn::Vec<decltype(d)> wide;
      if constexpr (sizeof(U) == 1) {
        wide = bytes;
      } else if constexpr (sizeof(U) == 8) {
        wide = hn::PromoteTo(d, hn::PromoteTo(hn::Rebind<uint32_t, decltype(d)>(), bytes));
      } else {
        wide = hn::PromoteTo(d, bytes);
      }
      const auto chosen = hn::Ne(wide, hn::Zero(d));
      hn::StoreU(hn::IfThenElse(chosen, load_or_set(d, value, scalar_value, i),
                                load_or_set(d, x, scalar_x, i)),
                 d, out + i);
    }
  }
  for (; i < args.n; ++i) {
    const U chosen = value[scalar_value ? 0 : i], other = x[scalar_x ? 0 : i];
    out[i] = mask[scalar_mask ? 0 : i] != 0 ? chosen : other;
  }
}

const MaskKernels* mask_table() {
  static constexpr MaskKernels table = {
      {choose<uint8_t>, choose<uint16_t>, choose<uint32_t>, choose<uint64_t>}};
  return &table;
}

}  // namespace
}  // namespace kiln::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kiln::cpu {
KILN_KERNEL_TABLE(MaskKernels, mask_kernels, mask_table)
}  // namespace kiln::cpu
#endif
