#include "kiln/nn/recurrent_steps.h"

#include <algorithm>

#include "kiln/core/error.h"
#include "kiln/tensor/nn/activations.h"
#include "kiln/tensor/nn/recurrence.h"
#include "kiln/tensor/ops.h"

namespace kiln::nn::detail {
namespace F = functional;

namespace {

struct NamedActivation {
  const char* name;
  ActivationFunction function;
};
constexpr NamedActivation kActivations[] = {
    {"tanh", [](const Tensor& x) { return tanh(x); }},
    {"relu", [](const Tensor& x) { return relu(x); }},
    {"sigmoid", [](const Tensor& x) { return sigmoid(x); }},
    {"hardsigmoid", [](const Tensor& x) { return F::hardsigmoid(x); }},
    {"hardtanh", [](const Tensor& x) { return F::hardtanh(x); }},
    {"softsign", [](const Tensor& x) { return F::softsign(x); }},
    {"softplus", [](const Tensor& x) { return F::softplus(x); }},
    {"elu", [](const Tensor& x) { return F::elu(x); }},
    {"gelu", [](const Tensor& x) { return gelu(x); }},
    {"leaky_relu", [](const Tensor& x) { return F::leaky_relu(x); }},
    {"silu", [](const Tensor& x) { return silu(x); }},
    {"identity", [](const Tensor& x) { return x; }}};

// One step: xw is the input's part of the gates.
class Step {
 public:
  Step(int64_t gates, const RecurrentWeights& weights, const RecurrentVariant& variant)
      : gates_(gates),
        weights_(weights),
        variant_(variant),
        gate_(recurrent_activation(variant.gate)),
        cell_(recurrent_activation(variant.cell)),
        hidden_(recurrent_activation(variant.hidden)) {}

  // The next hidden state; cell becomes the next one.
  Tensor operator()(const Tensor& xw, const Tensor& hidden, Tensor& cell) const {
    if (gates_ == 4) return lstm(xw, hidden, cell);
    return clipped(gates_ == 3 ? gru(xw, hidden) : hidden_(sum(xw, hidden)));
  }

 private:
  Tensor sum(const Tensor& xw, const Tensor& hidden) const {
    return F::linear(hidden, weights_.w_hh, weights_.b_hh, F::LinearOptions{.residual = xw});
  }
  Tensor clipped(const Tensor& x) const {
    return variant_.clip ? clamp(x, -*variant_.clip, *variant_.clip) : x;
  }

  Tensor lstm(const Tensor& xw, const Tensor& hidden, Tensor& cell) const {
    const std::vector<Tensor> g = sum(xw, hidden).chunk(4, -1);  // i, f, g, o
    const Tensor input = gate_(g[0]);
    const Tensor forget = variant_.input_forget ? 1.0 - input : gate_(g[1]);
    cell = clipped(forget * cell + input * cell_(g[2]));
    const Tensor out = gate_(g[3]) * hidden_(cell);
    return weights_.w_hr.defined() ? F::linear(out, weights_.w_hr) : out;
  }
  Tensor gru(const Tensor& xw, const Tensor& hidden) const {
    const std::vector<Tensor> x = xw.chunk(3, -1);  // r, z, n
    const int64_t size = hidden.size(-1);
    const auto state_part = [&](const Tensor& h, int64_t first, int64_t count) {
      const Tensor bias =
          weights_.b_hh.defined() ? weights_.b_hh.narrow(0, first * size, count * size) : Tensor();
      return F::linear(h, weights_.w_hh.narrow(0, first * size, count * size), bias);
    };
    const std::vector<Tensor> y = state_part(hidden, 0, 2).chunk(2, -1);
    const Tensor reset = gate_(x[0] + y[0]);
    const Tensor update = gate_(x[1] + y[1]);
    const Tensor state =
        variant_.reset_after ? reset * state_part(hidden, 2, 1) : state_part(reset * hidden, 2, 1);
    const Tensor fresh = hidden_(x[2] + state);
    return (1.0 - update) * fresh + update * hidden;
  }

  int64_t gates_;
  const RecurrentWeights& weights_;
  const RecurrentVariant& variant_;
  ActivationFunction gate_, cell_, hidden_;
};

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

// Step by step, for what no kernel computes.
Tensor composed_sequence(bool reverse, const Tensor& xw, const std::vector<int64_t>& batch_sizes,
                         Tensor& hidden, Tensor& cell, const Step& step) {
  const size_t steps = batch_sizes.size();
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
      if (cell.defined()) grow(cell, batch_sizes[t], first_cell);
    } else {
      shrink(hidden, batch_sizes[t], ended_hidden);
      if (cell.defined()) shrink(cell, batch_sizes[t], ended_cells);
    }
    hidden = step(xw.narrow(0, begin[t], batch_sizes[t]), hidden, cell);
    out[t] = hidden;
  }
  join(hidden, ended_hidden);
  join(cell, ended_cells);
  return cat(out, 0);
}

}  // namespace

ActivationFunction recurrent_activation(const std::string& name) {
  for (const NamedActivation& each : kActivations) {
    if (name == each.name) return each.function;
  }
  return nullptr;
}

std::string recurrent_activation_names() {
  std::string out;
  for (const NamedActivation& each : kActivations)
    out += concat(out.empty() ? "" : ", ", each.name);
  return out;
}

RecurrenceCell cell_of(int64_t gates, bool relu) {
  if (gates == 4) return RecurrenceCell::lstm;
  if (gates == 3) return RecurrenceCell::gru;
  return relu ? RecurrenceCell::relu : RecurrenceCell::tanh;
}

Tensor recurrent_sequence(int64_t gates, bool relu, bool reverse, const Tensor& data,
                          const std::vector<int64_t>& batch_sizes, Tensor& hidden, Tensor& cell,
                          const RecurrentWeights& weights, const RecurrentVariant& variant) {
  // One product for all steps.
  const Tensor xw = F::linear(data, weights.w_ih, weights.b_ih);
  if (weights.w_hr.defined() || !(variant == RecurrentVariant())) {
    const Step step(gates, weights, variant);
    return composed_sequence(reverse, xw, batch_sizes, hidden, cell, step);
  }
  RecurrenceOptions options;
  options.cell = cell_of(gates, relu);
  options.reverse = reverse;
  options.batch_sizes = batch_sizes;
  F::RecurrenceResult out =
      F::recurrence(xw, hidden, cell, weights.w_hh, weights.b_hh, std::move(options));
  hidden = std::move(out.hidden);
  cell = std::move(out.cell);
  return out.output;
}

}  // namespace kiln::nn::detail
