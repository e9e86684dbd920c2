// The loops that *_kernels.cpp files wrap around an operation on vectors (included once per
// instruction set).
//
// An operation is a class with `template <class D> V operator()(D d, V... v) const`, constructed
// from the kernel's parameters.

#if defined(KILN_BACKEND_CPU_LOOPS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KILN_BACKEND_CPU_LOOPS_INL_H_
#undef KILN_BACKEND_CPU_LOOPS_INL_H_
#else
#define KILN_BACKEND_CPU_LOOPS_INL_H_
#endif

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include "kiln/backend/cpu/elementwise.h"
#include "kiln/backend/cpu/masked-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kiln::cpu::HWY_NAMESPACE {
namespace loops {

namespace hn = hwy::HWY_NAMESPACE;

// The last n < Lanes(d) elements, and writing that many.
template <class D, class T>
HWY_INLINE hn::Vec<D> load_tail(D d, const T* x, int64_t n) {
  return masked_load(hn::FirstN(d, static_cast<size_t>(n)), d, x);
}
template <class D, class T>
HWY_INLINE void store_tail(hn::Vec<D> v, D d, T* out, int64_t n) {
  masked_store(v, hn::FirstN(d, static_cast<size_t>(n)), d, out);
}

template <class D, class T>
HWY_INLINE void fill(D d, T value, T* out, int64_t n) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto v = hn::Set(d, value);
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(v, d, out + i);
  if (i < n) store_tail(v, d, out + i, n - i);
}

template <class Op, class T, bool kStreams>
void unary(const KernelArgs& args) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const Op op(args.params);
  const T* HWY_RESTRICT x = static_cast<const T*>(args.in[0]);
  T* out = static_cast<T*>(args.out);
  const int64_t n = args.n;
  if (args.scalars != 0) {
    fill(d, hn::GetLane(op(d, hn::Set(d, x[0]))), out, n);
    return;
  }
  int64_t i = 0;
  if constexpr (kStreams) {
    if (args.stream) {
      for (; i + lanes <= n; i += lanes) hn::Stream(op(d, hn::LoadU(d, x + i)), d, out + i);
      hwy::FlushStream();
    }
  }
  for (; i + lanes <= n; i += lanes) hn::StoreU(op(d, hn::LoadU(d, x + i)), d, out + i);
  if (i < n) store_tail(op(d, load_tail(d, x + i, n - i)), d, out + i, n - i);
}

// Which of a binary loop's operands are one element.
template <class Op, class T, bool kScalarA, bool kScalarB, bool kStreams>
HWY_INLINE void binary_form(const KernelArgs& args) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const Op op(args.params);
  const T* a = static_cast<const T*>(args.in[0]);
  const T* b = static_cast<const T*>(args.in[1]);
  T* out = static_cast<T*>(args.out);
  const int64_t n = args.n;
  const auto first = hn::Set(d, kScalarA ? a[0] : T(0));
  const auto second = hn::Set(d, kScalarB ? b[0] : T(0));
  const auto load_a = [&](int64_t i) HWY_ATTR { return kScalarA ? first : hn::LoadU(d, a + i); };
  const auto load_b = [&](int64_t i) HWY_ATTR { return kScalarB ? second : hn::LoadU(d, b + i); };
  int64_t i = 0;
  if constexpr (kStreams) {
    if (args.stream) {
      for (; i + lanes <= n; i += lanes) hn::Stream(op(d, load_a(i), load_b(i)), d, out + i);
      hwy::FlushStream();
    }
  }
  for (; i + lanes <= n; i += lanes) hn::StoreU(op(d, load_a(i), load_b(i)), d, out + i);
  if (i < n) {
    const auto last_a = kScalarA ? first : load_tail(d, a + i, n - i);
    const auto last_b = kScalarB ? second : load_tail(d, b + i, n - i);
    store_tail(op(d, last_a, last_b), d, out + i, n - i);
  }
}

template <class Op, class T, bool kStreams>
void binary(const KernelArgs& args) {
  switch (args.scalars) {
    case 0:
      return binary_form<Op, T, false, false, kStreams>(args);
    case 1:
      return binary_form<Op, T, true, false, kStreams>(args);
    case 2:
      return binary_form<Op, T, false, true, kStreams>(args);
    default: {
      const hn::ScalableTag<T> d;
      const Op op(args.params);
      const auto a = hn::Set(d, static_cast<const T*>(args.in[0])[0]);
      const auto b = hn::Set(d, static_cast<const T*>(args.in[1])[0]);
      return fill(d, hn::GetLane(op(d, a, b)), static_cast<T*>(args.out), args.n);
    }
  }
}

// For operations so long that a test in the loop does not show: one loop for every form.
template <class Op, class T>
void long_binary(const KernelArgs& args) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const Op op(args.params);
  const T* a = static_cast<const T*>(args.in[0]);
  const T* b = static_cast<const T*>(args.in[1]);
  T* out = static_cast<T*>(args.out);
  const bool scalar_a = (args.scalars & 1) != 0;
  const bool scalar_b = (args.scalars & 2) != 0;
  const auto first = hn::Set(d, a[0]);
  const auto second = hn::Set(d, b[0]);
  for (int64_t i = 0; i < args.n; i += lanes) {
    const int64_t left = args.n - i;
    if (left >= lanes) {
      const auto va = scalar_a ? first : hn::LoadU(d, a + i);
      const auto vb = scalar_b ? second : hn::LoadU(d, b + i);
      hn::StoreU(op(d, va, vb), d, out + i);
    } else {
      const auto va = scalar_a ? first : load_tail(d, a + i, left);
      const auto vb = scalar_b ? second : load_tail(d, b + i, left);
      store_tail(op(d, va, vb), d, out + i, left);
    }
  }
}

template <class Op, class T>
void ternary(const KernelArgs& args) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const Op op(args.params);
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
    const auto w = op(d, x, y, z);
    if (args.stream) {
      hn::Stream(w, d, out + i);
    } else {
      hn::StoreU(w, d, out + i);
    }
  }
  if (args.stream) hwy::FlushStream();
  if (i < args.n) {
    const int64_t left = args.n - i;
    const auto x = one_x ? x0 : load_tail(d, px + i, left);
    const auto y = one_y ? y0 : load_tail(d, py + i, left);
    const auto z = one_z ? z0 : load_tail(d, pz + i, left);
    store_tail(op(d, x, y, z), d, out + i, left);
  }
}

}  // namespace loops
}  // namespace kiln::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
