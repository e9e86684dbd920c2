#include "kiln/nn/lstm_sequence.h"

#include <algorithm>
#include <any>
#include <vector>

#include "kiln/nn/recurrent_steps.h"
#include "kiln/tensor/autograd/custom_function.h"
#include "kiln/tensor/autograd/grad_mode.h"
#include "kiln/tensor/elementwise/pointwise.h"
#include "kiln/tensor/ops.h"

namespace kiln::nn::detail {
namespace {

namespace F = functional;

// The steps op by op.
TensorList recorded(const TensorList& in, bool reverse) {
  const int64_t steps = in[0].size(0);
  const RecurrentWeights weights{{}, in[3], {}, in[4], {}};
  Tensor h = in[1], c = in[2];
  std::vector<Tensor> out(static_cast<size_t>(steps));
  for (int64_t i = 0; i < steps; ++i) {
    const int64_t t = reverse ? steps - 1 - i : i;
    h = recurrent_step(4, false, in[0].select(0, t), h, c, weights);
    out[static_cast<size_t>(t)] = h;
  }
  return {stack(out, 0), h, c};
}

// x[0], .., x[T - 1] -> before, x[0], .., x[T - 2].
Tensor shifted(const Tensor& before, const Tensor& x) {
  return cat({before.unsqueeze(0), x.narrow(0, 0, x.size(0) - 1)}, 0);
}

TensorList forward(FunctionContext& ctx, const TensorList& in, bool reverse) {
  const Tensor &xw = in[0], &w_hh = in[3], &b_hh = in[4];
  const int64_t steps = xw.size(0), size = in[1].size(1);
  Tensor h = in[1], c = in[2];
  // In the order of the steps: the sigmoids of all gates, g, cells and hidden states.
  std::vector<Tensor> gates, inner, cells, hidden;
  for (int64_t i = 0; i < steps; ++i) {
    const Tensor sum = F::linear(
        h, w_hh, b_hh, F::LinearOptions{.residual = xw.select(0, reverse ? steps - 1 - i : i)});
    const Tensor s = sigmoid(sum);
    const Tensor g = tanh(sum.narrow(1, 2 * size, size));
    c = addcmul(s.narrow(1, size, size) * c, s.narrow(1, 0, size), g);
    h = s.narrow(1, 3 * size, size) * tanh(c);
    gates.push_back(s);
    inner.push_back(g);
    cells.push_back(c);
    hidden.push_back(h);
  }
  TensorList saved = in;
  const Tensor states = stack(hidden, 0);
  for (const std::vector<Tensor>* x : {&gates, &inner, &cells}) saved.push_back(stack(*x, 0));
  saved.push_back(states);
  ctx.save_for_backward(std::move(saved));
  if (reverse) std::reverse(hidden.begin(), hidden.end());
  return {reverse ? stack(hidden, 0) : states.clone(), h, c};
}

TensorList backward(FunctionContext& ctx, const TensorList& grads, bool reverse) {
  const TensorList saved = ctx.saved_tensors();
  const TensorList in(saved.begin(), saved.begin() + 5);
  if (is_grad_enabled()) {  // the gradient itself is recorded
    TensorList wanted, out(5);
    std::vector<size_t> places;
    for (size_t i = 0; i < in.size(); ++i) {
      if (!in[i].defined() || !in[i].requires_grad()) continue;
      wanted.push_back(in[i]);
      places.push_back(i);
    }
    const TensorList found =
        grad(recorded(in, reverse), wanted, {.grad_outputs = grads, .create_graph = true});
    for (size_t i = 0; i < places.size(); ++i) out[places[i]] = found[i];
    return out;
  }
  const Tensor &h0 = in[1], &c0 = in[2], &w_hh = in[3];
  const Tensor &s = saved[5], &g = saved[6], &cells = saved[7], &hidden = saved[8];
  const int64_t steps = s.size(0), batch = s.size(1), size = g.size(2);
  const Tensor i = s.narrow(2, 0, size), f = s.narrow(2, size, size),
               o = s.narrow(2, 3 * size, size);
  const Tensor tanh_cells = tanh(cells);
  // What the gradients of the cell and of the hidden state are multiplied with, for all steps.
  const Tensor to_cell = o * (1.0 - tanh_cells * tanh_cells);
  const Tensor ds = s * (1.0 - s);
  const Tensor cell_gates = stack(
      {g * ds.narrow(2, 0, size), shifted(c0, cells) * ds.narrow(2, size, size), i * (1.0 - g * g)},
      2);  // [T, N, 3, H]
  const Tensor out_gate = tanh_cells * ds.narrow(2, 3 * size, size);
  const Tensor back = w_hh.t().contiguous();

  Tensor dc = grads[2], dh, gates;
  std::vector<Tensor> all(static_cast<size_t>(steps));
  for (int64_t step = steps - 1; step >= 0; --step) {
    const Tensor own = grads[0].select(0, reverse ? steps - 1 - step : step);
    dh = step == steps - 1
             ? own + grads[1]
             : F::linear(gates, back, {}, F::LinearOptions{.residual = own.contiguous()});
    dc = addcmul(dc, dh, to_cell.select(0, step));
    gates = cat({dc.unsqueeze(1) * cell_gates.select(0, step),
                 (dh * out_gate.select(0, step)).unsqueeze(1)},
                1)
                .reshape({batch, 4 * size});
    dc = dc * f.select(0, step);
    all[static_cast<size_t>(step)] = gates;
  }
  const Tensor flat = cat(all, 0);  // [T N, 4 H]
  const Tensor before = shifted(h0, hidden).flatten(0, 1);
  if (reverse) std::reverse(all.begin(), all.end());
  return {stack(all, 0), F::linear(gates, back), dc, flat.t().matmul(before),
          in[4].defined() ? flat.sum(0) : Tensor()};
}

}  // namespace

LSTMSequence lstm_sequence(const Tensor& xw, const Tensor& hidden, const Tensor& cell,
                           const Tensor& w_hh, const Tensor& b_hh, bool reverse) {
  const TensorList out = call_function(
      "LSTM", {xw, hidden, cell, w_hh, b_hh},
      [reverse](FunctionContext& ctx, const TensorList& in) { return forward(ctx, in, reverse); },
      [reverse](FunctionContext& ctx, const TensorList& grads) {
        return backward(ctx, grads, reverse);
      });
  return {out[0], out[1], out[2]};
}

}  // namespace kiln::nn::detail
