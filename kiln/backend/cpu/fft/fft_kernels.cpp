#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kiln/backend/cpu/fft/fft_kernels.cpp"
#include <hwy/foreach_target.h>
// Highway's order: the above includes this file once for each target.
#include <cmath>
#include <numbers>

#include <hwy/highway.h>

#include "kiln/backend/cpu/fft/fft_kernels.h"
#include "kiln/backend/cpu/kernel_table.h"

HWY_BEFORE_NAMESPACE();
namespace kiln::cpu::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// The transform of R numbers in registers, in place, with e^(-2 pi i / R).
template <int R, class D, class V = hn::Vec<D>>
HWY_INLINE void butterfly(D d, V* HWY_RESTRICT r, V* HWY_RESTRICT i) {
  using T = hn::TFromD<D>;
  if constexpr (R == 2) {
    const V ar = r[0], ai = i[0];
    r[0] = hn::Add(ar, r[1]);
    i[0] = hn::Add(ai, i[1]);
    r[1] = hn::Sub(ar, r[1]);
    i[1] = hn::Sub(ai, i[1]);
  } else if constexpr (R == 3) {
    const V half = hn::Set(d, T(0.5));
    const V s = hn::Set(d, T(0.86602540378443864676));
    const V tr = hn::Add(r[1], r[2]), ti = hn::Add(i[1], i[2]);
    const V ur = hn::Mul(s, hn::Sub(r[1], r[2])), ui = hn::Mul(s, hn::Sub(i[1], i[2]));
    const V mr = hn::NegMulAdd(half, tr, r[0]), mi = hn::NegMulAdd(half, ti, i[0]);
    r[0] = hn::Add(r[0], tr);
    i[0] = hn::Add(i[0], ti);
    r[1] = hn::Add(mr, ui);
    i[1] = hn::Sub(mi, ur);
    r[2] = hn::Sub(mr, ui);
    i[2] = hn::Add(mi, ur);
  } else if constexpr (R == 4) {
    const V ar = hn::Add(r[0], r[2]), ai = hn::Add(i[0], i[2]);
    const V br = hn::Sub(r[0], r[2]), bi = hn::Sub(i[0], i[2]);
    const V cr = hn::Add(r[1], r[3]), ci = hn::Add(i[1], i[3]);
    const V er = hn::Sub(r[1], r[3]), ei = hn::Sub(i[1], i[3]);
    r[0] = hn::Add(ar, cr);
    i[0] = hn::Add(ai, ci);
    r[1] = hn::Add(br, ei);
    i[1] = hn::Sub(bi, er);
    r[2] = hn::Sub(ar, cr);
    i[2] = hn::Sub(ai, ci);
    r[3] = hn::Sub(br, ei);
    i[3] = hn::Add(bi, er);
  } else {
    static_assert(R == 5);
    const V c1 = hn::Set(d, T(0.30901699437494742410)), c2 = hn::Set(d, T(-0.80901699437494742410));
    const V s1 = hn::Set(d, T(0.95105651629515357212)), s2 = hn::Set(d, T(0.58778525229247312917));
    const V t1r = hn::Add(r[1], r[4]), t1i = hn::Add(i[1], i[4]);
    const V t2r = hn::Add(r[2], r[3]), t2i = hn::Add(i[2], i[3]);
    const V t3r = hn::Sub(r[1], r[4]), t3i = hn::Sub(i[1], i[4]);
    const V t4r = hn::Sub(r[2], r[3]), t4i = hn::Sub(i[2], i[3]);
    const V m1r = hn::MulAdd(c1, t1r, hn::MulAdd(c2, t2r, r[0]));
    const V m1i = hn::MulAdd(c1, t1i, hn::MulAdd(c2, t2i, i[0]));
    const V m2r = hn::MulAdd(c2, t1r, hn::MulAdd(c1, t2r, r[0]));
    const V m2i = hn::MulAdd(c2, t1i, hn::MulAdd(c1, t2i, i[0]));
    const V n1r = hn::MulAdd(s1, t3r, hn::Mul(s2, t4r));
    const V n1i = hn::MulAdd(s1, t3i, hn::Mul(s2, t4i));
    const V n2r = hn::MulSub(s2, t3r, hn::Mul(s1, t4r));
    const V n2i = hn::MulSub(s2, t3i, hn::Mul(s1, t4i));
    r[0] = hn::Add(r[0], hn::Add(t1r, t2r));
    i[0] = hn::Add(i[0], hn::Add(t1i, t2i));
    r[1] = hn::Add(m1r, n1i);
    i[1] = hn::Sub(m1i, n1r);
    r[4] = hn::Sub(m1r, n1i);
    i[4] = hn::Add(m1i, n1r);
    r[2] = hn::Add(m2r, n2i);
    i[2] = hn::Sub(m2i, n2r);
    r[3] = hn::Sub(m2r, n2i);
    i[3] = hn::Add(m2i, n2r);
  }
}

