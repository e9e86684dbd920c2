// Connectionist temporal classification: sums over the alignments of a sequence and its target.
#include <algorithm>
#include <cmath>
#include <limits>

#include "kiln/backend/reference/elements.h"

namespace kiln {

using reference::make;
using reference::Ops;
using reference::read;
using reference::Tensor;

namespace {

constexpr double kImpossible = -std::numeric_limits<double>::infinity();

double sum_of_two(double a, double b) {
  const double high = std::max(a, b);
  if (high == kImpossible) return kImpossible;
  return high + std::log(std::exp(a - high) + std::exp(b - high));
}

// A batch as plain lists.
struct CtcData {
  CtcData(Tensor x, Tensor targets, Tensor ends, Tensor sizes, int64_t blank_class)
      : values(read<double>(x)),
        labels(read<int64_t>(targets)),
        steps(read<int64_t>(ends)),
        lengths(read<int64_t>(sizes)),
        batch(x->shape()[1]),
        classes(x->shape()[2]),
        longest(targets->shape()[1]),
        blank(blank_class) {
    for (int64_t n = 0; n < batch; ++n) {
      for (int64_t s = 0; s < lengths[static_cast<size_t>(n)]; ++s) {
        const int64_t label = labels[static_cast<size_t>(n * longest + s)];
        if (label >= 0 && label < classes) continue;
        throw_error<IndexError>("ctc_loss: a target is no class; got ", label);
      }
    }
  }

  size_t place(int64_t t, int64_t n, int64_t c) const {
    return static_cast<size_t>((t * batch + n) * classes + c);
  }
  // The class that state k of sequence n stands for.
  int64_t class_of(int64_t n, int64_t k) const {
    return k % 2 == 0 ? blank : labels[static_cast<size_t>(n * longest + k / 2)];
  }
  bool may_skip_to(int64_t n, int64_t k) const {
    return k % 2 == 1 && k >= 3 && class_of(n, k) != class_of(n, k - 2);
  }

  // alpha[t][k]: log of the probability of what reaches state k at step t.
  std::vector<std::vector<double>> alphas(int64_t n) const {
    const int64_t states = 2 * lengths[static_cast<size_t>(n)] + 1;
    std::vector<std::vector<double>> alpha;
    for (int64_t t = 0; t < steps[static_cast<size_t>(n)]; ++t) {
      std::vector<double> row(static_cast<size_t>(states), kImpossible);
      for (int64_t k = 0; k < states; ++k) {
        double reached = t == 0 && k < 2 ? 0.0 : kImpossible;
        if (t > 0) {
          const std::vector<double>& before = alpha.back();
          reached = before[static_cast<size_t>(k)];
          if (k >= 1) reached = sum_of_two(reached, before[static_cast<size_t>(k - 1)]);
          if (may_skip_to(n, k)) reached = sum_of_two(reached, before[static_cast<size_t>(k - 2)]);
        }
        row[static_cast<size_t>(k)] = reached + values[place(t, n, class_of(n, k))];
      }
      alpha.push_back(std::move(row));
    }
    return alpha;
  }

  double probability(int64_t n, const std::vector<std::vector<double>>& alpha) const {
    const int64_t size = lengths[static_cast<size_t>(n)];
    if (alpha.empty()) return size == 0 ? 0.0 : kImpossible;
    const double last = alpha.back()[static_cast<size_t>(2 * size)];
    return size == 0 ? last : sum_of_two(last, alpha.back()[static_cast<size_t>(2 * size - 1)]);
  }

  std::vector<double> values;
  std::vector<int64_t> labels, steps, lengths;
  int64_t batch, classes, longest, blank;
};

}  // namespace

HostHandle Ops::float_ctc_loss(Tensor x, Tensor targets, Tensor ends, Tensor sizes, int64_t blank) {
  const CtcData data(x, targets, ends, sizes, blank);
  std::vector<double> out;
  for (int64_t n = 0; n < data.batch; ++n) {
    out.push_back(-data.probability(n, data.alphas(n)));
  }
  return make(Shape{data.batch}, x->dtype(), x->device(), out);
}

// By the rule of chains backwards through the sums of the forward pass: what a step's sum owes to
// each of its terms is the term's share of it.
HostHandle Ops::float_ctc_loss_backward(Tensor g, Tensor x, Tensor targets, Tensor ends,
                                        Tensor sizes, int64_t blank) {
  const CtcData data(x, targets, ends, sizes, blank);
  const std::vector<double> grads = read<double>(g);
  std::vector<double> out(data.values.size(), 0.0);
  for (int64_t n = 0; n < data.batch; ++n) {
    const auto alpha = data.alphas(n);
    const double total = data.probability(n, alpha);
    if (alpha.empty() || total == kImpossible) continue;
    const auto states = static_cast<int64_t>(alpha[0].size());
    // d total / d alpha[t][k].
    std::vector<double> share(alpha[0].size(), 0.0);
    for (int64_t k = std::max<int64_t>(0, states - 2); k < states; ++k) {
      share[static_cast<size_t>(k)] = std::exp(alpha.back()[static_cast<size_t>(k)] - total);
    }
    for (int64_t t = static_cast<int64_t>(alpha.size()) - 1; t >= 0; --t) {
      std::vector<double> before(share.size(), 0.0);
      for (int64_t k = 0; k < states; ++k) {
        const double owed = share[static_cast<size_t>(k)];
        if (owed == 0.0) continue;
        const double emitted = data.values[data.place(t, n, data.class_of(n, k))];
        out[data.place(t, n, data.class_of(n, k))] -= grads[static_cast<size_t>(n)] * owed;
        if (t == 0) continue;
        const double sum = alpha[static_cast<size_t>(t)][static_cast<size_t>(k)] - emitted;
        const std::vector<double>& row = alpha[static_cast<size_t>(t - 1)];
        for (int64_t from = std::max<int64_t>(0, k - 2); from <= k; ++from) {
          if (from == k - 2 && !data.may_skip_to(n, k)) continue;
          before[static_cast<size_t>(from)] +=
              owed * std::exp(row[static_cast<size_t>(from)] - sum);
        }
      }
      share = before;
    }
  }
  return make(x->shape(), x->dtype(), x->device(), out);
}

}  // namespace kiln
