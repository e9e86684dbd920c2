// RNN, GRU and LSTM, over padded and over packed sequences, and their single steps.
#include "kiln/nn/packed_sequence.h"
#include "kiln/pt2/ops/forms.h"
#include "kiln/tensor/nn/recurrence.h"

namespace kiln::pt2 {

namespace {

struct Layers {
  RecurrenceCell cell = RecurrenceCell::tanh;
  std::vector<int64_t> batch_sizes;
  Tensor rows;                          // [all steps, features]
  TensorList first_hidden, first_cell;  // for each layer and direction
  TensorList last_hidden, last_cell = {};
};

// Runs all layers and directions on the rows.
void run(Call& c, Layers& state) {
  const TensorList params = c.list("params");
  const bool biases = c.b("has_biases"), both_ways = c.b("bidirectional");
  const int64_t layers = c.i("num_layers");
  const bool trains = c.b("train");
  const double dropout = c.f("dropout");
  const size_t directions = both_ways ? 2 : 1, each = biases ? 4 : 2;
  if (layers < 1 || params.size() % (directions * each) != 0 ||
      params.size() / (directions * each) != static_cast<size_t>(layers)) {
    c.refuse(concat(params.size(), " weights; expected ", each, " for each layer and direction"));
  }
  if (state.first_hidden.size() != directions * static_cast<size_t>(layers) ||
      (state.cell == RecurrenceCell::lstm &&
       state.first_cell.size() != state.first_hidden.size())) {
    c.fail("expected a first state for each layer and direction");
  }
  for (size_t layer = 0; layer < static_cast<size_t>(layers); ++layer) {
    TensorList outputs;
    for (size_t d = 0; d < directions; ++d) {
      const size_t at = layer * directions + d;
      const Tensor* p = &params[at * each];
      RecurrenceOptions options;
      options.cell = state.cell;
      options.batch_sizes = state.batch_sizes;
      options.reverse = d == 1;
      const Tensor gate = functional::linear(state.rows, p[0], biases ? p[2] : Tensor());
      const bool lstm = state.cell == RecurrenceCell::lstm;
      const auto y = functional::recurrence(gate, state.first_hidden[at],
                                            lstm ? state.first_cell[at] : Tensor(), p[1],
                                            biases ? p[3] : Tensor(), options);
      outputs.push_back(y.output);
      state.last_hidden.push_back(y.hidden);
      if (lstm) state.last_cell.push_back(y.cell);
    }
    state.rows = outputs.size() == 1 ? outputs[0] : kiln::cat(outputs, 1);
    if (trains && dropout > 0 && layer + 1 < static_cast<size_t>(layers)) {
      state.rows = functional::dropout(state.rows, dropout, true);
    }
  }
}

// What each layer and direction begins with: [layers, N, H].
void add_states(Call& c, Layers& state) {
  const auto parts = [&](const Tensor& all) {
    if (all.dim() != 3) c.fail("expected states of three dims");
    return all.unbind(0);
  };
  if (state.cell == RecurrenceCell::lstm) {
    const TensorList hx = c.list("hx");
    if (hx.size() != 2) c.fail(concat(hx.size(), " states; expected 2"));
    state.first_hidden = parts(hx[0]);
    state.first_cell = parts(hx[1]);
  } else {
    state.first_hidden = parts(c.t("hx"));
  }
}
void give(Call& c, Layers& state, const Tensor& output) {
  c.out(output);
  c.out(kiln::stack(state.last_hidden, 0));
  if (state.cell == RecurrenceCell::lstm) c.out(kiln::stack(state.last_cell, 0));
}

template <RecurrenceCell kCell>
void padded(Call& c) {
  Layers state;
  state.cell = kCell;
  add_states(c, state);
  const bool batch_first = c.b("batch_first");
  Tensor x = c.t("input");
  if (x.dim() != 3) c.fail("expected an input of three dims");
  if (batch_first) x = x.transpose(0, 1);
  const int64_t steps = x.size(0), count = x.size(1);
  state.batch_sizes.assign(static_cast<size_t>(steps), count);
  state.rows = x.reshape({steps * count, x.size(2)});
  run(c, state);
  const Tensor y = state.rows.reshape({steps, count, state.rows.size(1)});
  give(c, state, batch_first ? y.transpose(0, 1) : y);
}
template <RecurrenceCell kCell>
void packed(Call& c) {
  Layers state;
  state.cell = kCell;
  add_states(c, state);
  state.rows = c.t("data");
  state.batch_sizes = c.t("batch_sizes").to_vector<int64_t>();
  run(c, state);
  give(c, state, state.rows);
}

template <RecurrenceCell kCell>
void one_step(Call& c) {
  constexpr bool kLstm = kCell == RecurrenceCell::lstm;
  const Tensor x = c.t("input");
  Tensor hidden, cell;
  if (kLstm) {
    const TensorList hx = c.list("hx");
    if (hx.size() != 2) c.fail(concat(hx.size(), " states; expected 2"));
    hidden = hx[0];
    cell = hx[1];
  } else {
    hidden = c.t("hx");
  }
  const bool row = x.dim() == 1;
  const auto batched = [&](const Tensor& t) { return row && t.defined() ? t.unsqueeze(0) : t; };
  RecurrenceOptions options;
  options.cell = kCell;
  options.batch_sizes = {row ? 1 : x.size(0)};
  const Tensor gate = functional::linear(batched(x), c.t("w_ih"), c.maybe("b_ih"));
  const auto y = functional::recurrence(gate, batched(hidden), batched(cell), c.t("w_hh"),
                                        c.maybe("b_hh"), options);
  c.out(row ? y.hidden.squeeze(0) : y.hidden);
  if (kLstm) c.out(row ? y.cell.squeeze(0) : y.cell);
}

void pack(Call& c) {
  const auto out = nn::pack_padded_sequence(c.t("input"), c.t("lengths"), c.b("batch_first"), true);
  c.out(out.data);
  c.out(out.batch_sizes);
}
void unpack(Call& c) {
  nn::PackedSequence sequence;
  sequence.data = c.t("data");
  sequence.batch_sizes = c.t("batch_sizes");
  const int64_t total = c.i("total_length");
  c.out(nn::pad_packed_sequence(sequence, c.b("batch_first"), c.f("padding_value"),
                                total > 0 ? total : 0));
}
void pad_sequence_of(Call& c) {
  c.out(nn::pad_sequence(c.list("sequences"), c.b("batch_first", false), c.f("padding_value", 0.0),
                         c.s("padding_side", "right")));
}

constexpr Operator kRecurrencesOperators[] = {
    {"lstm", "input", padded<RecurrenceCell::lstm>},
    {"gru", "input", padded<RecurrenceCell::gru>},
    {"rnn_tanh", "input", padded<RecurrenceCell::tanh>},
    {"rnn_relu", "input", padded<RecurrenceCell::relu>},
    {"lstm", "data", packed<RecurrenceCell::lstm>},
    {"gru", "data", packed<RecurrenceCell::gru>},
    {"rnn_tanh", "data", packed<RecurrenceCell::tanh>},
    {"rnn_relu", "data", packed<RecurrenceCell::relu>},
    {"lstm_cell", "default", one_step<RecurrenceCell::lstm>},
    {"gru_cell", "default", one_step<RecurrenceCell::gru>},
    {"rnn_tanh_cell", "default", one_step<RecurrenceCell::tanh>},
    {"rnn_relu_cell", "default", one_step<RecurrenceCell::relu>},
    {"_pack_padded_sequence", "default", pack},
    {"_pad_packed_sequence", "default", unpack},
    {"pad_sequence", "default", pad_sequence_of},
};

}  // namespace

std::span<const Operator> recurrent_operators() { return kRecurrencesOperators; }

}  // namespace kiln::pt2
