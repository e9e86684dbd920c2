#include "kiln/backend/cpu/optim/coded_kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kiln/backend/cpu/optim/coded_kernels.cpp"
#include <hwy/foreach_target.h>
// Highway's order: the above includes this file once for each target.
#include <algorithm>
#include <bit>

#include <hwy/highway.h>

#include "kiln/backend/cpu/kernel_table.h"
#include "kiln/backend/cpu/optim/formula_vectors-inl.h"
#include "kiln/backend/cpu/rows-inl.h"
#include "kiln/backend/dynamic_code.h"

HWY_BEFORE_NAMESPACE();
namespace kiln::cpu::HWY_NAMESPACE {
namespace {

// Tables are read element by element: gathers are no faster, and few machines have good ones.
template <class T>
void look_up(const float* HWY_RESTRICT numbers, const uint8_t* HWY_RESTRICT codes, int64_t n,
             T* HWY_RESTRICT out) {
  for (int64_t i = 0; i < n; ++i) out[i] = numbers[codes[i]];
}

template <class T>
void find_codes(const CodeCells& cells, const T* HWY_RESTRICT x, int64_t n,
                uint8_t* HWY_RESTRICT out) {
  for (int64_t i = 0; i < n; ++i) {
    const auto share = static_cast<float>(x[i]);
    const uint8_t low = cells.lowest[std::bit_cast<uint32_t>(share) >> 16];
    out[i] = static_cast<uint8_t>(low + (share >= cells.middles[low] ? 1 : 0));
  }
}

// The largest lane; NaN where one is.
template <class D>
hn::TFromD<D> largest_lane(D d, hn::Vec<D> v) {
  HWY_ALIGN hn::TFromD<D> lanes[hn::MaxLanes(d)];
  hn::Store(v, d, lanes);
  hn::TFromD<D> most = lanes[0];
  for (size_t i = 1; i < hn::Lanes(d); ++i) {
    if (!(lanes[i] <= most)) most = most != most ? most : lanes[i];
  }
  return most;
}

template <class T>
void encode(const CodedState<T>& state, T largest, const CodeCells& cells, int64_t n) {
  const hn::ScalableTag<T> d;
  *state.largest = static_cast<float>(largest);
  const auto divisor = hn::Set(d, largest > 0 ? largest : T(1));
  for_each_vector(d, n, [&](int64_t i, auto io) HWY_ATTR {
    io.store(hn::Div(io.load(state.numbers + i), divisor), state.numbers + i);
  });
  find_codes(cells, state.numbers, n, state.codes);
}

template <class T>
void step_block(T* p, const T* g, const CodedState<T>& first, const CodedState<T>& second,
                const Formula<AdamStep>& formula, int64_t n) {
  const hn::ScalableTag<T> d;
  look_up(dynamic_code(true).numbers.data(), first.codes, n, first.numbers);
  look_up(dynamic_code(false).numbers.data(), second.codes, n, second.numbers);
  const auto scale1 = hn::Set(d, static_cast<T>(*first.largest));
  const auto scale2 = hn::Set(d, static_cast<T>(*second.largest));
  auto most1 = hn::Zero(d), most2 = hn::Zero(d);
  for_each_vector(d, n, [&](int64_t i, auto io) HWY_ATTR {
    auto pv = io.load(p + i);
    auto m = hn::Mul(io.load(first.numbers + i), scale1);
    auto v = hn::Mul(io.load(second.numbers + i), scale2);
    auto none = pv;
    formula(pv, io.load(g + i), m, v, none, none);
    io.store(pv, p + i);
    io.store(m, first.numbers + i);
    io.store(v, second.numbers + i);
    most1 = larger(most1, io.only_valid(hn::Abs(m)));
    most2 = larger(most2, io.only_valid(hn::Abs(v)));
  });
  encode(first, largest_lane(d, most1), code_cells(true), n);
  encode(second, largest_lane(d, most2), code_cells(false), n);
}

template <class T>
void coded_step(T* p, const T* g, const CodedState<T>& m, const CodedState<T>& v,
                const AdamW8bitStep& step, int64_t n) {
  const Formula<AdamStep> formula(step.adam());
  for (int64_t at = 0, b = 0; at < n; at += step.block, ++b) {
    step_block(p + at, g + at, {m.codes + at, m.largest + b, m.numbers},
               {v.codes + at, v.largest + b, v.numbers}, formula, std::min(step.block, n - at));
  }
}

template <class T>
constexpr CodedKernels<T> kCodedKernels = {&coded_step<T>};

const CodedKernels<float>* coded_f32() { return &kCodedKernels<float>; }
const CodedKernels<double>* coded_f64() { return &kCodedKernels<double>; }

}  // namespace
}  // namespace kiln::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kiln::cpu {
KILN_KERNEL_TABLE_OF(float, CodedKernels, coded_kernels, coded_f32)
KILN_KERNEL_TABLE_OF(double, CodedKernels, coded_kernels, coded_f64)
}  // namespace kiln::cpu
#endif