template <class T>
struct PassArgs {
  int64_t m, s;
  const T *re, *im;
  T *out_re, *out_im;
  const T *wr, *wi;
};

// The numbers q.. of place p, in vectors of at most N lanes, then of fewer.
template <int R, size_t N, class T>
HWY_INLINE void across(const PassArgs<T>& a, int64_t p, int64_t q) {
  const hn::CappedTag<T, N> d;
  using V = hn::Vec<decltype(d)>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  if (q + lanes <= a.s) {
    V wr[R], wi[R];
    for (int k = 1; k < R; ++k) {
      wr[k] = hn::Set(d, a.wr[(k - 1) * a.m + p]);
      wi[k] = hn::Set(d, a.wi[(k - 1) * a.m + p]);
    }
    for (; q + lanes <= a.s; q += lanes) {
      V r[R], i[R];
      for (int k = 0; k < R; ++k) {
        r[k] = hn::LoadU(d, a.re + q + a.s * (p + a.m * k));
        i[k] = hn::LoadU(d, a.im + q + a.s * (p + a.m * k));
      }
      butterfly<R>(d, r, i);
      T* to_re = a.out_re + q + a.s * R * p;
      T* to_im = a.out_im + q + a.s * R * p;
      hn::StoreU(r[0], d, to_re);
      hn::StoreU(i[0], d, to_im);
      for (int k = 1; k < R; ++k) {
        hn::StoreU(hn::MulSub(r[k], wr[k], hn::Mul(i[k], wi[k])), d, to_re + a.s * k);
        hn::StoreU(hn::MulAdd(r[k], wi[k], hn::Mul(i[k], wr[k])), d, to_im + a.s * k);
      }
    }
  }
  if constexpr (N > 1) {
    if (q < a.s) across<R, N / 2>(a, p, q);
  }
}

template <int R, class D, class V = hn::Vec<D>>
HWY_INLINE void store_interleaved(D d, const V* v, hn::TFromD<D>* to) {
  if constexpr (R == 2) {
    hn::StoreInterleaved2(v[0], v[1], d, to);
  } else if constexpr (R == 3) {
    hn::StoreInterleaved3(v[0], v[1], v[2], d, to);
  } else {
    hn::StoreInterleaved4(v[0], v[1], v[2], v[3], d, to);
  }
}

// The pass with s = 1: vectors along p.
template <int R, class T>
void along(const PassArgs<T>& a) {
  int64_t p = 0;
  if constexpr (R <= 4) {
    const hn::ScalableTag<T> d;
    using V = hn::Vec<decltype(d)>;
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    for (; p + lanes <= a.m; p += lanes) {
      V r[R], i[R];
      for (int k = 0; k < R; ++k) {
        r[k] = hn::LoadU(d, a.re + p + a.m * k);
        i[k] = hn::LoadU(d, a.im + p + a.m * k);
      }
      butterfly<R>(d, r, i);
      for (int k = 1; k < R; ++k) {
        const V wr = hn::LoadU(d, a.wr + (k - 1) * a.m + p);
        const V wi = hn::LoadU(d, a.wi + (k - 1) * a.m + p);
        const V re = r[k];
        r[k] = hn::MulSub(re, wr, hn::Mul(i[k], wi));
        i[k] = hn::MulAdd(re, wi, hn::Mul(i[k], wr));
      }
      store_interleaved<R>(d, r, a.out_re + R * p);
      store_interleaved<R>(d, i, a.out_im + R * p);
    }
  }
  for (; p < a.m; ++p) across<R, 1>(a, p, 0);
}

