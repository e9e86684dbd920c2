// Operators of higher order: branches, loops, and regions with another mode.
#include "kiln/pt2/ops/forms.h"

namespace kiln::pt2 {

namespace {

Values items_of(Call& c, const Value& value, const char* what) {
  if (value.is_none()) return {};
  const auto* list = std::get_if<Value::List>(&value.held);
  if (list == nullptr) c.fail(concat(what, " are no list"));
  return **list;
}
void give(Call& c, Values results) {
  for (Value& one : results) c.out(std::move(one));
}
// Reading a value that is a tensor ends a capture.
bool truth(Call& c, const Value& value) {
  if (const Scalar* number = value.scalar()) return number->to_bool();
  const Tensor* x = value.tensor();
  if (x == nullptr || !x->defined() || x->numel() != 1) {
    c.fail("expected a condition of one element");
  }
  return is_nonzero(x->detach());
}
Values rest_of(Call& c, size_t first) {
  Values out;
  for (size_t i = first; i < c.size(); ++i) out.push_back(c.at(i));
  return out;
}

void cond(Call& c) {
  const bool holds = truth(c, c.at(0));
  Values inputs = items_of(c, c.at(3), "operands");
  // Both are graphs: an argument that is not looked at would be refused.
  if (!c.has_block(1) || !c.has_block(2)) c.fail("expected two graphs");
  c.at(1);
  c.at(2);
  give(c, c.run_block(holds ? 1 : 2, std::move(inputs)));
}

void while_loop(Call& c) {
  Values carried = items_of(c, c.at(2), "carried inputs");
  const Values more = items_of(c, c.at(3), "additional inputs");
  const auto inputs = [&] {
    Values out = carried;
    out.insert(out.end(), more.begin(), more.end());
    return out;
  };
  c.at(1);
  for (;;) {
    const Values goes_on = c.run_block(0, inputs());
    if (goes_on.size() != 1) c.fail("expected one condition");
    if (!truth(c, goes_on[0])) break;
    Values next = c.run_block(1, inputs());
    if (next.size() != carried.size()) {
      c.fail(concat("its graph gives ", next.size(), " values; expected ", carried.size()));
    }
    carried = std::move(next);
  }
  give(c, std::move(carried));
}

// Slices of the first dim, one after another.
int64_t steps_of(Call& c, const Values& xs) {
  int64_t steps = -1;
  for (const Value& one : xs) {
    const Tensor* x = one.tensor();
    if (x == nullptr || x->dim() == 0) c.fail("expected tensors of at least one dim");
    if (steps >= 0 && x->size(0) != steps) c.fail("tensors of different lengths");
    steps = x->size(0);
  }
  if (steps < 1) c.fail("expected at least one step");
  return steps;
}
void add_slices(Values& inputs, const Values& xs, int64_t step) {
  for (const Value& one : xs) inputs.push_back({one.tensor()->select(0, step)});
}
// rows[i] are the results of step i from `first` on.
void give_stacked(Call& c, const std::vector<Values>& rows, size_t first) {
  for (size_t i = first; i < rows[0].size(); ++i) {
    TensorList parts;
    for (const Values& row : rows) {
      const Tensor* x = row[i].tensor();
      if (x == nullptr || !x->defined()) c.fail("a result of a step is no tensor");
      parts.push_back(*x);
    }
    c.out(kiln::stack(parts, 0));
  }
}

void map(Call& c) {
  const Values xs = items_of(c, c.at(1), "mapped tensors");
  const Values more = items_of(c, c.at(2), "additional inputs");
  const int64_t steps = steps_of(c, xs);
  std::vector<Values> rows;
  for (int64_t i = 0; i < steps; ++i) {
    Values inputs;
    add_slices(inputs, xs, i);
    inputs.insert(inputs.end(), more.begin(), more.end());
    rows.push_back(c.run_block(0, std::move(inputs)));
  }
  give_stacked(c, rows, 0);
}

void scan(Call& c) {
  Values carried = items_of(c, c.at(1), "first values");
  const Values xs = items_of(c, c.at(2), "scanned tensors");
  const Values more = c.size() > 3 ? items_of(c, c.at(3), "additional inputs") : Values();
  const int64_t steps = steps_of(c, xs);
  const size_t count = carried.size();
  std::vector<Values> rows;
  for (int64_t i = 0; i < steps; ++i) {
    Values inputs = carried;
    add_slices(inputs, xs, i);
    inputs.insert(inputs.end(), more.begin(), more.end());
    rows.push_back(c.run_block(0, std::move(inputs)));
    if (rows.back().size() < count) c.fail("its graph gives fewer values than it carries");
    carried.assign(rows.back().begin(), rows.back().begin() + static_cast<int64_t>(count));
  }
  give(c, std::move(carried));
  give_stacked(c, rows, count);
}

void with_grad_mode(Call& c) {
  const bool records = truth(c, c.at(0));
  struct Restore {
    bool mode = is_grad_enabled();
    ~Restore() { set_grad_enabled(mode); }
  } restore;
  set_grad_enabled(records && c.may_record());
  give(c, c.run_block(1, rest_of(c, 2)));
}

// device, dtype, enabled, cache_enabled, graph, inputs
void with_autocast(Call& c) {
  c.at(0);
  c.at(3);
  const Value dtype = c.at(1);
  const auto* given = std::get_if<DType>(&dtype.held);
  const amp::Autocast region(given == nullptr ? DType::bf16 : *given, truth(c, c.at(2)));
  give(c, c.run_block(4, rest_of(c, 5)));
}

constexpr Operator kControlOperators[] = {
    {"cond", "", cond},
    {"while_loop", "", while_loop},
    {"map_impl", "", map},
    {"scan", "", scan},
    {"wrap_with_set_grad_enabled", "", with_grad_mode},
    {"wrap_with_autocast", "", with_autocast},
};

}  // namespace

std::span<const Operator> control_operators() { return kControlOperators; }

}  // namespace kiln::pt2
