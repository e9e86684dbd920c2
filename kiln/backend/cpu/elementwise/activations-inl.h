// Vectorized activations and their gradients for float (included once per instruction set).

#if defined(KILN_BACKEND_CPU_ACTIVATIONS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KILN_BACKEND_CPU_ACTIVATIONS_INL_H_
#undef KILN_BACKEND_CPU_ACTIVATIONS_INL_H_
#else
#define KILN_BACKEND_CPU_ACTIVATIONS_INL_H_
#endif

#include "kiln/backend/cpu/elementwise/normal_table.h"
#include "kiln/backend/cpu/math/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kiln::cpu::HWY_NAMESPACE {
namespace vec {

// log(1 + e) for e in [0, 1].
template <class D>
HWY_INLINE V<D> log1p_unit(D d, V<D> e) {
  // 1 + e = 2^n (1 + f) with n of 0 or 1, then as log().
  const auto one = hn::Set(d, 1.0f);
  const auto upper = hn::Gt(e, hn::Set(d, 0.41421356f));
  const auto f = hn::IfThenElse(upper, hn::Mul(hn::Sub(e, one), hn::Set(d, 0.5f)), e);
  return log_of_parts(d, hn::IfThenElseZero(upper, one), f);
}

template <class D>
HWY_INLINE V<D> silu(D d, V<D> x) {
  return hn::Mul(x, sigmoid(d, x));
}

// g (s + x s (1 - s)) with s = sigmoid(x).
template <class D>
HWY_INLINE V<D> silu_backward(D d, V<D> g, V<D> x) {
  V<D> s, complement;
  sigmoid_pair(d, x, &s, &complement);
  return hn::Mul(g, hn::Mul(s, hn::MulAdd(x, complement, hn::Set(d, 1.0f))));
}

// One coefficient for each lane's piece.
template <class D, class VI>
HWY_INLINE V<D> piece_of(D d, const float* row, VI piece) {
  const hn::RebindToSigned<D> di;
  if constexpr (hn::MaxLanes(D()) == kNormalPieces) {
    return hn::TableLookupLanes(hn::Load(d, row), hn::IndicesFromVec(d, piece));
  } else if constexpr (2 * hn::MaxLanes(D()) == kNormalPieces) {
    constexpr int kHalf = kNormalPieces / 2;
    const auto index = hn::IndicesFromVec(d, hn::And(piece, hn::Set(di, kHalf - 1)));
    const auto upper = hn::RebindMask(d, hn::Gt(piece, hn::Set(di, kHalf - 1)));
    return hn::IfThenElse(upper, hn::TableLookupLanes(hn::Load(d, row + kHalf), index),
                          hn::TableLookupLanes(hn::Load(d, row), index));
  } else {
    return hn::GatherIndex(d, row, piece);
  }
}

// |x| in widths of a piece, at most the last piece. NaN ends there too; the callers bring it back.
template <class D>
HWY_INLINE V<D> piece_position(D d, V<D> x) {
  const auto last = hn::Set(d, static_cast<float>(kNormalPieces - 1));
  const auto position = hn::Mul(hn::Abs(x), hn::Set(d, 1.0f / kNormalPieceWidth));
  return hn::IfThenElse(hn::Lt(position, last), position, last);
}

// The polynomial of the piece at `position`; see Note [GELU by pieces].
template <int kDegree, class D>
HWY_INLINE V<D> by_pieces(D d, const float (&rows)[kDegree + 1][kNormalPieces], V<D> position) {
  const auto piece = hn::NearestInt(position);
  const auto t = hn::Sub(position, hn::ConvertTo(d, piece));
  auto y = piece_of(d, rows[kDegree], piece);
  for (int k = kDegree - 1; k >= 0; --k) y = hn::MulAdd(y, t, piece_of(d, rows[k], piece));
  return y;
}

// x P(x), with the normal distribution P.
template <class D>
HWY_INLINE V<D> gelu(D d, const NormalTable& table, V<D> x) {
  const auto position = piece_position(d, x);
  const auto tail = by_pieces<kGeluDegree>(d, table.tail, position);
  const auto rectified = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Zero(d), x);
  return hn::NegMulAdd(position, tail, rectified);
}

// g (P(x) + x p(x)), with the density p.
template <class D>
HWY_INLINE V<D> gelu_backward(D d, const NormalTable& table, V<D> g, V<D> x) {
  const auto s = by_pieces<kGeluSlopeDegree>(d, table.slope, piece_position(d, x));
  const auto positive = hn::Sub(hn::Set(d, 1.0f), s);
  const auto slope = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), s, positive);
  return hn::Mul(g, hn::IfThenElse(hn::IsNaN(x), x, slope));
}

// The argument u of (1 + tanh u) / 2 = sigmoid(2 u), doubled: 2 sqrt(2 / pi) (x + 0.044715 x^3).
template <class D>
HWY_INLINE V<D> gelu_tanh_argument(D d, V<D> x) {
  const auto x2 = hn::Mul(x, x);
  const auto inner = hn::MulAdd(x2, hn::Set(d, 0.0713548162726f), hn::Set(d, 1.59576912160573f));
  return hn::Mul(x, inner);
}

template <class D>
HWY_INLINE V<D> gelu_tanh(D d, V<D> x) {
  // Bounded, or -inf would meet a sigmoid of 0; the sigmoid of a NaN is one.
  return hn::Mul(hn::Max(x, hn::Set(d, -1e4f)), sigmoid(d, gelu_tanh_argument(d, x)));
}

// g (s + x s (1 - s) dv/dx) with s = sigmoid(v(x)).
template <class D>
HWY_INLINE V<D> gelu_tanh_backward(D d, V<D> g, V<D> x) {
  V<D> s, complement;
  sigmoid_pair(d, gelu_tanh_argument(d, x), &s, &complement);
  // Beyond 10 the second term is 0 (s is 0 or 1), and its factors may overflow.
  const auto bounded = hn::IfThenElse(hn::Gt(hn::Abs(x), hn::Set(d, 10.0f)), hn::Zero(d), x);
  const auto x2 = hn::Mul(bounded, bounded);
  const auto slope = hn::MulAdd(x2, hn::Set(d, 0.2140644488178f), hn::Set(d, 1.59576912160573f));
  const auto rest = hn::Mul(hn::Mul(bounded, slope), complement);
  return hn::Mul(g, hn::MulAdd(s, rest, s));
}

}  // namespace vec
}  // namespace kiln::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
