#include "kiln/pt2/model.h"

#include <map>

#include "kiln/core/utf8.h"
#include "kiln/graph/capture.h"
#include "kiln/pt2/archive.h"
#include "kiln/pt2/state.h"
#include "kiln/tensor/tensor_impl.h"

namespace kiln::pt2 {

Model Model::load(const std::string& path, const std::string& program) {
  auto state = std::make_shared<State>();
  try {
    Archive archive(path);
    const Json file = archive.program(program);
    auto weights = archive.weights();
    plan(state->program, file, std::move(weights), archive.constants());
  } catch (const NotImplementedError& error) {
    throw_error<NotImplementedError>("pt2: '", path, "': ", error.what());
  } catch (const IoError& error) {
    const std::string what = error.what();
    if (what.starts_with("pt2: ")) throw;
    throw_error<IoError>("pt2: '", path, "': ", what);
  } catch (const Error& error) {
    throw_error<IoError>("pt2: '", path, "': ", error.what());
  }
  return Model(std::move(state));
}

namespace {

using Item = Model::Item;

Value value_of_item(const Item& item) {
  struct Make {
    Value operator()(std::monostate) const { return {}; }
    Value operator()(const Tensor& x) const { return {x}; }
    Value operator()(bool x) const { return {Scalar(x)}; }
    Value operator()(int64_t x) const { return {Scalar(x)}; }
    Value operator()(double x) const { return {Scalar(x)}; }
    Value operator()(const std::string& x) const { return {x}; }
  };
  return std::visit(Make{}, item);
}
Item item_of(const Value& value) {
  if (const Tensor* x = value.tensor()) return x->defined() ? Item(*x) : Item();
  if (const Scalar* x = value.scalar()) {
    if (x->is_bool()) return x->to_bool();
    if (x->is_integral()) return x->to_int();
    return x->to_double();
  }
  if (const auto* text = std::get_if<std::string>(&value.held)) return *text;
  if (value.is_none()) return {};
  throw_error<NotImplementedError>("pt2: an output is neither a tensor nor a number");
}

bool is_same(const Value& a, const Value& b) {
  if (const Scalar* x = a.scalar()) {
    const Scalar* y = b.scalar();
    return y != nullptr && x->to_double() == y->to_double();
  }
  const auto* x = std::get_if<std::string>(&a.held);
  const auto* y = std::get_if<std::string>(&b.held);
  return (a.is_none() && b.is_none()) || (x != nullptr && y != nullptr && *x == *y);
}

void check_input(const Program::Input& input, const Value& value, SizeCheck& sizes) {
  const std::string name = printable(input.name, 60);
  if (input.is_tensor) {
    const Tensor* x = value.tensor();
    if (x == nullptr || !x->defined()) {
      throw_error<TypeError>("pt2: input '", name, "' must be a tensor");
    }
    if (x->dtype() != input.dtype) {
      throw_error<DTypeError>("pt2: input '", name, "' is ", x->dtype(), "; expected ",
                              input.dtype);
    }
    sizes.add(input.name, input.shape, x->shape());
  } else if (input.slot >= 0) {
    if (value.scalar() == nullptr) {
      throw_error<TypeError>("pt2: input '", name, "' must be a number");
    }
  } else if (!is_same(value, input.constant)) {
    throw_error<ValueError>("pt2: input '", name,
                            "' has another value than when it was exported, in which it is fixed");
  }
}

}  // namespace

std::vector<Item> Model::run_items(const std::vector<Item>& inputs, const TensorList& held) const {
  const Program& program = state_->program;
  if (inputs.size() != program.inputs.size() || held.size() != program.held.size()) {
    throw_error<ValueError>("pt2: got ", inputs.size(), " inputs and ", held.size(),
                            " tensors that it holds; expected ", program.inputs.size(), " and ",
                            program.held.size());
  }
  Frame frame{.records = is_grad_enabled()};
  frame.slots.resize(static_cast<size_t>(program.slots));
  SizeCheck sizes(program.ranges);
  const Tensor* first = nullptr;
  for (size_t i = 0; i < inputs.size(); ++i) {
    Value value = value_of_item(inputs[i]);
    check_input(program.inputs[i], value, sizes);
    if (first == nullptr) first = std::get_if<Tensor>(&inputs[i]);
    if (program.inputs[i].slot >= 0) frame[program.inputs[i].slot] = std::move(value);
  }
  sizes.finish();
  if (first == nullptr && !held.empty()) first = held.data();
  if (first != nullptr) frame.device = first->device();
  for (size_t i = 0; i < held.size(); ++i) {
    const bool moves =
        program.held[i].kind == Held::Kind::constant && held[i].device() != frame.device;
    frame[program.held_slots[i]] = {moves ? held[i].to(frame.device) : held[i]};
  }
  const auto fail = [](const auto& error) {
    using E = std::decay_t<decltype(error)>;
    throw_error<E>("pt2: ", error.what());
  };
  try {
    run_block(program.main, frame);
  } catch (const graph::CaptureError&) {
    throw;
  } catch (const NotImplementedError& error) {
    fail(error);
  } catch (const Error& error) {
    throw_error<ValueError>("pt2: ", error.what());
  }
  std::vector<Item> out;
  for (const Program::Output& one : program.outputs) {
    out.push_back(item_of(value_of(one.value, frame)));
  }
  for (const Program::Mutation& one : program.mutations) {
    const Tensor* value = frame[one.slot].tensor();
    if (value == nullptr || !value->defined()) {
      throw_error<ValueError>("pt2: what is written over an input or a buffer is no tensor");
    }
    if (one.is_held) {
      const NoGradGuard guard;
      Tensor target = held[one.target];
      target.copy_(value->detach());
    } else {
      Tensor target = std::get<Tensor>(inputs[one.target]);
      target.copy_(*value);
    }
  }
  return out;
}

TensorList Model::run(const TensorList& inputs, const TensorList& held) const {
  const Program& program = state_->program;
  std::vector<Item> items;
  size_t next = 0;
  for (const Program::Input& input : program.inputs) {
    if (input.slot < 0) {
      items.push_back(item_of(input.constant));
    } else if (next < inputs.size()) {
      items.emplace_back(inputs[next++]);
    } else {
      ++next;
    }
  }
  if (next != inputs.size()) {
    throw_error<ValueError>("pt2: got ", inputs.size(), " inputs; expected ", next);
  }
  TensorList out;
  for (Item& item : run_items(items, held)) {
    if (auto* x = std::get_if<Tensor>(&item)) out.push_back(std::move(*x));
  }
  return out;
}

TensorList Model::operator()(const TensorList& inputs) const {
  TensorList tensors;
  for (const Held& one : held()) tensors.push_back(one.tensor);
  return run(inputs, tensors);
}

const std::vector<Held>& Model::held() const { return state_->program.held; }
std::vector<size_t> Model::first_places() const {
  std::map<std::pair<const void*, Held::Kind>, size_t> places;
  std::vector<size_t> out;
  for (size_t i = 0; i < held().size(); ++i) {
    const Held& one = held()[i];
    out.push_back(places.try_emplace({one.tensor.impl().get(), one.kind}, i).first->second);
  }
  return out;
}

namespace {
std::vector<std::pair<std::string, Tensor>> named(const std::vector<Held>& held, Held::Kind kind) {
  std::vector<std::pair<std::string, Tensor>> out;
  for (const Held& one : held) {
    if (one.kind == kind) out.emplace_back(one.name, one.tensor);
  }
  return out;
}
}  // namespace

std::vector<std::pair<std::string, Tensor>> Model::named_parameters() const {
  return named(held(), Held::Kind::parameter);
}
std::vector<std::pair<std::string, Tensor>> Model::named_buffers() const {
  return named(held(), Held::Kind::buffer);
}
TensorList Model::parameters() const {
  TensorList out;
  const std::vector<size_t> first = first_places();
  for (size_t i = 0; i < first.size(); ++i) {
    const Held& one = held()[i];
    if (one.kind == Held::Kind::parameter && first[i] == i) out.push_back(one.tensor);
  }
  return out;
}

std::vector<std::string> Model::input_names() const {
  std::vector<std::string> out;
  for (const Program::Input& one : state_->program.inputs) out.push_back(one.name);
  return out;
}
std::vector<std::string> Model::output_names() const {
  std::vector<std::string> out;
  for (const Program::Output& one : state_->program.outputs) out.push_back(one.name);
  return out;
}
std::vector<Item> Model::constant_inputs() const {
  std::vector<Item> out;
  for (const Program::Input& one : state_->program.inputs) out.push_back(item_of(one.constant));
  return out;
}
std::vector<bool> Model::is_constant() const {
  std::vector<bool> out;
  for (const Program::Input& one : state_->program.inputs) out.push_back(one.slot < 0);
  return out;
}
const Tree& Model::input_tree() const { return state_->program.input_tree; }
const Tree& Model::output_tree() const { return state_->program.output_tree; }
const std::vector<std::string>& Model::argument_names() const {
  return state_->program.argument_names;
}
const std::vector<std::pair<std::string, std::string>>& Model::modules() const {
  return state_->program.modules;
}

GraphModel Model::capture(const TensorList& inputs) const {
  CaptureModelOptions options;
  for (const Held& one : held()) options.tensors.emplace_back(one.name, one.tensor);
  for (const Program::Input& one : state_->program.inputs) {
    if (one.slot >= 0) options.input_names.push_back(one.name);
  }
  return kiln::capture([this](const TensorList& xs) { return (*this)(xs); }, inputs, options);
}

}  // namespace kiln::pt2
