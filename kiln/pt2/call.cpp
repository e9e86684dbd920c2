#include "kiln/pt2/call.h"

#include <algorithm>

#include "kiln/core/utf8.h"
#include "kiln/pt2/program.h"

namespace kiln::pt2 {

namespace {

std::string describe(const Value& value) {
  struct Names {
    std::string operator()(std::monostate) const { return "None"; }
    std::string operator()(const Tensor& x) const { return x.defined() ? "a tensor" : "None"; }
    std::string operator()(const Scalar& x) const {
      return x.is_bool() ? "a boolean" : x.is_integral() ? "an integer" : "a float";
    }
    std::string operator()(const std::complex<double>&) const { return "a complex number"; }
    std::string operator()(const DType&) const { return "a dtype"; }
    std::string operator()(const std::string& x) const { return "'" + printable(x, 40) + "'"; }
    std::string operator()(const Value::List& x) const {
      return concat("a list of ", x->size(), " items");
    }
  };
  return std::visit(Names{}, value.held);
}

// What the arguments say that mean nothing on Kiln's tensors, whose memory is always dense.
bool means_nothing(const std::string& name) {
  for (const char* one : {"device", "layout", "memory_format", "pin_memory", "non_blocking",
                          "cudnn_enabled", "implicit", "sparse", "sparse_grad"}) {
    if (name == one) return true;
  }
  return false;
}

}  // namespace

Call::Call(const Step& step, Frame& frame) : step_(step), frame_(frame) {}

const std::string& Call::target() const { return step_.target; }
bool Call::is_overload(const char* name) const {
  return step_.target.substr(step_.target.rfind('.') + 1) == name;
}
size_t Call::outputs() const { return step_.outputs.size(); }
bool Call::needs(size_t output) const {
  if (output >= step_.outputs.size()) return false;
  const Output& place = step_.outputs[output];
  return std::ranges::any_of(place.slots, [&](int slot) {
    return slot >= 0 && std::ranges::find(step_.dying, slot) == step_.dying.end();
  });
}
bool Call::may_record() const { return frame_.records; }
Device Call::device() const { return frame_.device; }

const Argument* Call::find(const char* name) const {
  for (size_t i = 0; i < step_.arguments.size(); ++i) {
    if (step_.arguments[i].name != name) continue;
    read_ |= uint64_t{1} << i;
    return &step_.arguments[i];
  }
  return nullptr;
}

Value value_of(const Argument& argument, Frame& frame) {
  if (argument.slot >= 0) return frame[argument.slot];
  if (!argument.is_list) return argument.fixed;
  auto items = std::make_shared<Values>();
  items->reserve(argument.items.size());
  for (const Argument& item : argument.items) items->push_back(value_of(item, frame));
  return {Value::List(std::move(items))};
}

// An operator in place must leave what its derivative needs of its operand as it was.
Value Call::resolved(const Argument& argument) const {
  Value out = value_of(argument, frame_);
  if (step_.form == Form::in_place && &argument == step_.arguments.data() && is_grad_enabled()) {
    if (const Tensor* x = out.tensor()) return {x->clone()};
  }
  return out;
}

void Call::wrong(const char* name, const Value& value, const char* expected) const {
  fail(
      concat("argument '", printable(name, 40), "' is ", describe(value), "; expected ", expected));
}

bool Call::has(const char* name) const {
  const Argument* found = find(name);
  return found != nullptr && !value_of(*found, frame_).is_none();
}
Value Call::value(const char* name) const {
  const Argument* found = find(name);
  return found == nullptr ? Value{} : resolved(*found);
}
Tensor Call::t(const char* name) const {
  const Value v = value(name);
  const Tensor* x = v.tensor();
  if (x == nullptr || !x->defined()) wrong(name, v, "a tensor");
  return *x;
}
Tensor Call::maybe(const char* name) const { return has(name) ? t(name) : Tensor(); }
Tensor Call::x() const {
  if (step_.arguments.empty()) fail("it has no arguments; expected a tensor");
  read_ |= 1;
  const Value v = resolved(step_.arguments[0]);
  const Tensor* x = v.tensor();
  if (x == nullptr || !x->defined()) wrong(step_.arguments[0].name.c_str(), v, "a tensor");
  return *x;
}
TensorList Call::maybe_list(const char* name) const {
  const Value v = value(name);
  if (v.is_none()) return {};
  const auto* list = std::get_if<Value::List>(&v.held);
  if (list == nullptr) wrong(name, v, "a list of tensors");
  TensorList out;
  for (const Value& one : **list) {
    const Tensor* x = one.tensor();
    if (x == nullptr && !one.is_none()) wrong(name, one, "a list of tensors");
    out.push_back(x == nullptr ? Tensor() : *x);
  }
  return out;
}
TensorList Call::list(const char* name) const {
  TensorList out = maybe_list(name);
  for (const Tensor& x : out) {
    if (!x.defined()) fail(concat("argument '", name, "' has None in its list of tensors"));
  }
  return out;
}

std::optional<Scalar> Call::maybe_scalar(const char* name) const {
  const Value v = value(name);
  if (v.is_none()) return std::nullopt;
  if (const Scalar* x = v.scalar()) return *x;
  if (std::holds_alternative<std::complex<double>>(v.held)) {
    refuse(concat("argument '", name, "' is a complex number"));
  }
  wrong(name, v, "a number");
}
Scalar Call::scalar(const char* name) const {
  const auto out = maybe_scalar(name);
  if (!out) wrong(name, {}, "a number");
  return *out;
}
Scalar Call::scalar(const char* name, Scalar otherwise) const {
  return maybe_scalar(name).value_or(otherwise);
}
std::optional<int64_t> Call::maybe_i(const char* name) const {
  const auto out = maybe_scalar(name);
  if (!out) return std::nullopt;
  if (out->is_floating_point()) wrong(name, {*out}, "an integer");
  return out->to_int();
}
int64_t Call::i(const char* name) const {
  const auto out = maybe_i(name);
  if (!out) wrong(name, {}, "an integer");
  return *out;
}
int64_t Call::i(const char* name, int64_t otherwise) const {
  return maybe_i(name).value_or(otherwise);
}
std::optional<double> Call::maybe_f(const char* name) const {
  const auto out = maybe_scalar(name);
  return out ? std::optional(out->to_double()) : std::nullopt;
}
double Call::f(const char* name) const { return scalar(name).to_double(); }
double Call::f(const char* name, double otherwise) const {
  return maybe_f(name).value_or(otherwise);
}
bool Call::b(const char* name) const { return scalar(name).to_bool(); }
bool Call::b(const char* name, bool otherwise) const {
  const auto out = maybe_scalar(name);
  return out ? out->to_bool() : otherwise;
}
std::string Call::s(const char* name) const {
  const Value v = value(name);
  const auto* out = std::get_if<std::string>(&v.held);
  if (out == nullptr) wrong(name, v, "a string");
  return *out;
}
std::string Call::s(const char* name, const char* otherwise) const {
  return has(name) ? s(name) : otherwise;
}
std::optional<Shape> Call::maybe_ints(const char* name) const {
  const Value v = value(name);
  if (v.is_none()) return std::nullopt;
  if (const Scalar* one = v.scalar(); one != nullptr && !one->is_floating_point()) {
    return Shape{one->to_int()};
  }
  const auto* list = std::get_if<Value::List>(&v.held);
  if (list == nullptr) wrong(name, v, "a list of integers");
  if ((*list)->size() > static_cast<size_t>(kMaxRank)) {
    fail(concat("argument '", name, "' has ", (*list)->size(), " numbers; expected at most ",
                kMaxRank));
  }
  Shape out;
  for (const Value& one : **list) {
    const Scalar* x = one.scalar();
    if (x == nullptr || x->is_floating_point()) wrong(name, one, "a list of integers");
    out.push_back(x->to_int());
  }
  return out;
}
Shape Call::ints(const char* name) const {
  const auto out = maybe_ints(name);
  if (!out) wrong(name, {}, "a list of integers");
  return *out;
}
std::optional<std::vector<double>> Call::maybe_floats(const char* name) const {
  const Value v = value(name);
  if (v.is_none()) return std::nullopt;
  const auto* list = std::get_if<Value::List>(&v.held);
  if (list == nullptr) wrong(name, v, "a list of numbers");
  std::vector<double> out;
  for (const Value& one : **list) {
    const Scalar* x = one.scalar();
    if (x == nullptr) wrong(name, one, "a list of numbers");
    out.push_back(x->to_double());
  }
  return out;
}
std::optional<DType> Call::dtype(const char* name) const {
  const Value v = value(name);
  if (v.is_none()) return std::nullopt;
  const auto* out = std::get_if<DType>(&v.held);
  if (out == nullptr) wrong(name, v, "a dtype");
  return *out;
}
DType Call::needed_dtype(const char* name) const {
  const auto out = dtype(name);
  if (!out) wrong(name, {}, "a dtype");
  return *out;
}
void Call::ignore(const char* name) const { find(name); }

size_t Call::size() const { return step_.arguments.size(); }
Value Call::at(size_t i) const {
  if (i >= size()) fail(concat("it has ", size(), " arguments; expected more"));
  read_ |= uint64_t{1} << i;
  return resolved(step_.arguments[i]);
}
bool Call::has_block(size_t i) const { return i < size() && step_.arguments[i].block != nullptr; }
Values Call::run_block(size_t i, Values inputs) {
  if (!has_block(i)) fail(concat("argument ", i, " is no graph"));
  read_ |= uint64_t{1} << i;
  const Block& block = *step_.arguments[i].block;
  constexpr int64_t kMostRuns = int64_t{1} << 20;
  if (++frame_.inner_runs > kMostRuns) fail(concat("it goes on after ", kMostRuns, " iterations"));
  if (inputs.size() != block.inputs.size()) {
    fail(concat("its graph has ", block.inputs.size(), " inputs; expected ", inputs.size()));
  }
  for (size_t n = 0; n < inputs.size(); ++n) {
    if (block.inputs[n] >= 0) frame_[block.inputs[n]] = std::move(inputs[n]);
  }
  pt2::run_block(block, frame_);
  Values out;
  for (const Argument& one : block.outputs) out.push_back(value_of(one, frame_));
  return out;
}

TensorOptions Call::options(std::optional<DType> otherwise) const {
  const auto given = dtype();
  return {.dtype = given ? given : otherwise, .device = frame_.device};
}

void Call::out(Tensor x) { results_.push_back({std::move(x)}); }
void Call::out(Scalar x) { results_.push_back({x}); }
void Call::out(Value x) { results_.push_back(std::move(x)); }
void Call::out_list(const std::vector<Tensor>& xs) {
  auto items = std::make_shared<Values>();
  for (const Tensor& x : xs) items->push_back({x});
  results_.push_back({Value::List(std::move(items))});
}

void Call::check_all_read() const {
  for (size_t i = 0; i < step_.arguments.size(); ++i) {
    const Argument& one = step_.arguments[i];
    if ((read_ >> i & 1) != 0 || means_nothing(one.name)) continue;
    if (one.slot < 0 && !one.is_list && one.block == nullptr && one.fixed.is_none()) continue;
    refuse(concat("argument '", printable(one.name, 40), "'"));
  }
}

void Call::refuse(const std::string& what) const { throw_error<NotImplementedError>(what); }
void Call::fail(const std::string& what) const { throw_error<ValueError>(what); }

}  // namespace kiln::pt2
