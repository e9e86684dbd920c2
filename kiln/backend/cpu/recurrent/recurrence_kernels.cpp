#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kiln/backend/cpu/recurrent/recurrence_kernels.cpp"
#include <hwy/foreach_target.h>
// Highway's order: the above includes this file once for each target.
#include <hwy/highway.h>

#include "kiln/backend/cpu/kernel_table.h"
#include "kiln/backend/cpu/math/double_math-inl.h"
#include "kiln/backend/cpu/math/math-inl.h"
#include "kiln/backend/cpu/recurrent/recurrence_kernels.h"
#include "kiln/backend/cpu/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kiln::cpu::HWY_NAMESPACE {
namespace {

template <class D, class V = hn::Vec<D>>
HWY_INLINE V squashed(D d, V x) {
  if constexpr (sizeof(hn::TFromD<D>) == 8) {
    return dbl::tanh(d, x);
  } else {
    return vec::tanh(d, x);
  }
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V gate(D d, V x) {
  if constexpr (sizeof(hn::TFromD<D>) == 8) {
    return dbl::sigmoid(d, x);
  } else {
    return vec::sigmoid(d, x);
  }
}

// g times the derivative of a gate or of tanh, by its value y.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V through_gate(D, V g, V y) {
  return hn::Mul(g, hn::NegMulAdd(y, y, y));
}
template <class D, class V = hn::Vec<D>>
HWY_INLINE V through_tanh(D d, V g, V y) {
  return hn::Mul(g, hn::NegMulAdd(y, y, hn::Set(d, hn::TFromD<D>(1))));
}

// ---- Forward

template <class T, bool relu>
void rnn_forward(const CellForward<T>& cell) {
  const hn::ScalableTag<T> d;
  for_each_vector(d, cell.rows * cell.size, [&](int64_t i, auto io) HWY_ATTR {
    const auto sum = hn::Add(io.load(cell.x + i), io.load(cell.y + i));
    const auto h = relu ? hn::IfThenZeroElse(hn::Lt(sum, hn::Zero(d)), sum) : squashed(d, sum);
    io.store(h, cell.h + i);
    io.store(h, cell.out + i);
  });
}

template <class T>
void gru_forward(const CellForward<T>& cell) {
  const hn::ScalableTag<T> d;
  const int64_t size = cell.size;
  for (int64_t r = 0; r < cell.rows; ++r) {
    const T* x = cell.x + r * 3 * size;
    const T* y = cell.y + r * 3 * size;
    T* h = cell.h + r * size;
    T* out = cell.out + r * size;
    T* kept = cell.kept == nullptr ? nullptr : cell.kept + r * 4 * size;
    for_each_vector(d, size, [&](int64_t j, auto io) HWY_ATTR {
      const auto reset = gate(d, hn::Add(io.load(x + j), io.load(y + j)));
      const auto z = gate(d, hn::Add(io.load(x + size + j), io.load(y + size + j)));
      const auto part = io.load(y + 2 * size + j);
      const auto n = squashed(d, hn::MulAdd(reset, part, io.load(x + 2 * size + j)));
      const auto next = hn::MulAdd(z, hn::Sub(io.load(h + j), n), n);
      io.store(next, h + j);
      io.store(next, out + j);
      if (kept == nullptr) return;
      io.store(reset, kept + j);
      io.store(z, kept + size + j);
      io.store(n, kept + 2 * size + j);
      io.store(part, kept + 3 * size + j);
    });
  }
}

template <class T>
void lstm_forward(const CellForward<T>& cell) {
  const hn::ScalableTag<T> d;
  const int64_t size = cell.size;
  for (int64_t r = 0; r < cell.rows; ++r) {
    const T* x = cell.x + r * 4 * size;
    const T* y = cell.y + r * 4 * size;
    T* h = cell.h + r * size;
    T* c = cell.c + r * size;
    T* out = cell.out + r * size;
    T* kept = cell.kept == nullptr ? nullptr : cell.kept + r * 5 * size;
    for_each_vector(d, size, [&](int64_t j, auto io) HWY_ATTR {
      const auto i = gate(d, hn::Add(io.load(x + j), io.load(y + j)));
      const auto f = gate(d, hn::Add(io.load(x + size + j), io.load(y + size + j)));
      const auto g = squashed(d, hn::Add(io.load(x + 2 * size + j), io.load(y + 2 * size + j)));
      const auto o = gate(d, hn::Add(io.load(x + 3 * size + j), io.load(y + 3 * size + j)));
      const auto next = hn::MulAdd(f, io.load(c + j), hn::Mul(i, g));
      const auto hidden = hn::Mul(o, squashed(d, next));
      io.store(next, c + j);
      io.store(hidden, h + j);
      io.store(hidden, out + j);
      if (kept == nullptr) return;
      io.store(i, kept + j);
      io.store(f, kept + size + j);
      io.store(g, kept + 2 * size + j);
      io.store(o, kept + 3 * size + j);
      io.store(next, kept + 4 * size + j);
    });
  }
}

// ---- Backward

template <class T, bool relu>
void rnn_backward(const CellBackward<T>& cell) {
  const hn::ScalableTag<T> d;
  for_each_vector(d, cell.rows * cell.size, [&](int64_t i, auto io) HWY_ATTR {
    auto g = io.load(cell.dh + i);
    if (cell.g_out != nullptr) g = hn::Add(g, io.load(cell.g_out + i));
    const auto h = io.load(cell.out + i);
    const auto out = relu ? hn::IfThenElseZero(hn::Gt(h, hn::Zero(d)), g) : through_tanh(d, g, h);
    io.store(out, cell.g_x + i);
  });
}

template <class T>
void gru_backward(const CellBackward<T>& cell) {
  const hn::ScalableTag<T> d;
  const int64_t size = cell.size;
  for (int64_t r = 0; r < cell.rows; ++r) {
    const T* g_out = cell.g_out == nullptr ? nullptr : cell.g_out + r * size;
    const T* kept = cell.kept + r * 4 * size;
    const T* before = cell.before + r * cell.before_row;
    T* dh = cell.dh + r * size;
    T* g_x = cell.g_x + r * 3 * size;
    T* g_y = cell.g_y + r * 3 * size;
    for_each_vector(d, size, [&](int64_t j, auto io) HWY_ATTR {
      auto g = io.load(dh + j);
      if (g_out != nullptr) g = hn::Add(g, io.load(g_out + j));
      const auto reset = io.load(kept + j), z = io.load(kept + size + j);
      const auto n = io.load(kept + 2 * size + j);
      const auto passed = hn::Mul(g, z);
      const auto dn = through_tanh(d, hn::Sub(g, passed), n);
      const auto dz = through_gate(d, hn::Mul(g, hn::Sub(io.load(before + j), n)), z);
      const auto dr = through_gate(d, hn::Mul(dn, io.load(kept + 3 * size + j)), reset);
      io.store(passed, dh + j);
      io.store(dr, g_x + j);
      io.store(dz, g_x + size + j);
      io.store(dn, g_x + 2 * size + j);
      io.store(dr, g_y + j);
      io.store(dz, g_y + size + j);
      io.store(hn::Mul(dn, reset), g_y + 2 * size + j);
    });
  }
}

template <class T>
void lstm_backward(const CellBackward<T>& cell) {
  const hn::ScalableTag<T> d;
  const int64_t size = cell.size;
  for (int64_t r = 0; r < cell.rows; ++r) {
    const T* g_out = cell.g_out == nullptr ? nullptr : cell.g_out + r * size;
    const T* kept = cell.kept + r * 5 * size;
    const T* before = cell.before + r * cell.before_row;
    const T* dh = cell.dh + r * size;
    T* dc = cell.dc + r * size;
    T* g_x = cell.g_x + r * 4 * size;
    for_each_vector(d, size, [&](int64_t j, auto io) HWY_ATTR {
      auto gh = io.load(dh + j);
      if (g_out != nullptr) gh = hn::Add(gh, io.load(g_out + j));
      const auto i = io.load(kept + j), f = io.load(kept + size + j);
      const auto g = io.load(kept + 2 * size + j), o = io.load(kept + 3 * size + j);
      const auto level = squashed(d, io.load(kept + 4 * size + j));
      const auto gc = hn::Add(io.load(dc + j), through_tanh(d, hn::Mul(gh, o), level));
      io.store(through_gate(d, hn::Mul(gc, g), i), g_x + j);
      io.store(through_gate(d, hn::Mul(gc, io.load(before + j)), f), g_x + size + j);
      io.store(through_tanh(d, hn::Mul(gc, i), g), g_x + 2 * size + j);
      io.store(through_gate(d, hn::Mul(gh, level), o), g_x + 3 * size + j);
      io.store(hn::Mul(gc, f), dc + j);
    });
  }
}

template <class T>
constexpr RecurrenceKernels<T> kRecurrenceKernels = {
    {&rnn_forward<T, false>, &rnn_forward<T, true>, &gru_forward<T>, &lstm_forward<T>},
    {&rnn_backward<T, false>, &rnn_backward<T, true>, &gru_backward<T>, &lstm_backward<T>},
};

const RecurrenceKernels<float>* recurrence_f32() { return &kRecurrenceKernels<float>; }
const RecurrenceKernels<double>* recurrence_f64() { return &kRecurrenceKernels<double>; }

}  // namespace
}  // namespace kiln::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kiln::cpu {
KILN_KERNEL_TABLE_OF(float, RecurrenceKernels, recurrence_kernels, recurrence_f32)
KILN_KERNEL_TABLE_OF(double, RecurrenceKernels, recurrence_kernels, recurrence_f64)
}  // namespace kiln::cpu
#endif
