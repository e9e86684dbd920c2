// Operators that hold graphs: branches, loops, and maps over sequences.
#include <algorithm>
#include <limits>

#include "kiln/graph/capture.h"
#include "kiln/onnx/read/call.h"

namespace kiln::onnx {

namespace {

void branch(Call& c) {
  const char* taken = c.truth(c.value(0)) ? "then_branch" : "else_branch";
  Values results = c.run(taken, {});
  if (results.size() < c.outputs()) c.fail(concat("the graph ", taken, " has too few outputs"));
  for (size_t i = 0; i < c.outputs(); ++i) c.out_value(std::move(results[i]), i);
}

// What the iterations gave, one behind the other along a new axis.
Value stacked(const Values& parts, int64_t axis) {
  const bool fixed = std::ranges::all_of(parts, &Value::fixed);
  std::optional<graph::PauseCapture> pause;
  if (fixed) pause.emplace();
  std::vector<Tensor> tensors;
  for (const Value& part : parts) tensors.push_back(part.tensor);
  return {.tensor = stack(tensors, axis), .fixed = fixed};
}

void check_parts(Call& c, const Values& parts) {
  for (const Value& part : parts) {
    if (!part.tensor.defined()) c.fail("an iteration gives no tensor");
    if (!(part.tensor.shape() == parts[0].tensor.shape())) {
      c.fail(concat("iterations give the shapes ", parts[0].tensor.shape(), " and ",
                    part.tensor.shape()));
    }
  }
}

void loop(Call& c) {
  const size_t carried = c.inputs() < 2 ? 0 : c.inputs() - 2;
  const size_t results = c.graph_outputs("body");
  if (results < 1 + carried) c.fail("a body with too few outputs");
  int64_t count = std::numeric_limits<int64_t>::max();
  if (c.has(size_t{0})) {
    const std::vector<int64_t> given = c.integers(0);
    if (given.size() != 1) c.fail("expected one trip count");
    count = given[0];
  }
  Value condition = {.tensor = kiln::ones({}, {.dtype = DType::boolean}), .fixed = true};
  const bool has_condition = c.has(1);
  if (has_condition) condition = c.value(1);
  Values state;
  for (size_t i = 0; i < carried; ++i) state.push_back(c.value(2 + i));
  std::vector<Values> scanned(results - 1 - carried);
  for (int64_t t = 0; t < count; ++t) {
    if (!c.truth(condition)) break;
    Value place{.fixed = true};
    {
      const graph::PauseCapture pause;
      place.tensor = tensor(t);
    }
    Values given{std::move(place), condition};
    for (Value& x : state) given.push_back(std::move(x));
    Values now = c.run("body", std::move(given));
    condition = std::move(now[0]);
    for (size_t i = 0; i < carried; ++i) state[i] = std::move(now[1 + i]);
    for (size_t i = 0; i < scanned.size(); ++i)
      scanned[i].push_back(std::move(now[1 + carried + i]));
  }
  for (size_t i = 0; i < carried; ++i) c.out_value(std::move(state[i]), i);
  for (size_t i = 0; i < scanned.size(); ++i) {
    if (carried + i >= c.outputs()) break;
    if (scanned[i].empty()) {
      c.out_value({.tensor = c.nothing_like("body", 1 + carried + i)}, carried + i);
      continue;
    }
    check_parts(c, scanned[i]);
    c.out_value(stacked(scanned[i], 0), carried + i);
  }
}

// Number i of a list of attributes, one for each scanned input or output.
int64_t one_of(Call& c, const std::vector<int64_t>& all, size_t i) {
  if (all.empty()) return 0;
  if (i >= all.size()) c.fail("an axis or a direction for each scanned input and output");
  return all[i];
}

struct Scanned {
  Tensor tensor;
  bool fixed = false, backward = false;
  int64_t axis = 0;
};

// The states and what the steps gave, for these inputs.
struct ScanResult {
  Values states;
  std::vector<Values> steps;
};
ScanResult scan_all(Call& c, Values states, const std::vector<Scanned>& inputs) {
  int64_t length = -1;
  for (const Scanned& x : inputs) {
    const int64_t n = x.tensor.size(x.axis);
    if (length >= 0 && n != length) c.fail(concat("inputs of ", length, " and ", n, " steps"));
    length = n;
  }
  const size_t results = c.graph_outputs("body");
  if (results < states.size()) c.fail("a body with too few outputs");
  const size_t carried = states.size();
  ScanResult out{std::move(states), std::vector<Values>(results - carried)};
  for (int64_t t = 0; t < length; ++t) {
    Values given = std::move(out.states);
    for (const Scanned& x : inputs) {
      std::optional<graph::PauseCapture> pause;
      if (x.fixed) pause.emplace();
      given.push_back({x.tensor.select(x.axis, x.backward ? length - 1 - t : t), x.fixed});
    }
    Values now = c.run("body", std::move(given));
    out.states.assign(std::make_move_iterator(now.begin()),
                      std::make_move_iterator(now.begin() + static_cast<int64_t>(carried)));
    for (size_t i = 0; i < out.steps.size(); ++i) {
      out.steps[i].push_back(std::move(now[carried + i]));
    }
  }
  return out;
}

// The steps' results along an axis, in the direction that is asked for.
Value joined(Call& c, Values parts, size_t i, size_t carried) {
  if (one_of(c, c.ints("scan_output_directions"), i) != 0) std::ranges::reverse(parts);
  if (parts.empty()) return {.tensor = c.nothing_like("body", carried + i)};
  check_parts(c, parts);
  const int64_t axis = one_of(c, c.ints("scan_output_axes"), i);
  return stacked(parts, c.axis(axis, parts[0].tensor.dim() + 1));
}

// Before opset 9 the first axis is the batch's, the second that of the steps.
void scan_batches(Call& c, size_t carried) {
  if (c.has(size_t{0})) c.refuse("sequence_lens");
  const std::vector<int64_t> directions = c.ints("directions");
  const auto batch_of = [&](size_t i) {
    if (c.in(i).dim() < 1) c.fail("expected a dim of batches");
    return c.in(i).size(0);
  };
  std::vector<Values> all(c.graph_outputs("body"));
  for (int64_t b = 0; b < batch_of(1); ++b) {
    Values states;
    std::vector<Scanned> inputs;
    for (size_t i = 1; i < c.inputs(); ++i) {
      if (batch_of(i) != batch_of(1)) c.fail("inputs of different batches");
      const Tensor x = c.in(i).select(0, b);
      if (i <= carried) {
        states.push_back({.tensor = x});
      } else {
        if (x.dim() < 1) c.fail("expected a dim of steps");
        inputs.push_back({x, false, one_of(c, directions, i - 1 - carried) != 0, 0});
      }
    }
    ScanResult found = scan_all(c, std::move(states), inputs);
    for (size_t i = 0; i < all.size(); ++i) {
      all[i].push_back(i < carried
                           ? found.states[i]
                           : joined(c, std::move(found.steps[i - carried]), i - carried, carried));
    }
  }
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i].empty()) c.refuse("a batch of nothing");
    check_parts(c, all[i]);
    c.out_value(stacked(all[i], 0), i);
  }
}