// A prime radix: pairs j and R - j share their cosines and, but for the sign, their sines.
template <size_t N, class T>
HWY_INLINE void across_prime(int64_t radix, const T* cosines, const T* sines, const PassArgs<T>& a,
                             int64_t p, int64_t q) {
  const hn::CappedTag<T, N> d;
  using V = hn::Vec<decltype(d)>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t half = radix / 2;
  for (; q + lanes <= a.s; q += lanes) {
    V tr[kLargestRadix / 2 + 1], ti[kLargestRadix / 2 + 1];
    V ur[kLargestRadix / 2 + 1], ui[kLargestRadix / 2 + 1];
    const T* from_re = a.re + q + a.s * p;
    const T* from_im = a.im + q + a.s * p;
    const V r0 = hn::LoadU(d, from_re), i0 = hn::LoadU(d, from_im);
    V sum_r = r0, sum_i = i0;
    for (int64_t j = 1; j <= half; ++j) {
      const V ar = hn::LoadU(d, from_re + a.s * a.m * j);
      const V ai = hn::LoadU(d, from_im + a.s * a.m * j);
      const V br = hn::LoadU(d, from_re + a.s * a.m * (radix - j));
      const V bi = hn::LoadU(d, from_im + a.s * a.m * (radix - j));
      tr[j] = hn::Add(ar, br);
      ti[j] = hn::Add(ai, bi);
      ur[j] = hn::Sub(ar, br);
      ui[j] = hn::Sub(ai, bi);
      sum_r = hn::Add(sum_r, tr[j]);
      sum_i = hn::Add(sum_i, ti[j]);
    }
    T* to_re = a.out_re + q + a.s * radix * p;
    T* to_im = a.out_im + q + a.s * radix * p;
    hn::StoreU(sum_r, d, to_re);
    hn::StoreU(sum_i, d, to_im);
    for (int64_t k = 1; k <= half; ++k) {
      V mr = r0, mi = i0;
      V nr = hn::Zero(d), ni = hn::Zero(d);
      int64_t turn = 0;
      for (int64_t j = 1; j <= half; ++j) {
        turn += k;
        if (turn >= radix) turn -= radix;
        const V c = hn::Set(d, cosines[turn]), s = hn::Set(d, sines[turn]);
        mr = hn::MulAdd(c, tr[j], mr);
        mi = hn::MulAdd(c, ti[j], mi);
        nr = hn::MulAdd(s, ur[j], nr);
        ni = hn::MulAdd(s, ui[j], ni);
      }
      const auto store = [&](int64_t at, V r, V i) {
        const V wr = hn::Set(d, a.wr[(at - 1) * a.m + p]);
        const V wi = hn::Set(d, a.wi[(at - 1) * a.m + p]);
        hn::StoreU(hn::MulSub(r, wr, hn::Mul(i, wi)), d, to_re + a.s * at);
        hn::StoreU(hn::MulAdd(r, wi, hn::Mul(i, wr)), d, to_im + a.s * at);
      };
      store(k, hn::Add(mr, ni), hn::Sub(mi, nr));
      store(radix - k, hn::Sub(mr, ni), hn::Add(mi, nr));
    }
  }
  if constexpr (N > 1) {
    if (q < a.s) across_prime<N / 2>(radix, cosines, sines, a, p, q);
  }
}

template <class T>
inline constexpr size_t kMostLanes = HWY_MAX_BYTES / sizeof(T);

template <int R, class T>
void pass_of(const PassArgs<T>& a) {
  if (a.s == 1) return along<R>(a);
  for (int64_t p = 0; p < a.m; ++p) across<R, kMostLanes<T>>(a, p, 0);
}

