#include "kiln/backend/cpu/elementwise/normal_table.h"

#include <cmath>
#include <numbers>

namespace kiln::cpu {
namespace {

double upper_tail(double a) { return 0.5 * std::erfc(a / std::numbers::sqrt2); }
double density(double a) {
  return std::exp(-0.5 * a * a) * std::numbers::inv_sqrtpi / std::numbers::sqrt2;
}

// The coefficients of the polynomial through f at the Chebyshev nodes of each piece, by Newton's
// divided differences.
template <int kDegree, class F>
void interpolate(float (&rows)[kDegree + 1][kNormalPieces], F f) {
  constexpr int kNodes = kDegree + 1;
  for (int piece = 0; piece < kNormalPieces - 1; ++piece) {
    double node[kNodes];
    double difference[kNodes];
    for (int k = 0; k < kNodes; ++k) {
      node[k] = 0.5 * std::cos((k + 0.5) * std::numbers::pi / kNodes);
      difference[k] = f((piece + node[k]) * static_cast<double>(kNormalPieceWidth));
    }
    for (int order = 1; order < kNodes; ++order) {
      for (int k = kDegree; k >= order; --k) {
        difference[k] = (difference[k] - difference[k - 1]) / (node[k] - node[k - order]);
      }
    }
    double coefficient[kNodes] = {};
    for (int k = kDegree; k >= 0; --k) {  // Horner's rule in (t - node[k])
      for (int power = kDegree; power > 0; --power) {
        coefficient[power] = coefficient[power - 1] - node[k] * coefficient[power];
      }
      coefficient[0] = difference[k] - node[k] * coefficient[0];
    }
    for (int k = 0; k < kNodes; ++k) rows[k][piece] = static_cast<float>(coefficient[k]);
  }
  for (auto& row : rows) row[kNormalPieces - 1] = 0.0f;
}

NormalTable make_table() {
  NormalTable table;
  interpolate<kGeluDegree>(
      table.tail, [](double a) { return static_cast<double>(kNormalPieceWidth) * upper_tail(a); });
  interpolate<kGeluSlopeDegree>(table.slope,
                                [](double a) { return upper_tail(a) - a * density(a); });
  return table;
}

}  // namespace

const NormalTable& normal_table() {
  static const NormalTable table = make_table();
  return table;
}

}  // namespace kiln::cpu