void scan(Call& c) {
  const size_t before = c.version() < 9 ? 1 : 0;
  const int64_t asked = c.i("num_scan_inputs", 0);
  if (asked < 1 || static_cast<uint64_t>(asked) + before > c.inputs()) {
    c.fail(concat("num_scan_inputs is ", asked, " of ", c.inputs(), " inputs"));
  }
  const auto scanned = static_cast<size_t>(asked);
  const size_t carried = c.inputs() - scanned - before;
  if (c.graph_outputs("body") < carried) c.fail("a body with too few outputs");
  if (before != 0) return scan_batches(c, carried);
  Values states;
  for (size_t i = 0; i < carried; ++i) states.push_back(c.value(i));
  std::vector<Scanned> inputs;
  for (size_t i = 0; i < scanned; ++i) {
    const Tensor& x = c.in(carried + i);
    inputs.push_back({x, c.value(carried + i).fixed,
                      one_of(c, c.ints("scan_input_directions"), i) != 0,
                      c.axis(one_of(c, c.ints("scan_input_axes"), i), x.dim())});
  }
  ScanResult found = scan_all(c, std::move(states), inputs);
  for (size_t i = 0; i < carried; ++i) c.out_value(std::move(found.states[i]), i);
  for (size_t i = 0; i < found.steps.size() && carried + i < c.outputs(); ++i) {
    c.out_value(joined(c, std::move(found.steps[i]), i, carried), carried + i);
  }
}

// The body on each element of a sequence; other sequences go along, tensors stay.
void sequence_map(Call& c) {
  std::vector<TensorList> results(c.outputs());
  if (c.graph_outputs("body") < results.size()) c.fail("a body with too few outputs");
  const size_t length = c.sequence(0).size();
  for (size_t k = 0; k < length; ++k) {
    Values given;
    for (size_t i = 0; i < c.inputs(); ++i) {
      Value x = c.value(i);
      if (x.sequence != nullptr) {
        if (x.sequence->size() != length) c.fail("sequences of different lengths");
        x = {.tensor = (*x.sequence)[k], .fixed = x.fixed};
      }
      given.push_back(std::move(x));
    }
    const Values now = c.run("body", std::move(given));
    for (size_t i = 0; i < results.size(); ++i) {
      if (!now[i].tensor.defined()) c.fail("the body gives no tensor");
      results[i].push_back(now[i].tensor);
    }
  }
  for (size_t i = 0; i < results.size(); ++i) c.out_sequence(std::move(results[i]), i);
}

constexpr Operator kControlOperators[] = {
    {"If", branch},
    {"Loop", loop},
    {"Scan", scan},
    {"SequenceMap", sequence_map},
};

}  // namespace

std::span<const Operator> control_operators() { return kControlOperators; }

}  // namespace kiln::onnx
