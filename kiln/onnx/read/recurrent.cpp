// RNN, GRU and LSTM on the recurrence of the op table.
#include "kiln/onnx/read/call.h"
#include "kiln/tensor/nn/recurrence.h"

namespace kiln::onnx {

namespace {

// ONNX's gates in Kiln's order.
Tensor ordered(const Tensor& x, RecurrenceCell cell, int64_t size) {
  const auto gate = [&](int64_t i) { return x.narrow(0, i * size, size); };
  if (cell == RecurrenceCell::lstm) return cat({gate(0), gate(2), gate(3), gate(1)}, 0);
  if (cell == RecurrenceCell::gru) return cat({gate(1), gate(0), gate(2)}, 0);
  return x;
}

void check_activations(Call& c, RecurrenceCell& cell, int64_t directions) {
  const auto* a = c.attribute("activations");
  if (a == nullptr) return;
  std::vector<std::string> usual{"Tanh"};
  if (cell == RecurrenceCell::gru) usual = {"Sigmoid", "Tanh"};
  if (cell == RecurrenceCell::lstm) usual = {"Sigmoid", "Tanh", "Tanh"};
  const bool relu = cell == RecurrenceCell::tanh && !a->strings.empty() && a->strings[0] == "Relu";
  if (relu) usual = {"Relu"};
  if (a->strings.size() != usual.size() * static_cast<size_t>(directions)) {
    c.fail("activations for each direction were expected");
  }
  for (size_t i = 0; i < a->strings.size(); ++i) {
    if (a->strings[i] != usual[i % usual.size()]) c.refuse("other activations than the usual ones");
  }
  if (relu) cell = RecurrenceCell::relu;
}

struct Steps {
  Tensor output, hidden;  // [T, N, H] and [N, H]
};
// A GRU that resets its state before the product: step by step. gate: the input's share [T, N, 3
// H], in Kiln's order (reset, update, new).
Steps early_reset_gru(const Tensor& gate, Tensor h, const Tensor& weight, const Tensor& bias,
                      bool reverse) {
  const int64_t size = h.size(1);
  const auto part = [&](const Tensor& x, int64_t dim, int64_t i, int64_t count) {
    return x.defined() ? x.narrow(dim, i * size, count * size) : Tensor();
  };
  std::vector<Tensor> outputs(static_cast<size_t>(gate.size(0)));
  for (int64_t i = 0; i < gate.size(0); ++i) {
    const int64_t t = reverse ? gate.size(0) - 1 - i : i;
    const Tensor x = gate.select(0, t);
    const Tensor both = functional::linear(h, part(weight, 0, 0, 2), part(bias, 0, 0, 2))
                            .add(part(x, 1, 0, 2))
                            .sigmoid();
    const Tensor reset = part(both, 1, 0, 1), update = part(both, 1, 1, 1);
    const Tensor fresh =
        functional::linear(reset.mul(h), part(weight, 0, 2, 1), part(bias, 0, 2, 1))
            .add(part(x, 1, 2, 1))
            .tanh();
    h = fresh.add(update.mul(h.sub(fresh)));
    outputs[static_cast<size_t>(t)] = h;
  }
  return {outputs.empty() ? gate.narrow(2, 0, size) : stack(outputs, 0), h};
}

void recurrent(Call& c, RecurrenceCell cell) {
  const bool lstm = cell == RecurrenceCell::lstm;
  const std::string direction = c.s("direction", "forward");
  const int64_t directions = direction == "bidirectional" ? 2 : 1;
  check_activations(c, cell, directions);
  const bool early = cell == RecurrenceCell::gru && c.i("linear_before_reset", 0) == 0;
  if (c.has("clip") || c.i("input_forget", 0) != 0 || c.has(4) || (lstm && c.has(7))) {
    c.refuse("clip, input_forget, sequence_lens or peepholes");
  }
  const bool batch_first = c.i("layout", 0) != 0;
  const Tensor x = batch_first ? c.in(0).transpose(0, 1) : c.in(0);
  const Tensor w = c.in(1), r = c.in(2);
  if (x.dim() != 3 || w.dim() != 3 || r.dim() != 3 || w.size(0) != directions ||
      r.size(0) != directions) {
    c.fail("expected X of three dims, and W and R for each direction");
  }
  const int64_t steps = x.size(0), count = x.size(1), size = r.size(2);
  RecurrenceOptions options;
  options.cell = cell;
  options.batch_sizes.assign(static_cast<size_t>(steps), count);
  const int64_t gates = options.gates() * size;
  const auto first_state = [&](size_t input, int64_t d) {
    if (!c.has(input)) return zeros({count, size}, {.dtype = x.dtype()});
    const Tensor all = batch_first ? c.in(input).transpose(0, 1) : c.in(input);
    return all.select(0, d);
  };
  std::vector<Tensor> outputs, hidden, cells;
  for (int64_t d = 0; d < directions; ++d) {
    Tensor bias, recurrent_bias;
    if (c.has(3)) {
      const Tensor both = c.in(3).select(0, d);
      bias = ordered(both.narrow(0, 0, gates), cell, size);
      recurrent_bias = ordered(both.narrow(0, gates, gates), cell, size);
    }
    options.reverse = d == 1 || direction == "reverse";
    const Tensor rows = x.reshape({steps * count, x.size(2)});
    const Tensor gate = functional::linear(rows, ordered(w.select(0, d), cell, size), bias);
    if (early) {
      const Steps y =
          early_reset_gru(gate.reshape({steps, count, gates}), first_state(5, d),
                          ordered(r.select(0, d), cell, size), recurrent_bias, options.reverse);
      outputs.push_back(y.output);
      hidden.push_back(y.hidden);
      continue;
    }
    const auto y =
        functional::recurrence(gate, first_state(5, d), lstm ? first_state(6, d) : Tensor(),
                               ordered(r.select(0, d), cell, size), recurrent_bias, options);
    outputs.push_back(y.output.reshape({steps, count, size}));
    hidden.push_back(y.hidden);
    if (lstm) cells.push_back(y.cell);
  }
  const Tensor all = stack(outputs, 1), last = stack(hidden, 0);
  c.out(batch_first ? all.permute({2, 0, 1, 3}) : all, 0);
  c.out(batch_first ? last.transpose(0, 1) : last, 1);
  if (!lstm) return;
  const Tensor last_cells = stack(cells, 0);
  c.out(batch_first ? last_cells.transpose(0, 1) : last_cells, 2);
}

void rnn(Call& c) { recurrent(c, RecurrenceCell::tanh); }
void gru(Call& c) { recurrent(c, RecurrenceCell::gru); }
void lstm(Call& c) { recurrent(c, RecurrenceCell::lstm); }

constexpr Operator kOperators[] = {{"RNN", rnn}, {"GRU", gru}, {"LSTM", lstm}};

}  // namespace

std::span<const Operator> recurrent_operators() { return kOperators; }

}  // namespace kiln::onnx