template <class T>
void pass(int64_t radix, int64_t m, int64_t s, const T* re, const T* im, T* out_re, T* out_im,
          const T* wr, const T* wi) {
  const PassArgs<T> a{m, s, re, im, out_re, out_im, wr, wi};
  switch (radix) {
    case 2:
      return pass_of<2>(a);
    case 3:
      return pass_of<3>(a);
    case 4:
      return pass_of<4>(a);
    case 5:
      return pass_of<5>(a);
    default:
      break;
  }
  T cosines[kLargestRadix], sines[kLargestRadix];
  for (int64_t j = 0; j < radix; ++j) {
    const double angle = 2 * std::numbers::pi * static_cast<double>(j) / static_cast<double>(radix);
    cosines[j] = static_cast<T>(std::cos(angle));
    sines[j] = static_cast<T>(std::sin(angle));
  }
  for (int64_t p = 0; p < m; ++p) across_prime<kMostLanes<T>>(radix, cosines, sines, a, p, 0);
}

template <class T>
void split(const T* z, T* re, T* im, int64_t n) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    hn::Vec<decltype(d)> a, b;
    hn::LoadInterleaved2(d, z + 2 * i, a, b);
    hn::StoreU(a, d, re + i);
    hn::StoreU(b, d, im + i);
  }
  for (; i < n; ++i) {
    re[i] = z[2 * i];
    im[i] = z[2 * i + 1];
  }
}

template <class T>
void join(const T* re, const T* im, T* z, int64_t n, T scale) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto by = hn::Set(d, scale);
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    hn::StoreInterleaved2(hn::Mul(hn::LoadU(d, re + i), by), hn::Mul(hn::LoadU(d, im + i), by), d,
                          z + 2 * i);
  }
  for (; i < n; ++i) {
    z[2 * i] = re[i] * scale;
    z[2 * i + 1] = im[i] * scale;
  }
}

template <class T>
void twist(const T* re, const T* im, const T* w_re, const T* w_im, T c, T e, T* out_re, T* out_im,
           int64_t n) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto cv = hn::Set(d, c), ev = hn::Set(d, e);
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto wr = hn::LoadU(d, w_re + i), wi = hn::LoadU(d, w_im + i);
    const auto tr = hn::MulSub(wr, cv, hn::Mul(wi, ev));
    const auto ti = hn::MulAdd(wr, ev, hn::Mul(wi, cv));
    const auto r = hn::LoadU(d, re + i), m = hn::LoadU(d, im + i);
    hn::StoreU(hn::MulSub(r, tr, hn::Mul(m, ti)), d, out_re + i);
    hn::StoreU(hn::MulAdd(r, ti, hn::Mul(m, tr)), d, out_im + i);
  }
  for (; i < n; ++i) {
    const T tr = w_re[i] * c - w_im[i] * e;
    const T ti = w_re[i] * e + w_im[i] * c;
    const T r = re[i];
    out_re[i] = r * tr - im[i] * ti;
    out_im[i] = r * ti + im[i] * tr;
  }
}

// Numbers k and n - k together: with a and the conjugate b of the other one, a + b is twice the
// spectrum of the even numbers, -i w (a - b) that of the odd ones.
template <class T>
void untangle(T* z, const T* w, int64_t n) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto one = [&](int64_t k) {
    const int64_t l = n - k;
    const T ar = z[2 * k], ai = z[2 * k + 1];
    const T br = z[2 * l], bi = -z[2 * l + 1];
    const T er = ar + br, ei = ai + bi;
    const T dr = ar - br, di = ai - bi;
    const T tr = w[2 * k] * di + w[2 * k + 1] * dr;
    const T ti = w[2 * k + 1] * di - w[2 * k] * dr;
    z[2 * k] = er + tr;
    z[2 * k + 1] = ei + ti;
    z[2 * l] = er - tr;
    z[2 * l + 1] = ti - ei;
  };
  one(0);
  int64_t k = 1;
  for (; 2 * (k + lanes) - 2 < n; k += lanes) {
    T* low = z + 2 * k;
    T* high = z + 2 * (n - k - lanes + 1);
    V ar, ai, br, bi, wr, wi;
    hn::LoadInterleaved2(d, low, ar, ai);
    hn::LoadInterleaved2(d, high, br, bi);
    hn::LoadInterleaved2(d, w + 2 * k, wr, wi);
    br = hn::Reverse(d, br);
    bi = hn::Neg(hn::Reverse(d, bi));
    const auto er = hn::Add(ar, br), ei = hn::Add(ai, bi);
    const auto dr = hn::Sub(ar, br), di = hn::Sub(ai, bi);
    const auto tr = hn::MulAdd(wr, di, hn::Mul(wi, dr));
    const auto ti = hn::MulSub(wi, di, hn::Mul(wr, dr));
    hn::StoreInterleaved2(hn::Add(er, tr), hn::Add(ei, ti), d, low);
    hn::StoreInterleaved2(hn::Reverse(d, hn::Sub(er, tr)), hn::Reverse(d, hn::Sub(ti, ei)), d,
                          high);
  }
  for (; 2 * k <= n; ++k) one(k);
}

