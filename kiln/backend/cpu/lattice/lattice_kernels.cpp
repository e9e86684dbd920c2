#include "kiln/backend/cpu/lattice/lattice_kernels.h"

#include "kiln/backend/cpu/kernel_table.h"

// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kiln/backend/cpu/lattice/lattice_kernels.cpp"
#include <hwy/foreach_target.h>
#include "kiln/backend/cpu/math/double_math-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace kiln::cpu::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

using LatticeTag = hn::CappedTag<double, kLatticeVector>;

void lattice_step(const double* a, const double* b, const double* c, const double* skip,
                  const double* add, double* out, int64_t count) {
  const LatticeTag d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t i = 0; i < count; i += lanes) {
    const auto x = hn::LoadU(d, a + i);
    const auto y = hn::LoadU(d, b + i);
    const auto z = hn::Add(hn::LoadU(d, c + i), hn::LoadU(d, skip + i));
    const auto most = hn::Max(hn::Max(x, y), z);
    const auto sum = hn::Add(hn::Add(dbl::exp(d, hn::Sub(x, most)), dbl::exp(d, hn::Sub(y, most))),
                             dbl::exp(d, hn::Sub(z, most)));
    hn::StoreU(hn::Add(hn::Add(most, dbl::log(d, sum)), hn::LoadU(d, add + i)), d, out + i);
  }
}

void lattice_weights(const double* a, const double* b, double shift, double* out, int64_t count) {
  const LatticeTag d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto more = hn::Set(d, shift);
  for (int64_t i = 0; i < count; i += lanes) {
    const auto sum = hn::Add(hn::LoadU(d, a + i), hn::LoadU(d, b + i));
    hn::StoreU(dbl::exp(d, hn::Add(sum, more)), d, out + i);
  }
}

const LatticeKernels* lattice_table() {
  static constexpr LatticeKernels table = {&lattice_step, &lattice_weights};
  return &table;
}

}  // namespace
}  // namespace kiln::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kiln::cpu {
KILN_KERNEL_TABLE(LatticeKernels, lattice_kernels, lattice_table)
}  // namespace kiln::cpu
#endif
