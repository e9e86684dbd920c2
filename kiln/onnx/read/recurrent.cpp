// RNN, GRU and LSTM on the recurrence of the op table.
#include "kiln/core/utf8.h"
#include "kiln/onnx/read/call.h"
#include "kiln/tensor/nn/activations.h"
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

using Activations = std::vector<std::string>;

Activations usual_activations(RecurrenceCell cell) {
  if (cell == RecurrenceCell::gru) return {"Sigmoid", "Tanh"};
  if (cell == RecurrenceCell::lstm) return {"Sigmoid", "Tanh", "Tanh"};
  return {"Tanh"};
}
// Those of each direction, one behind the other.
Activations activations_of(Call& c, RecurrenceCell cell, int64_t directions) {
  const Activations usual = usual_activations(cell);
  const auto* a = c.attribute("activations");
  const size_t count = usual.size() * static_cast<size_t>(directions);
  Activations out;
  for (size_t i = 0; i < count; ++i) out.push_back(usual[i % usual.size()]);
  if (a == nullptr || a->strings.empty()) return out;
  // ONNX Runtime writes the default, which is that of two directions, for one, too.
  if (a->strings.size() < count) c.fail("activations for each direction were expected");
  for (size_t i = 0; i < count; ++i) out[i] = a->strings[i];
  if (c.has("activation_alpha") || c.has("activation_beta")) {
    c.refuse("activation_alpha or activation_beta");
  }
  return out;
}
Tensor activated(Call& c, const std::string& name, const Tensor& x) {
  if (name == "Tanh") return x.tanh();
  if (name == "Sigmoid") return x.sigmoid();
  if (name == "Relu") return x.relu();
  if (name == "Softsign") return functional::softsign(x);
  if (name == "Softplus") return logaddexp(x, zeros_like(x));
  if (name == "HardSigmoid") return x.mul(0.2).add(0.5).clamp(0.0, 1.0);
  if (name == "LeakyRelu") return functional::leaky_relu(x, 0.01);
  if (name == "Elu") return functional::elu(x, 1.0);
  c.refuse("the activation '" + printable(name, 40) + "'");
}

struct Steps {
  Tensor output, hidden, cell;  // [T, N, H], [N, H] and [N, H]
};
// What the fused recurrence has no form for: step by step, with ONNX's gates in ONNX's order.
struct StepwiseCell {
  Call& c;
  RecurrenceCell cell;
  std::span<const std::string> activations;
  Tensor weight, bias, peephole;  // of the states: [G H, H], [G H]; [3 H]
  Tensor lengths;                 // [N, 1]: of the sequences; undefined: all are whole
  int64_t size = 0;

  Tensor part(const Tensor& x, int64_t dim, int64_t i, int64_t count = 1) const {
    return x.defined() ? x.narrow(dim, i * size, count * size) : Tensor();
  }
  Tensor apply(size_t i, const Tensor& x) const {
    const double most = c.f("clip", 0.0);
    return activated(c, activations[i], most > 0 ? x.clamp(-most, most) : x);
  }
  Tensor peep(const Tensor& x, int64_t i, const Tensor& state) const {
    return peephole.defined() ? x.add(part(peephole, 0, i).mul(state)) : x;
  }
  void step(const Tensor& x, Tensor& h, Tensor& state) const {
    if (cell == RecurrenceCell::gru) return gru_step(x, h);
    const Tensor all = x.add(functional::linear(h, weight, bias));
    if (cell != RecurrenceCell::lstm) {
      h = apply(0, all);
      return;
    }
    const Tensor in = apply(0, peep(part(all, 1, 0), 0, state));
    const Tensor forget =
        c.i("input_forget", 0) != 0 ? in.neg().add(1.0) : apply(0, peep(part(all, 1, 2), 2, state));
    state = forget.mul(state).add(in.mul(apply(1, part(all, 1, 3))));
    // As in ONNX Runtime the state itself is not clipped.
    h = apply(0, peep(part(all, 1, 1), 1, state)).mul(activated(c, activations[2], state));
  }
  void gru_step(const Tensor& x, Tensor& h) const {
    const auto gates = functional::linear(h, part(weight, 0, 0, 2), part(bias, 0, 0, 2));
    const Tensor both = apply(0, gates.add(part(x, 1, 0, 2)));
    const Tensor update = part(both, 1, 0), reset = part(both, 1, 1);
    const auto candidate = [&](const Tensor& state) {
      return functional::linear(state, part(weight, 0, 2), part(bias, 0, 2));
    };
    const Tensor from =
        c.i("linear_before_reset", 0) != 0 ? reset.mul(candidate(h)) : candidate(reset.mul(h));
    const Tensor fresh = apply(1, from.add(part(x, 1, 2)));
    h = fresh.add(update.mul(h.sub(fresh)));
  }
  // gate: the input's share [T, N, G H].
  Steps run(const Tensor& gate, Tensor h, Tensor state, bool reverse) const {
    std::vector<Tensor> outputs(static_cast<size_t>(gate.size(0)));
    for (int64_t i = 0; i < gate.size(0); ++i) {
      const int64_t t = reverse ? gate.size(0) - 1 - i : i;
      const Tensor before = h, state_before = state;
      step(gate.select(0, t), h, state);
      Tensor y = h;
      if (lengths.defined()) {  // beyond its end a sequence gives 0, and its state stays
        const Tensor goes_on = lengths.gt(t);
        y = kiln::where(goes_on, h, zeros_like(h));
        h = kiln::where(goes_on, h, before);
        if (state.defined()) state = kiln::where(goes_on, state, state_before);
      }
      outputs[static_cast<size_t>(t)] = y;
    }
    return {outputs.empty() ? gate.narrow(2, 0, size) : stack(outputs, 0), h, state};
  }
};

