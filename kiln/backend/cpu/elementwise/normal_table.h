// Polynomials that follow GELU and its slope piece by piece (Note [GELU by pieces]).
#pragma once

namespace kiln::cpu {

// Note [GELU by pieces]
// With the upper tail Q of the normal distribution and its density p,
//   gelu(x)  = max(x, 0) - |x| Q(|x|)
//   gelu'(x) = [x > 0] -+ s(|x|),         s(a) = Q(a) - a p(a), minus for x > 0
// where Q and s are smooth and vanish far out. On pieces of width 0.4, polynomials of degree 5 and
// 6 come within 1e-7 |x| of |x| Q and 4e-8 of s; the last piece, from 5.8 on, is 0, which is off by
// 2e-8 and 1.2e-7 at most. That is half the work of an error function, which needs an exponential
// and a series to choose from, and it is more accurate on the negative side, where 1 + erf cancels.
// The factor |x| stands outside the polynomial so that gelu(x) is x / 2 near 0, and 0 at 0.
inline constexpr int kNormalPieces = 16;
inline constexpr float kNormalPieceWidth = 0.4f;
inline constexpr int kGeluDegree = 5;
inline constexpr int kGeluSlopeDegree = 6;

// Row k holds each piece's coefficient of t^k, with t in [-1/2, 1/2] across the piece; piece i is
// centred at a = 0.4 i. `tail` is 0.4 Q, to be multiplied by a / 0.4.
struct NormalTable {
  alignas(64) float tail[kGeluDegree + 1][kNormalPieces];
  alignas(64) float slope[kGeluSlopeDegree + 1][kNormalPieces];
};

const NormalTable& normal_table();

}  // namespace kiln::cpu
