// Sequences and their targets as plain lists, and sums of probabilities by their logarithms.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "kiln/backend/reference/elements.h"

namespace kiln::reference {

inline constexpr double kNever = -std::numeric_limits<double>::infinity();

inline double sum_of_logs(const std::vector<double>& x) {
  const double high = *std::ranges::max_element(x);
  if (high == kNever) return kNever;
  double sum = 0.0;
  for (const double v : x) sum += std::exp(v - high);
  return high + std::log(sum);
}

// `values` are log probabilities.
struct LatticeData {
  LatticeData(Tensor x, Tensor targets, Tensor ends, Tensor sizes, int64_t blank_class)
      : values(read<double>(x)),
        labels(read<int64_t>(targets)),
        steps(read<int64_t>(ends)),
        lengths(read<int64_t>(sizes)),
        batch(ends->shape()[0]),
        classes(x->shape().back()),
        longest(targets->shape()[1]),
        blank(blank_class) {}

  void check(const char* op) const {
    for (int64_t n = 0; n < batch; ++n) {
      for (int64_t s = 0; s < size(n); ++s) {
        if (label(n, s) >= 0 && label(n, s) < classes) continue;
        throw_error<IndexError>(op, ": a target is no class; got ", label(n, s));
      }
    }
  }

  int64_t end(int64_t n) const { return steps[static_cast<size_t>(n)]; }
  int64_t size(int64_t n) const { return lengths[static_cast<size_t>(n)]; }
  int64_t label(int64_t n, int64_t s) const { return labels[static_cast<size_t>(n * longest + s)]; }

  std::vector<double> values;
  std::vector<int64_t> labels, steps, lengths;
  int64_t batch, classes, longest, blank;
};

}  // namespace kiln::reference
