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
  const auto bias_or_zeros = [&](const std::string& b) {
    return b.empty() ? w.zeros_or_ones({gates}, dtype, 0.0) : ordered(w, b, o.cell, size);
  };
  const std::string biases =
      w.add("Concat", {bias_or_zeros(bias), bias_or_zeros(w.in(n, 4))}, {{"axis", int64_t{0}}});
  Names given{w.reshaped(x, {steps, count, inputs}),
              with_direction(w, ordered(w, weight, o.cell, size)),
              with_direction(w, ordered(w, w.in(n, 3), o.cell, size)),
              with_direction(w, biases),
              "",
              with_direction(w, w.in(n, 1))};
  const bool lstm = o.cell == RecurrenceCell::lstm;
  if (lstm) given.push_back(with_direction(w, w.in(n, 2)));
  Writer::Attributes attributes{{"hidden_size", size},
                                {"direction", std::string(o.reverse ? "reverse" : "forward")}};
  if (o.cell == RecurrenceCell::gru) attributes.push_back({"linear_before_reset", int64_t{1}});
  if (o.cell == RecurrenceCell::relu) {
    attributes.push_back({"activations", std::vector<std::string>{"Relu"}});
  }
  const char* op = lstm ? "LSTM" : o.cell == RecurrenceCell::gru ? "GRU" : "RNN";
  const Names made = w.add_many(op, given, attributes, lstm ? 3 : 2);
  w.out(n, w.reshaped(made[0], {steps * count, size}), 0);
  w.out(n, lstm ? w.add("Concat", {made[1], made[2]}, {{"axis", int64_t{0}}}) : made[1], 1);
  w.leave_out(n, 2, "it reads what a gradient needs");
}

constexpr Translation kRecurrenceRows[] = {{graph::kRow_float_recurrence, recurrence}};

}  // namespace

std::span<const Translation> recurrence_translations() { return kRecurrenceRows; }

}  // namespace kiln::onnx
