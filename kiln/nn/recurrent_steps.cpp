#include "kiln/nn/recurrent_steps.h"

#include <algorithm>

#include "kiln/nn/lstm_sequence.h"
#include "kiln/tensor/autograd/grad_mode.h"
#include "kiln/tensor/ops.h"

namespace kiln::nn::detail {
namespace F = functional;

Tensor recurrent_step(int64_t gates, bool relu, const Tensor& xw, const Tensor& hidden,
                      Tensor& cell, const RecurrentWeights& weights) {
  if (gates == 3) {  // r, z, n: the reset gate stands before n's sum
    const std::vector<Tensor> x = xw.chunk(3, -1);
    const std::vector<Tensor> h = F::linear(hidden, weights.w_hh, weights.b_hh).chunk(3, -1);
    const Tensor r = sigmoid(x[0] + h[0]), z = sigmoid(x[1] + h[1]);
    const Tensor n = tanh(x[2] + r * h[2]);
    return n + z * (hidden - n);
  }
  const Tensor sum =
      F::linear(hidden, weights.w_hh, weights.b_hh, F::LinearOptions{.residual = xw});
  if (gates == 1) return relu ? kiln::relu(sum) : tanh(sum);
  const std::vector<Tensor> g = sum.chunk(4, -1);  // i, f, g, o
  cell = sigmoid(g[1]) * cell + sigmoid(g[0]) * tanh(g[2]);
  const Tensor out = sigmoid(g[3]) * tanh(cell);
  return weights.w_hr.defined() ? F::linear(out, weights.w_hr) : out;
}

namespace {

// The first `count` rows of a state; those of sequences that have ended go to `ended`.
void shrink(Tensor& state, int64_t count, std::vector<Tensor>& ended) {
  if (!state.defined() || state.size(0) == count) return;
  ended.push_back(state.narrow(0, count, state.size(0) - count));
  state = state.narrow(0, 0, count);
}

// The rows of sequences that begin, for steps from last to first.
void grow(Tensor& state, int64_t count, const Tensor& first) {
  if (!state.defined() || state.size(0) == count) return;
  state = cat({state, first.narrow(0, state.size(0), count - state.size(0))}, 0);
}

// What shrink took away, behind what is left.
void join(Tensor& state, std::vector<Tensor>& ended) {
  if (ended.empty()) return;
  ended.push_back(state);
  std::reverse(ended.begin(), ended.end());
  state = cat(ended, 0);
}

}  // namespace

Tensor recurrent_sequence(int64_t gates, bool relu, bool reverse, const Tensor& data,
                          const std::vector<int64_t>& batch_sizes, Tensor& hidden, Tensor& cell,
                          const RecurrentWeights& weights) {
  // One product for all steps.
  const Tensor xw = F::linear(data, weights.w_ih, weights.b_ih);
  const size_t steps = batch_sizes.size();
  const bool records = is_grad_enabled() && (xw.requires_grad() || hidden.requires_grad() ||
                                             weights.w_hh.requires_grad());
  if (gates == 4 && records && !weights.w_hr.defined() && batch_sizes.back() == batch_sizes[0]) {
    const Tensor all = xw.reshape({static_cast<int64_t>(steps), batch_sizes[0], xw.size(1)});
    LSTMSequence out = lstm_sequence(all, hidden, cell, weights.w_hh, weights.b_hh, reverse);
    hidden = std::move(out.hidden);
    cell = std::move(out.cell);
    return out.output.flatten(0, 1);
  }
  std::vector<int64_t> begin(steps, 0);
  for (size_t t = 1; t < steps; ++t) begin[t] = begin[t - 1] + batch_sizes[t - 1];

  std::vector<Tensor> out(steps), ended_hidden, ended_cells;
  const Tensor first_hidden = hidden, first_cell = cell;
  if (reverse) {
    hidden = hidden.narrow(0, 0, batch_sizes.back());
    if (cell.defined()) cell = cell.narrow(0, 0, batch_sizes.back());
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
    hidden =
        recurrent_step(gates, relu, xw.narrow(0, begin[t], batch_sizes[t]), hidden, cell, weights);
    out[t] = hidden;
  }
  join(hidden, ended_hidden);
  if (cell.defined()) join(cell, ended_cells);
  return cat(out, 0);
}

}  // namespace kiln::nn::detail
