#include "kiln/onnx/model.h"

#include "kiln/core/utf8.h"
#include "kiln/graph/capture.h"
#include "kiln/io/input_file.h"
#include "kiln/onnx/read/state.h"

namespace kiln::onnx {

Model Model::load(const std::string& path) {
  auto state = std::make_shared<State>();
  try {
    state->program.file = wire::decode(io::InputFile("onnx", path).read_whole(uint64_t{1} << 31));
    ExternalData data(path);
    plan(state->program, data);
  } catch (const IoError&) {
    throw;
  } catch (const NotImplementedError& error) {
    throw_error<NotImplementedError>("onnx: '", path, "': ", error.what());
  } catch (const Error& error) {
    throw_error<IoError>("onnx: '", path, "': ", error.what());
  }
  return Model(std::move(state));
}

namespace {

Value value_of(const Model::Item& item) {
  if (const auto* x = std::get_if<Tensor>(&item)) return {.tensor = *x};
  if (const auto* all = std::get_if<TensorList>(&item)) {
    return {.sequence = std::make_shared<const TensorList>(*all)};
  }
  return {};
}
Model::Item item_of(const Value& value) {
  if (value.sequence != nullptr) return *value.sequence;
  if (value.tensor.defined()) return value.tensor;
  return {};
}

}  // namespace

std::vector<Model::Item> Model::run_items(const std::vector<Item>& inputs,
                                          const TensorList& parameters) const {
  const Program& program = state_->program;
  if (inputs.size() != program.inputs.size() || parameters.size() != program.parameters.size()) {
    throw_error<ValueError>("onnx: got ", inputs.size(), " inputs and ", parameters.size(),
                            " parameters; expected ", program.inputs.size(), " and ",
                            program.parameters.size());
  }
  Frame frame{Values(static_cast<size_t>(program.slots))};
  const auto at = [&](int slot) -> Value& { return frame[slot]; };
  for (size_t i = 0; i < inputs.size(); ++i) at(program.main.inputs[i]) = value_of(inputs[i]);
  for (size_t i = 0; i < parameters.size(); ++i) {
    at(program.parameter_slots[i]) = {.tensor = parameters[i]};
  }
  try {
    run_block(program.main, frame);
  } catch (const graph::CaptureError&) {
    throw;
  } catch (const NotImplementedError& error) {
    throw_error<NotImplementedError>("onnx: ", error.what());
  } catch (const Error& error) {
    throw_error<ValueError>("onnx: ", error.what());
  }
  std::vector<Item> out;
  for (size_t i = 0; i < program.outputs.size(); ++i) {
    const std::vector<wire::Type>& type = program.main.declared[i]->type;
    const bool may_be_absent = !type.empty() && type[0].tensor_type.empty();
    out.push_back(item_of(at(program.main.outputs[i])));
    if (!may_be_absent && std::holds_alternative<std::monostate>(out.back())) {
      throw_error<NotImplementedError>("onnx: Kiln does not compute the output '",
                                       printable(program.outputs[i], 60), "'");
    }
  }
  return out;
}

TensorList Model::run(const TensorList& inputs, const TensorList& parameters) const {
  TensorList out;
  for (Item& item : run_items({inputs.begin(), inputs.end()}, parameters)) {
    if (!std::holds_alternative<Tensor>(item)) {
      throw_error<NotImplementedError>("onnx: the output '",
                                       printable(state_->program.outputs[out.size()], 60),
                                       "' is no tensor; run_items gives it");
    }
    out.push_back(std::move(std::get<Tensor>(item)));
  }
  return out;
}

TensorList Model::operator()(const TensorList& inputs) const { return run(inputs, parameters()); }

const std::vector<std::pair<std::string, Tensor>>& Model::named_parameters() const {
  return state_->program.parameters;
}
TensorList Model::parameters() const {
  TensorList out;
  for (const auto& [name, x] : state_->program.parameters) out.push_back(x);
  return out;
}
const std::vector<std::string>& Model::input_names() const { return state_->program.inputs; }
const std::vector<std::string>& Model::output_names() const { return state_->program.outputs; }

GraphModel Model::capture(const TensorList& inputs) const {
  return kiln::capture([this](const TensorList& xs) { return (*this)(xs); }, inputs,
                       {.tensors = state_->program.parameters,
                        .input_names = state_->program.inputs,
                        .output_names = state_->program.outputs});
}

}  // namespace kiln::onnx
