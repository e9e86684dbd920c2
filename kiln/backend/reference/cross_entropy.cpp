// Softmax cross-entropy of rows of logits against class indices, and the negative log-likelihood.
#include <algorithm>
#include <cmath>

#include "kiln/backend/reference/elements.h"

namespace kiln {

using reference::make;
using reference::Ops;
using reference::read;
using reference::Tensor;

namespace {

// The class that row `r` asks for.
size_t checked_class(int64_t target, size_t row, int64_t classes,
                     const char* op = "cross_entropy") {
  if (target < 0 || target >= classes) {
    throw_error<IndexError>(op, ": class index out of range; got ", target, " in row ", row,
                            "; expected 0 to ", classes - 1);
  }
  return static_cast<size_t>(target);
}

double log_of_sum(std::span<const double> row) {
  const double largest = *std::ranges::max_element(row);
  const double shift = std::isinf(largest) ? 0.0 : largest;
  double sum = 0.0;
  for (double x : row) sum += std::exp(x - shift);
  return shift + std::log(sum);
}

}  // namespace

std::pair<HostHandle, HostHandle> Ops::float_cross_entropy(Tensor logits, Tensor targets,
                                                           const CrossEntropyOptions& options) {
  const int64_t classes = logits->shape()[1];
  const double s = options.label_smoothing;
  reference::Rows<double> rows(logits, Dims{1});
  const std::vector<int64_t> wanted = read<int64_t>(targets);
  std::vector<double> losses;
  std::vector<double> lses;
  for (size_t r = 0; r < wanted.size(); ++r) {
    const std::span<const double> row = rows.row(static_cast<int64_t>(r));
    const double lse = log_of_sum(row);
    double loss = 0.0;
    if (wanted[r] != options.ignore_index) {
      loss = (1.0 - s) * (lse - row[checked_class(wanted[r], r, classes)]);
      for (double x : row) loss += s == 0.0 ? 0.0 : s / static_cast<double>(classes) * (lse - x);
    }
    losses.push_back(loss);
    lses.push_back(lse);
  }
  const Shape shape = {logits->shape()[0]};
  return {make(shape, logits->dtype(), logits->device(), losses),
          make(shape, logits->dtype(), logits->device(), lses)};
}

HostHandle Ops::float_cross_entropy_backward(Tensor g, Tensor logits, Tensor targets, Tensor lse,
                                             const CrossEntropyOptions& options) {
  const int64_t classes = logits->shape()[1];
  const double s = options.label_smoothing;
  const std::vector<double> grads = read<double>(g);
  const std::vector<double> lses = read<double>(lse);
  const std::vector<int64_t> wanted = read<int64_t>(targets);
  reference::Rows<double> rows(logits, Dims{1});
  for (size_t r = 0; r < wanted.size(); ++r) {
    const std::span<double> row = rows.row(static_cast<int64_t>(r));
    if (wanted[r] == options.ignore_index) {
      std::ranges::fill(row, 0.0);
      continue;
    }
    const size_t target = checked_class(wanted[r], r, classes);
    for (size_t c = 0; c < row.size(); ++c) {
      const double share = (c == target ? 1.0 - s : 0.0) + s / static_cast<double>(classes);
      row[c] = grads[r] * (std::exp(row[c] - lses[r]) - share);
    }
  }
  return make(logits->shape(), logits->dtype(), logits->device(), rows.values);
}

HostHandle Ops::float_nll_loss(Tensor x, Tensor classes, const HostHandle* weight,
                               int64_t ignored) {
  const Shape& shape = x->shape();
  const std::vector<double> values = read<double>(x);
  const std::vector<int64_t> wanted = read<int64_t>(classes);
  const std::vector<double> weights = weight == nullptr
                                          ? std::vector<double>(static_cast<size_t>(shape[1]), 1.0)
                                          : read<double>(*weight);
  std::vector<double> out(wanted.size(), 0.0);
  for (size_t i = 0; i < out.size(); ++i) {
    if (wanted[i] == ignored) continue;
    const size_t y = checked_class(wanted[i], i, shape[1], "nll_loss");
    const auto places = static_cast<size_t>(shape[2]);
    const size_t example = i / places, place = i % places;
    out[i] = -weights[y] * values[(example * static_cast<size_t>(shape[1]) + y) * places + place];
  }
  return make(classes->shape(), x->dtype(), x->device(), out);
}

HostHandle Ops::float_nll_loss_backward(Tensor g, Tensor classes, const HostHandle* weight,
                                        int64_t count, int64_t ignored) {
  const Shape& shape = g->shape();
  const std::vector<double> grads = read<double>(g);
  const std::vector<int64_t> wanted = read<int64_t>(classes);
  const std::vector<double> weights = weight == nullptr
                                          ? std::vector<double>(static_cast<size_t>(count), 1.0)
                                          : read<double>(*weight);
  const Shape to{shape[0], count, shape[1]};
  std::vector<double> out(static_cast<size_t>(to.numel()), 0.0);
  for (size_t i = 0; i < grads.size(); ++i) {
    if (wanted[i] == ignored) continue;
    const size_t y = checked_class(wanted[i], i, count, "nll_loss");
    const auto places = static_cast<size_t>(shape[1]);
    const size_t example = i / places, place = i % places;
    out[(example * static_cast<size_t>(count) + y) * places + place] = -weights[y] * grads[i];
  }
  return make(to, g->dtype(), g->device(), out);
}

}  // namespace kiln