// Likewise, with a + b and i w (a - b), where w is for the inverse.
template <class T>
void tangle(const T* z, const T* w, int64_t n, T* out) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto one = [&](int64_t k) {
    const int64_t l = n - k;
    const T ar = z[2 * k], ai = k == 0 ? T(0) : z[2 * k + 1];
    const T br = z[2 * l], bi = k == 0 ? T(0) : -z[2 * l + 1];
    const T er = ar + br, ei = ai + bi;
    const T dr = ar - br, di = ai - bi;
    const T tr = w[2 * k + 1] * dr - w[2 * k] * di;
    const T ti = w[2 * k] * dr + w[2 * k + 1] * di;
    out[2 * k] = er + tr;
    out[2 * k + 1] = ei + ti;
    if (l == n) return;
    out[2 * l] = er - tr;
    out[2 * l + 1] = ti - ei;
  };
  one(0);
  int64_t k = 1;
  for (; 2 * (k + lanes) - 2 < n; k += lanes) {
    const int64_t l = n - k - lanes + 1;
    V ar, ai, br, bi, wr, wi;
    hn::LoadInterleaved2(d, z + 2 * k, ar, ai);
    hn::LoadInterleaved2(d, z + 2 * l, br, bi);
    hn::LoadInterleaved2(d, w + 2 * k, wr, wi);
    br = hn::Reverse(d, br);
    bi = hn::Neg(hn::Reverse(d, bi));
    const auto er = hn::Add(ar, br), ei = hn::Add(ai, bi);
    const auto dr = hn::Sub(ar, br), di = hn::Sub(ai, bi);
    const auto tr = hn::MulSub(wi, dr, hn::Mul(wr, di));
    const auto ti = hn::MulAdd(wr, dr, hn::Mul(wi, di));
    hn::StoreInterleaved2(hn::Add(er, tr), hn::Add(ei, ti), d, out + 2 * k);
    hn::StoreInterleaved2(hn::Reverse(d, hn::Sub(er, tr)), hn::Reverse(d, hn::Sub(ti, ei)), d,
                          out + 2 * l);
  }
  for (; 2 * k <= n; ++k) one(k);
}

// f(d, q) for vectors of d from lane q on, until all lanes are done: of at most N lanes, then
// fewer.
template <size_t N, class T, class F>
HWY_INLINE void over_lanes(int64_t q, int64_t lanes, const F& f) {
  const hn::CappedTag<T, N> d;
  const auto width = static_cast<int64_t>(hn::Lanes(d));
  for (; q + width <= lanes; q += width) f(d, q);
  if constexpr (N > 1) {
    if (q < lanes) over_lanes<N / 2, T>(q, lanes, f);
  }
}

template <class T>
void twist_lanes(const T* re, const T* im, const T* HWY_RESTRICT w, int64_t n, int64_t lanes,
                 T* out_re, T* out_im) {
  for (int64_t k = 0; k < n; ++k) {
    over_lanes<kMostLanes<T>, T>(0, lanes, [&](auto d, int64_t q) HWY_ATTR {
      const int64_t at = k * lanes + q;
      const auto wr = hn::Set(d, w[2 * k]), wi = hn::Set(d, w[2 * k + 1]);
      const auto r = hn::LoadU(d, re + at), i = hn::LoadU(d, im + at);
      hn::StoreU(hn::MulSub(r, wr, hn::Mul(i, wi)), d, out_re + at);
      hn::StoreU(hn::MulAdd(r, wi, hn::Mul(i, wr)), d, out_im + at);
    });
  }
}

