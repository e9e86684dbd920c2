// The loss of an RNN transducer: sums over the alignments of a sequence and its target.
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

struct RnntData : LatticeData {
  RnntData(Tensor x, Tensor targets, Tensor ends, Tensor sizes, int64_t blank_class, bool softmax)
      : LatticeData(x, targets, ends, sizes, blank_class),
        rows(x->shape()[1]),
        columns(x->shape()[2]) {
    check("rnnt_loss");
    if (!softmax) return;
    const auto width = static_cast<size_t>(classes);
    for (size_t at = 0; at < values.size(); at += width) {
      const auto begin = values.begin() + static_cast<std::ptrdiff_t>(at);
      const double norm = sum_of_logs({begin, begin + classes});
      for (size_t c = 0; c < width; ++c) values[at + c] -= norm;
    }
  }

  size_t place(int64_t n, int64_t t, int64_t u, int64_t c) const {
    return static_cast<size_t>(((n * rows + t) * columns + u) * classes + c);
  }

  // alpha[t * columns + u]: log of the probability of what reaches place (t, u).
  std::vector<double> alphas(int64_t n) const {
    std::vector<double> alpha(static_cast<size_t>(rows * columns), kNever);
    for (int64_t t = 0; t < end(n); ++t) {
      for (int64_t u = 0; u <= size(n); ++u) {
        std::vector<double> ways = {t == 0 && u == 0 ? 0.0 : kNever};
        if (t > 0) ways.push_back(alpha[at(t - 1, u)] + values[place(n, t - 1, u, blank)]);
        if (u > 0)
          ways.push_back(alpha[at(t, u - 1)] + values[place(n, t, u - 1, label(n, u - 1))]);
        alpha[at(t, u)] = sum_of_logs(ways);
      }
    }
    return alpha;
  }
  size_t at(int64_t t, int64_t u) const { return static_cast<size_t>(t * columns + u); }

  double probability(int64_t n, const std::vector<double>& alpha) const {
    const int64_t t = end(n) - 1, u = size(n);
    return alpha[at(t, u)] + values[place(n, t, u, blank)];
  }

  int64_t rows, columns;
};

}  // namespace

HostHandle Ops::float_rnnt_loss(Tensor x, Tensor targets, Tensor ends, Tensor sizes, int64_t blank,
                                double /*clamp*/, bool softmax) {
  const RnntData data(x, targets, ends, sizes, blank, softmax);
  std::vector<double> out;
  for (int64_t n = 0; n < data.batch; ++n) {
    out.push_back(-data.probability(n, data.alphas(n)));
  }
  return make(Shape{data.batch}, x->dtype(), x->device(), out);
}

// By the rule of chains backwards through the sums of the forward pass: what a place's sum owes to
// each of its terms is the term's share of it.
HostHandle Ops::float_rnnt_loss_backward(Tensor g, Tensor x, Tensor targets, Tensor ends,
                                         Tensor sizes, int64_t blank, double clamp, bool softmax) {
  const RnntData data(x, targets, ends, sizes, blank, softmax);
  const std::vector<double> grads = read<double>(g);
  std::vector<double> out(data.values.size(), 0.0);
  for (int64_t n = 0; n < data.batch; ++n) {
    const std::vector<double> alpha = data.alphas(n);
    if (data.probability(n, alpha) == kNever) continue;
    const int64_t last = data.end(n) - 1;
    const int64_t size = data.size(n);
    std::vector<double> owed(alpha.size(), 0.0);  // d log probability / d alpha
    owed[data.at(last, size)] = 1.0;
    out[data.place(n, last, size, blank)] -= 1.0;
    for (int64_t t = last; t >= 0; --t) {
      for (int64_t u = size; u >= 0; --u) {
        const double here = owed[data.at(t, u)];
        if (here == 0.0) continue;
        const auto give = [&](int64_t from_t, int64_t from_u, int64_t emitted) {
          const size_t at = data.place(n, from_t, from_u, emitted);
          const double share = here * std::exp(alpha[data.at(from_t, from_u)] + data.values[at] -
                                               alpha[data.at(t, u)]);
          owed[data.at(from_t, from_u)] += share;
          out[at] -= share;
        };
        if (t > 0) give(t - 1, u, blank);
        if (u > 0) give(t, u - 1, data.label(n, u - 1));
      }
    }
  }
  // Through log_softmax: p times the sum of what its row got is taken off.
  const auto width = static_cast<size_t>(data.classes);
  for (size_t row = 0; row < out.size(); row += width) {
    double sum = 0.0;
    for (size_t c = 0; c < width; ++c) sum += out[row + c];
    const size_t n = row / static_cast<size_t>(data.rows * data.columns * data.classes);
    for (size_t c = row; c < row + width; ++c) {
      if (softmax) out[c] -= std::exp(data.values[c]) * sum;
      if (clamp > 0.0) out[c] = std::clamp(out[c], -clamp, clamp);
      out[c] *= grads[n];
    }
  }
  return make(x->shape(), x->dtype(), x->device(), out);
}

}  // namespace kiln