void recurrent(Call& c, RecurrenceCell cell) {
  const bool lstm = cell == RecurrenceCell::lstm;
  const std::string direction = c.s("direction", "forward");
  const int64_t directions = direction == "bidirectional" ? 2 : 1;
  const Activations all_activations = activations_of(c, cell, directions);
  const size_t each = usual_activations(cell).size();
  const bool batch_first = c.i("layout", 0) != 0;
  const Tensor x = batch_first ? c.in(0).transpose(0, 1) : c.in(0);
  const Tensor w = c.in(1), r = c.in(2);
  if (x.dim() != 3 || w.dim() != 3 || r.dim() != 3 || w.size(0) != directions ||
      r.size(0) != directions) {
    c.fail("expected X of three dims, and W and R for each direction");
  }
  const int64_t steps = x.size(0), count = x.size(1), size = r.size(2);
  const auto first_state = [&](size_t input, int64_t d) {
    if (!c.has(input)) return zeros({count, size}, {.dtype = x.dtype()});
    const Tensor all = batch_first ? c.in(input).transpose(0, 1) : c.in(input);
    return all.select(0, d);
  };
  std::vector<Tensor> outputs, hidden, cells;
  for (int64_t d = 0; d < directions; ++d) {
    const Activations activations(all_activations.begin() + static_cast<int64_t>(each) * d,
                                  all_activations.begin() + static_cast<int64_t>(each) * (d + 1));
    RecurrenceOptions options;
    options.cell =
        cell == RecurrenceCell::tanh && activations[0] == "Relu" ? RecurrenceCell::relu : cell;
    options.batch_sizes.assign(static_cast<size_t>(steps), count);
    options.reverse = d == 1 || direction == "reverse";
    const int64_t gates = options.gates() * size;
    const bool early = cell == RecurrenceCell::gru && c.i("linear_before_reset", 0) == 0;
    const bool usual =
        options.cell == RecurrenceCell::relu || activations == usual_activations(cell);
    const bool stepwise = early || !usual || c.has("clip") || c.i("input_forget", 0) != 0 ||
                          c.has(4) || (lstm && c.has(7));
    const auto in_order = [&](const Tensor& t) { return stepwise ? t : ordered(t, cell, size); };
    Tensor bias, recurrent_bias;
    if (c.has(3)) {
      const Tensor both = c.in(3).select(0, d);
      bias = in_order(both.narrow(0, 0, gates));
      recurrent_bias = in_order(both.narrow(0, gates, gates));
    }
    const Tensor rows = x.reshape({steps * count, x.size(2)});
    const Tensor gate = functional::linear(rows, in_order(w.select(0, d)), bias);
    const Tensor weight = in_order(r.select(0, d));
    const Tensor h = first_state(5, d), state = lstm ? first_state(6, d) : Tensor();
    if (stepwise) {
      const Tensor lengths = c.has(4) ? c.in(4).reshape({count, 1}) : Tensor();
      const Tensor peephole = lstm && c.has(7) ? c.in(7).select(0, d) : Tensor();
      const StepwiseCell by_steps{c,        cell,    activations, weight, recurrent_bias,
                                  peephole, lengths, size};
      const Steps y = by_steps.run(gate.reshape({steps, count, gates}), h, state, options.reverse);
      outputs.push_back(y.output);
      hidden.push_back(y.hidden);
      if (lstm) cells.push_back(y.cell);
      continue;
    }
    const auto y = functional::recurrence(gate, h, state, weight, recurrent_bias, options);
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

constexpr Operator kRecurrentOperators[] = {{"RNN", rnn}, {"GRU", gru}, {"LSTM", lstm}};

}  // namespace

std::span<const Operator> recurrent_operators() { return kRecurrentOperators; }

}  // namespace kiln::onnx