template <class T>
void untangle_lanes(const T* HWY_RESTRICT re, const T* HWY_RESTRICT im, const T* HWY_RESTRICT w,
                    int64_t n, int64_t lanes, T* HWY_RESTRICT out_re, T* HWY_RESTRICT out_im) {
  for (int64_t k = 0; 2 * k <= n; ++k) {
    const int64_t low = k * lanes, high = (n - k) * lanes;
    const int64_t other = k == 0 ? 0 : high;  // number n is number 0
    over_lanes<kMostLanes<T>, T>(0, lanes, [&](auto d, int64_t q) HWY_ATTR {
      const auto wr = hn::Set(d, w[2 * k]), wi = hn::Set(d, w[2 * k + 1]);
      const auto ar = hn::LoadU(d, re + low + q), ai = hn::LoadU(d, im + low + q);
      const auto br = hn::LoadU(d, re + other + q), ci = hn::LoadU(d, im + other + q);
      const auto er = hn::Add(ar, br), ei = hn::Sub(ai, ci);
      const auto dr = hn::Sub(ar, br), di = hn::Add(ai, ci);
      const auto tr = hn::MulAdd(wr, di, hn::Mul(wi, dr));
      const auto ti = hn::MulSub(wi, di, hn::Mul(wr, dr));
      hn::StoreU(hn::Add(er, tr), d, out_re + low + q);
      hn::StoreU(hn::Add(ei, ti), d, out_im + low + q);
      if (low == high) return;
      hn::StoreU(hn::Sub(er, tr), d, out_re + high + q);
      hn::StoreU(hn::Sub(ti, ei), d, out_im + high + q);
    });
  }
}

template <class T>
void tangle_lanes(const T* HWY_RESTRICT re, const T* HWY_RESTRICT im, const T* HWY_RESTRICT w,
                  int64_t n, int64_t lanes, T* HWY_RESTRICT out_re, T* HWY_RESTRICT out_im) {
  for (int64_t k = 0; 2 * k <= n; ++k) {
    const int64_t low = k * lanes, high = (n - k) * lanes;
    over_lanes<kMostLanes<T>, T>(0, lanes, [&](auto d, int64_t q) HWY_ATTR {
      const auto wr = hn::Set(d, w[2 * k]), wi = hn::Set(d, w[2 * k + 1]);
      const auto ar = hn::LoadU(d, re + low + q), br = hn::LoadU(d, re + high + q);
      // The ends have no imaginary part that counts.
      const auto ai = k == 0 ? hn::Zero(d) : hn::LoadU(d, im + low + q);
      const auto ci = k == 0 ? hn::Zero(d) : hn::LoadU(d, im + high + q);
      const auto er = hn::Add(ar, br), ei = hn::Sub(ai, ci);
      const auto dr = hn::Sub(ar, br), di = hn::Add(ai, ci);
      const auto tr = hn::MulSub(wi, dr, hn::Mul(wr, di));
      const auto ti = hn::MulAdd(wr, dr, hn::Mul(wi, di));
      hn::StoreU(hn::Add(er, tr), d, out_re + low + q);
      hn::StoreU(hn::Add(ei, ti), d, out_im + low + q);
      if (k == 0 || low == high) return;
      hn::StoreU(hn::Sub(er, tr), d, out_re + high + q);
      hn::StoreU(hn::Sub(ti, ei), d, out_im + high + q);
    });
  }
}

template <class T>
constexpr FftKernels<T> kFftKernels = {&pass<T>,        &split<T>,          &join<T>,
                                       &twist<T>,       &untangle<T>,       &tangle<T>,
                                       &twist_lanes<T>, &untangle_lanes<T>, &tangle_lanes<T>};

const FftKernels<float>* fft_f32() { return &kFftKernels<float>; }
const FftKernels<double>* fft_f64() { return &kFftKernels<double>; }

}  // namespace
}  // namespace kiln::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kiln::cpu {
KILN_KERNEL_TABLE_OF(float, FftKernels, fft_kernels, fft_f32)
KILN_KERNEL_TABLE_OF(double, FftKernels, fft_kernels, fft_f64)
}  // namespace kiln::cpu
#endif
