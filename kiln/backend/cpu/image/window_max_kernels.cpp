#include "kiln/backend/cpu/image/window_max_kernels.h"

#include "kiln/backend/cpu/kernel_table.h"

// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kiln/backend/cpu/image/window_max_kernels.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kiln/backend/cpu/masked-inl.h"
// clang-format on

#ifndef KILN_BACKEND_CPU_WINDOW_MAX_TABLE
#define KILN_BACKEND_CPU_WINDOW_MAX_TABLE
namespace kiln::cpu {
struct WindowMaxTable {
  WindowMax<float> f32;
  WindowMax<double> f64;
};
}  // namespace kiln::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace kiln::cpu::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

// First the largest value, then the first place where it stands.
template <class T>
int64_t find(const T* x, int64_t rows, int64_t step, int64_t width) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto lowest = hn::Neg(hn::Inf(d));
  const auto tail = hn::FirstN(d, static_cast<size_t>(width % lanes));
  auto best = lowest;
  auto any_nan = hn::IsNaN(best);
  for (int64_t r = 0; r < rows; ++r) {
    const T* row = x + r * step;
    int64_t i = 0;
    for (; i + lanes <= width; i += lanes) {
      const auto v = hn::LoadU(d, row + i);
      any_nan = hn::Or(any_nan, hn::IsNaN(v));
      best = hn::Max(best, v);
    }
    if (i < width) {
      const auto v = hn::IfThenElse(tail, masked_load(tail, d, row + i), lowest);
      any_nan = hn::Or(any_nan, hn::IsNaN(v));
      best = hn::Max(best, v);
    }
  }
  const bool is_nan = !hn::AllFalse(d, any_nan);
  const auto wanted = hn::Set(d, hn::GetLane(hn::MaxOfLanes(d, best)));
  for (int64_t r = 0; r < rows; ++r) {
    const T* row = x + r * step;
    for (int64_t i = 0; i < width; i += lanes) {
      const bool whole = i + lanes <= width;
      const auto v = whole ? hn::LoadU(d, row + i) : masked_load(tail, d, row + i);
      auto hit = is_nan ? hn::IsNaN(v) : hn::Eq(v, wanted);
      if (!whole) hit = hn::And(hit, tail);
      const auto lane = hn::FindFirstTrue(d, hit);
      if (lane >= 0) return r * step + i + lane;
    }
  }
  return 0;
}

const WindowMaxTable* window_max_table() {
  static constexpr WindowMaxTable table = {find<float>, find<double>};
  return &table;
}

}  // namespace
}  // namespace kiln::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kiln::cpu {
namespace {
KILN_KERNEL_TABLE(WindowMaxTable, window_max_tables, window_max_table)
}  // namespace
template <>
WindowMax<float> window_max<float>() {
  return window_max_tables().f32;
}
template <>
WindowMax<double> window_max<double>() {
  return window_max_tables().f64;
}
}  // namespace kiln::cpu
#endif
