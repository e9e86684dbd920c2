// Connectionist temporal classification: sums over the alignments of a sequence and its target.
#include "kiln/backend/reference/lattice.h"

namespace kiln {

using reference::kNever;
using reference::LatticeData;
using reference::make;
using reference::Ops;
using reference::read;
using reference::sum_of_logs;
using reference::Tensor;

namespace {

struct CtcData : LatticeData {
  CtcData(Tensor x, Tensor targets, Tensor ends, Tensor sizes, int64_t blank_class)
      : LatticeData(x, targets, ends, sizes, blank_class) {
    check("ctc_loss");
  }

  size_t place(int64_t t, int64_t n, int64_t c) const {
    return static_cast<size_t>((t * batch + n) * classes + c);
  }
  // The class that state k of sequence n stands for.
  int64_t class_of(int64_t n, int64_t k) const { return k % 2 == 0 ? blank : label(n, k / 2); }
  bool may_skip_to(int64_t n, int64_t k) const {
    return k % 2 == 1 && k >= 3 && class_of(n, k) != class_of(n, k - 2);
  }

  // alpha[t][k]: log of the probability of what reaches state k at step t.
  std::vector<std::vector<double>> alphas(int64_t n) const {
    const int64_t states = 2 * size(n) + 1;
    std::vector<std::vector<double>> alpha;
    for (int64_t t = 0; t < end(n); ++t) {
      std::vector<double> row(static_cast<size_t>(states), kNever);
      for (int64_t k = 0; k < states; ++k) {
        std::vector<double> ways = {t == 0 && k < 2 ? 0.0 : kNever};
        const auto from = [&](int64_t state) {
          ways.push_back(alpha.back()[static_cast<size_t>(state)]);
        };
        if (t > 0) from(k);
        if (t > 0 && k >= 1) from(k - 1);
        if (t > 0 && may_skip_to(n, k)) from(k - 2);
        row[static_cast<size_t>(k)] = sum_of_logs(ways) + values[place(t, n, class_of(n, k))];
      }
      alpha.push_back(std::move(row));
    }
    return alpha;
  }

  double probability(int64_t n, const std::vector<std::vector<double>>& alpha) const {
    if (alpha.empty()) return size(n) == 0 ? 0.0 : kNever;
    const std::vector<double>& last = alpha.back();
    return sum_of_logs({last.begin() + std::max<int64_t>(0, 2 * size(n) - 1), last.end()});
  }
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
    if (alpha.empty() || total == kNever) continue;
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
