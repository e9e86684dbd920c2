#include "kiln/metrics/metric.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <typeinfo>

#include "kiln/tensor/creation.h"

namespace kiln::metrics {

namespace {

// One running value: a pointer to it, of the four that it can be.
struct Slot {
  const char* name;
  Join join;
  double* real = nullptr;
  int64_t* integer = nullptr;
  std::vector<double>* reals = nullptr;
  std::vector<int64_t>* integers = nullptr;
};

class Slots final : public StateVisitor {
 public:
  void operator()(const char* name, double& value, Join join) override {
    list.push_back({.name = name, .join = join, .real = &value});
  }
  void operator()(const char* name, int64_t& value, Join join) override {
    list.push_back({.name = name, .join = join, .integer = &value});
  }
  void operator()(const char* name, std::vector<double>& values, Join join) override {
    list.push_back({.name = name, .join = join, .reals = &values});
  }
  void operator()(const char* name, std::vector<int64_t>& values, Join join) override {
    list.push_back({.name = name, .join = join, .integers = &values});
  }

  std::vector<Slot> list;
};

template <class T>
T beginning(Join join) {
  using Limits = std::numeric_limits<T>;
  if constexpr (Limits::has_infinity) {
    if (join == Join::maximum) return -Limits::infinity();
    if (join == Join::latest) return Limits::quiet_NaN();
  } else {
    if (join == Join::maximum) return Limits::min();
  }
  return 0;
}

template <class T>
void join_value(T& mine, T other, Join join) {
  if (join == Join::sum) {
    mine += other;
  } else if (join == Join::maximum) {
    mine = std::max(mine, other);
  } else if (!std::isnan(static_cast<double>(other))) {
    mine = other;
  }
}

template <class T>
void join_values(const char* name, std::vector<T>& mine, const std::vector<T>& other, Join join) {
  if (join == Join::append) {
    mine.insert(mine.end(), other.begin(), other.end());
  } else if (mine.empty()) {
    mine = other;
  } else if (!other.empty()) {
    if (mine.size() != other.size()) {
      throw_error<ShapeError>("merge: '", name, "' has another size; got ", other.size(),
                              "; expected ", mine.size());
    }
    for (size_t i = 0; i < mine.size(); ++i) join_value(mine[i], other[i], join);
  }
}

template <class T>
void clear(std::vector<T>& values, Join join) {
  if (join == Join::append) {
    values.clear();
  } else {
    values.assign(values.size(), beginning<T>(join));
  }
}

const Tensor& checked(const nn::StateDict& state, const Slot& slot) {
  const Tensor* found = state.find(slot.name);
  if (found == nullptr || !found->defined()) {
    throw_error<KeyError>("load_state_dict: the state has no '", slot.name, "'");
  }
  const bool is_real = slot.real != nullptr || slot.reals != nullptr;
  const DType dtype = is_real ? DType::f64 : DType::i64;
  if (found->dtype() != dtype) {
    throw_error<DTypeError>("load_state_dict: '", slot.name, "' has a wrong dtype; got ",
                            found->dtype(), "; expected ", dtype);
  }
  const bool is_value = slot.real != nullptr || slot.integer != nullptr;
  const int64_t size = slot.reals != nullptr      ? static_cast<int64_t>(slot.reals->size())
                       : slot.integers != nullptr ? static_cast<int64_t>(slot.integers->size())
                                                  : 1;
  const bool is_any = !is_value && (slot.join == Join::append || size == 0);
  if (found->dim() != (is_value ? 0 : 1) || (!is_any && found->numel() != size)) {
    throw_error<ShapeError>("load_state_dict: '", slot.name, "' has a wrong shape; got ",
                            found->shape(), "; expected ",
                            is_value ? "[]"
                            : is_any ? "[N]"
                                     : concat("[", size, "]"));
  }
  return *found;
}

}  // namespace

void Metric::reset() {
  Slots slots;
  visit_state(slots);
  for (const Slot& slot : slots.list) {
    if (slot.real != nullptr) *slot.real = beginning<double>(slot.join);
    if (slot.integer != nullptr) *slot.integer = beginning<int64_t>(slot.join);
    if (slot.reals != nullptr) clear(*slot.reals, slot.join);
    if (slot.integers != nullptr) clear(*slot.integers, slot.join);
  }
}

nn::StateDict Metric::state_dict() const {
  Slots slots;
  const_cast<Metric*>(this)->visit_state(slots);  // which only looks
  nn::StateDict out;
  for (const Slot& slot : slots.list) {
    if (slot.real != nullptr) out.set(slot.name, value_tensor(*slot.real));
    if (slot.integer != nullptr) out.set(slot.name, tensor(Scalar(*slot.integer), {i64}));
    if (slot.reals != nullptr) out.set(slot.name, value_tensor(*slot.reals));
    if (slot.integers != nullptr) out.set(slot.name, tensor(*slot.integers, {i64}));
  }
  return out;
}

void Metric::load_state_dict(const nn::StateDict& state) {
  const std::unique_ptr<Metric> fresh = clone();
  fresh->reset();
  Slots slots, wanted;
  visit_state(slots);
  fresh->visit_state(wanted);
  for (const Slot& slot : wanted.list) checked(state, slot);
  if (state.size() != wanted.list.size()) {
    throw_error<KeyError>("load_state_dict: the state has ", state.size(), " values; ",
                          description(), " has ", wanted.list.size());
  }
  for (const Slot& slot : slots.list) {
    const Tensor& value = state.at(slot.name);
    if (slot.real != nullptr) *slot.real = value.item<double>();
    if (slot.integer != nullptr) *slot.integer = value.item<int64_t>();
    if (slot.reals != nullptr) *slot.reals = value.to_vector<double>();
    if (slot.integers != nullptr) *slot.integers = value.to_vector<int64_t>();
  }
  try {
    check_state();
  } catch (const Error&) {
    reset();
    throw;
  }
}

void Metric::merge(const Metric& other) {
  if (typeid(*this) != typeid(other)) {
    throw_error<TypeError>("merge: the metrics are of two classes; got ", other.description(),
                           "; expected ", description());
  }
  if (description() != other.description()) {
    throw_error<ValueError>("merge: the metrics have different options; got ", other.description(),
                            "; expected ", description());
  }
  join(other);
}

void Metric::join(const Metric& other) {
  const std::unique_ptr<Metric> joined = clone();
  const std::unique_ptr<Metric> added = other.clone();
  Slots mine, from, to;
  visit_state(mine);
  added->visit_state(from);
  joined->visit_state(to);
  for (size_t i = 0; i < to.list.size(); ++i) {
    const Slot& a = to.list[i];
    const Slot& b = from.list[i];
    if (a.real != nullptr) join_value(*a.real, *b.real, a.join);
    if (a.integer != nullptr) join_value(*a.integer, *b.integer, a.join);
    if (a.reals != nullptr) join_values(a.name, *a.reals, *b.reals, a.join);
    if (a.integers != nullptr) join_values(a.name, *a.integers, *b.integers, a.join);
  }
  for (size_t i = 0; i < to.list.size(); ++i) {  // nothing throws from here on
    const Slot& a = mine.list[i];
    Slot& b = to.list[i];
    if (a.real != nullptr) *a.real = *b.real;
    if (a.integer != nullptr) *a.integer = *b.integer;
    if (a.reals != nullptr) a.reals->swap(*b.reals);
    if (a.integers != nullptr) a.integers->swap(*b.integers);
  }
}

Tensor value_tensor(double value) { return tensor(Scalar(value), {f64}); }
Tensor value_tensor(const std::vector<double>& values) { return tensor(values, {f64}); }

double ratio(double part, double whole, double otherwise) {
  return whole == 0 ? otherwise : part / whole;
}

void check_same_shape(const char* op, const Tensor& preds, const Tensor& target) {
  if (preds.shape() != target.shape()) {
    throw_error<ShapeError>(op, ": predictions and targets differ in shape; got ", preds.shape(),
                            " and ", target.shape());
  }
}

}  // namespace kiln::metrics
