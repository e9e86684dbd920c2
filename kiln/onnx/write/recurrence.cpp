// A recurrence over whole sequences as ONNX's RNN, GRU or LSTM.
#include "kiln/onnx/write/writer.h"
#include "kiln/tensor/creation.h"

namespace kiln::onnx {

namespace {

using Names = Writer::Names;

// ONNX has the gates in another order: each of ours by its place there.
std::vector<int64_t> order_of(RecurrenceCell cell) {
  if (cell == RecurrenceCell::lstm) return {0, 3, 1, 2};  // i f g o: i o f c
  if (cell == RecurrenceCell::gru) return {1, 0, 2};      // r z n: z r h
  return {0};
}

std::string ordered(Writer& w, const std::string& x, RecurrenceCell cell, int64_t size) {
  const std::vector<int64_t> order = order_of(cell);
  if (order.size() == 1) return x;
  Names parts;
  for (const int64_t gate : order) {
    parts.push_back(w.sliced(x, 0, gate * size, (gate + 1) * size));
  }
  return w.add("Concat", parts, {{"axis", int64_t{0}}});
}

std::string with_direction(Writer& w, const std::string& x) {
  return w.add("Unsqueeze", {x, w.ints({0})});
}

// The operator of a cell. X [T, N, I]; the weights and the bias with their gates in ONNX's order.
struct Layer {
  RecurrenceCell cell;
  int64_t size;
  bool reverse = false;
  std::string x = {}, w_ih = {}, w_hh = {}, biases = {};
  std::string h = {}, c = {};  // c of an LSTM alone
};
Names add_layer(Writer& w, const Layer& of) {
  const auto weight = [&](const std::string& x) {
    return with_direction(w, ordered(w, x, of.cell, of.size));
  };
  Names given{of.x, weight(of.w_ih),        weight(of.w_hh), with_direction(w, of.biases),
              "",   with_direction(w, of.h)};
  const bool lstm = of.cell == RecurrenceCell::lstm;
  if (lstm) given.push_back(with_direction(w, of.c));
  Writer::Attributes attributes{{"hidden_size", of.size},
                                {"direction", std::string(of.reverse ? "reverse" : "forward")}};
  if (of.cell == RecurrenceCell::gru) attributes.push_back({"linear_before_reset", int64_t{1}});
  if (of.cell == RecurrenceCell::relu) {
    attributes.push_back({"activations", std::vector<std::string>{"Relu"}});
  }
  const char* op = lstm ? "LSTM" : of.cell == RecurrenceCell::gru ? "GRU" : "RNN";
  return w.add_many(op, given, attributes, lstm ? 3 : 2);
}

// The two biases, of which either may lack.
std::string joined_biases(Writer& w, RecurrenceCell cell, int64_t gates, int64_t size, DType dtype,
                          const std::string& b_ih, const std::string& b_hh) {
  const auto bias_or_zeros = [&](const std::string& b) {
    return b.empty() ? w.zeros_or_ones({gates}, dtype, 0.0) : ordered(w, b, cell, size);
  };
  const std::string first = bias_or_zeros(b_ih);
  return w.add("Concat", {first, bias_or_zeros(b_hh)}, {{"axis", int64_t{0}}});
}

void recurrence(Writer& w, const Node& n) {
  const RecurrenceOptions& o = w.get<RecurrenceOptions>(n, 5);
  const int64_t count = w.shape(n, 1)[0], size = w.shape(n, 1)[1];
  const int64_t gates = o.gates() * size, steps = static_cast<int64_t>(o.batch_sizes.size());
  const DType dtype = w.dtype(n, 0);
  for (const int64_t rows : o.batch_sizes) {
    if (rows != count) w.refuse(n, "packed sequences; expected sequences of one length");
  }
  // The input's part of the gates is a product of its own in Kiln. It becomes the operator's where
  // it can, and otherwise the input is those gates, times one.
  std::string x = w.in(n, 0), weight, bias;
  int64_t inputs = gates;
  const Node* product = w.maker(n.arguments[0].operands[0].value);
  if (product != nullptr && product->row == graph::kRow_float_linear) {
    x = w.in(*product, 0);
    weight = w.in(*product, 1);
    if (w.has(*product, 2)) bias = w.in(*product, 2);
    inputs = w.shape(*product, 0).back();
  } else {
    weight = w.constant(eye(gates).to_data().cast(dtype));
  }
  const bool lstm = o.cell == RecurrenceCell::lstm;
  Layer of{o.cell, size, o.reverse};
  of.biases = joined_biases(w, o.cell, gates, size, dtype, bias, w.in(n, 4));
  of.x = w.reshaped(x, {steps, count, inputs});
  of.w_ih = weight;
  of.w_hh = w.in(n, 3);
  of.h = w.in(n, 1);
  if (lstm) of.c = w.in(n, 2);
  const Names made = add_layer(w, of);
  w.out(n, w.reshaped(made[0], {steps * count, size}), 0);
  w.out(n, lstm ? w.add("Concat", {made[1], made[2]}, {{"axis", int64_t{0}}}) : made[1], 1);
  w.leave_out(n, 2, "it reads what a gradient needs");
}

// One step of such an operator.
void recurrent_cell(Writer& w, const Node& n) {
  const RecurrenceOptions& o = w.get<RecurrenceOptions>(n, 7);
  const int64_t size = w.shape(n, 1)[1];
  const bool lstm = o.cell == RecurrenceCell::lstm;
  Layer of{o.cell, size};
  of.biases =
      joined_biases(w, o.cell, o.gates() * size, size, w.dtype(n, 0), w.in(n, 5), w.in(n, 6));
  of.x = w.add("Unsqueeze", {w.in(n, 0), w.ints({0})});
  of.w_ih = w.in(n, 3);
  of.w_hh = w.in(n, 4);
  of.h = w.in(n, 1);
  if (lstm) of.c = w.in(n, 2);
  const Names made = add_layer(w, of);
  const auto without_direction = [&](const std::string& state) {
    return w.add("Squeeze", {state, w.ints({0})});
  };
  w.out(n, without_direction(made[1]), 0);
  if (lstm) {
    w.out(n, without_direction(made[2]), 1);
  } else {
    w.leave_out(n, 1, "it reads the cell states of a recurrence without them");
  }
}

constexpr Translation kRecurrenceRows[] = {
    {graph::kRow_float_recurrence, recurrence},
    {graph::kRow_float_recurrent_cell, recurrent_cell},
};

}  // namespace

std::span<const Translation> recurrence_translations() { return kRecurrenceRows; }

}  // namespace kiln::onnx
