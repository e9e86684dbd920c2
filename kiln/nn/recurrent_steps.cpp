#include "kiln/nn/recurrent_steps.h"

#include <algorithm>

#include "kiln/tensor/nn/recurrence.h"
#include "kiln/tensor/ops.h"

namespace kiln::nn::detail {
namespace F = functional;

namespace {

// A step of an LSTM whose hidden states are projected: they are [n, P] and cell states [n, H].
Tensor projected_step(const Tensor& xw, const Tensor& hidden, Tensor& cell,
                      const RecurrentWeights& weights) {
  const Tensor sum =
      F::linear(hidden, weights.w_hh, weights.b_hh, F::LinearOptions{.residual = xw});
  const std::vector<Tensor> g = sum.chunk(4, -1);  // i, f, g, o
  cell = sigmoid(g[1]) * cell + sigmoid(g[0]) * tanh(g[2]);
  return F::linear(sigmoid(g[3]) * tanh(cell), weights.w_hr);
}

// The first `count` rows of a state; those of sequences that have ended go to `ended`.
void shrink(Tensor& state, int64_t count, std::vector<Tensor>& ended) {
  if (state.size(0) == count) return;
  ended.push_back(state.narrow(0, count, state.size(0) - count));
  state = state.narrow(0, 0, count);
}

// The rows of sequences that begin, for steps from last to first.
void grow(Tensor& state, int64_t count, const Tensor& first) {
  if (state.size(0) == count) return;
  state = cat({state, first.narrow(0, state.size(0), count - state.size(0))}, 0);
}

// What shrink took away, behind what is left.
void join(Tensor& state, std::vector<Tensor>& ended) {
  if (ended.empty()) return;
  ended.push_back(state);
  std::reverse(ended.begin(), ended.end());
  state = cat(ended, 0);
}

Tensor projected_sequence(bool reverse, const Tensor& xw, const std::vector<int64_t>& batch_sizes,
                          Tensor& hidden, Tensor& cell, const RecurrentWeights& weights) {
  const size_t steps = batch_sizes.size();
  std::vector<int64_t> begin(steps, 0);
  for (size_t t = 1; t < steps; ++t) begin[t] = begin[t - 1] + batch_sizes[t - 1];

  std::vector<Tensor> out(steps), ended_hidden, ended_cells;
  const Tensor first_hidden = hidden, first_cell = cell;
  if (reverse) {
    hidden = hidden.narrow(0, 0, batch_sizes.back());
    cell = cell.narrow(0, 0, batch_sizes.back());
  }
  for (size_t i = 0; i < steps; ++i) {
    const size_t t = reverse ? steps - 1 - i : i;
    if (reverse) {
      grow(hidden, batch_sizes[t], first_hidden);
      grow(cell, batch_sizes[t], first_cell);
    } else {
      shrink(hidden, batch_sizes[t], ended_hidden);
      shrink(cell, batch_sizes[t], ended_cells);
    }
    hidden = projected_step(xw.narrow(0, begin[t], batch_sizes[t]), hidden, cell, weights);
    out[t] = hidden;
  }
  join(hidden, ended_hidden);
  join(cell, ended_cells);
  return cat(out, 0);
}

}  // namespace

Tensor recurrent_sequence(int64_t gates, bool relu, bool reverse, const Tensor& data,
                          const std::vector<int64_t>& batch_sizes, Tensor& hidden, Tensor& cell,
                          const RecurrentWeights& weights) {
  // One product for all steps.
  const Tensor xw = F::linear(data, weights.w_ih, weights.b_ih);
  if (weights.w_hr.defined()) {
    return projected_sequence(reverse, xw, batch_sizes, hidden, cell, weights);
  }
  RecurrenceOptions options;
  options.cell = gates == 4   ? RecurrenceCell::lstm
                 : gates == 3 ? RecurrenceCell::gru
                 : relu       ? RecurrenceCell::relu
                              : RecurrenceCell::tanh;
  options.reverse = reverse;
  options.batch_sizes = batch_sizes;
  F::RecurrenceResult out =
      F::recurrence(xw, hidden, cell, weights.w_hh, weights.b_hh, std::move(options));
  hidden = std::move(out.hidden);
  cell = std::move(out.cell);
  return out.output;
}

}  // namespace kiln::nn::detail
