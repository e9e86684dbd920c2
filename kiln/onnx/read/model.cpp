#include "kiln/onnx/model.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "kiln/core/utf8.h"
#include "kiln/graph/capture.h"
#include "kiln/io/input_file.h"
#include "kiln/onnx/read/call.h"
#include "kiln/tensor/autograd/grad_mode.h"

namespace kiln::onnx {

namespace {

const std::map<std::string, const Operator*>& table() {
  static const auto all = [] {
    std::map<std::string, const Operator*> out;
    for (const auto family :
         {elementwise_operators(), shape_operators(), reduction_operators(), layer_operators(),
          resize_operators(), recurrent_operators(), loss_operators(), attention_operators(),
          image_operators(), signal_operators(), selection_operators(), quantized_operators()}) {
      for (const Operator& one : family) out[one.name] = &one;
    }
    return out;
  }();
  return all;
}

struct Step {
  const wire::Node* node;
  const Operator* op;
  std::vector<int> inputs;  // slots; -1: absent
  std::vector<int> outputs;
};

std::string label(const wire::Node& node, size_t n) {
  return concat("node ", n, node.name.empty() ? "" : " '" + printable(node.name, 60) + "'", " (",
                printable(node.op_type, 40), ")");
}

// Whether a float that a node takes here is a weight, and not a number that says what it does.
bool is_weight(const std::string& op, size_t input) {
  static const std::set<std::string> layers = {"Conv",
                                               "ConvTranspose",
                                               "Gemm",
                                               "MatMul",
                                               "Add",
                                               "Mul",
                                               "Sub",
                                               "Div",
                                               "LayerNormalization",
                                               "InstanceNormalization",
                                               "GroupNormalization",
                                               "RMSNormalization",
                                               "PRelu",
                                               "LSTM",
                                               "GRU",
                                               "RNN",
                                               "Gather",
                                               "Identity",
                                               "Transpose",
                                               "Reshape",
                                               "Unsqueeze",
                                               "Squeeze",
                                               "Concat",
                                               "Expand",
                                               "Slice",
                                               "Cast",
                                               "Split",
                                               "Einsum"};
  if (op == "BatchNormalization") return input == 1 || input == 2;
  return layers.contains(op);
}

}  // namespace

struct Model::State {
  wire::Model file;
  int version = 0;
  std::vector<Step> steps;
  std::vector<std::string> inputs, outputs;
  std::vector<int> input_slots, output_slots;
  std::vector<std::pair<std::string, Tensor>> parameters;
  std::vector<int> parameter_slots;
  std::vector<std::pair<int, Tensor>> constants;
  int slots = 0;

  void plan();
};

void Model::State::plan() {
  if (file.graph.size() != 1) throw_error<ValueError>("expected one graph; got none");
  for (const wire::OperatorSet& set : file.opset_import) {
    if (set.domain.empty() || set.domain == "ai.onnx") version = static_cast<int>(set.version);
  }
  if (version < kOldestOpset || version > kNewestOpset) {
    throw_error<NotImplementedError>("operator set ", version, "; expected ", kOldestOpset, " to ",
                                     kNewestOpset);
  }
  const wire::Graph& graph = file.graph[0];
  std::unordered_map<std::string, int> slot_of;
  const auto add = [&](const std::string& name, const char* what) {
    if (!slot_of.try_emplace(name, slots).second) {
      throw_error<ValueError>(what, " '", printable(name, 60), "' is there twice");
    }
    return slots++;
  };
  std::map<std::string, bool> weights;
  for (const wire::Node& node : graph.node) {
    for (size_t i = 0; i < node.input.size(); ++i) {
      const auto [found, is_new] = weights.try_emplace(node.input[i], true);
      found->second = found->second && is_weight(node.op_type, i);
    }
  }
  for (const wire::Tensor& tensor : graph.initializer) {
    const int slot = add(tensor.name, "initializer");
    Tensor x;
    try {
      x = tensor_of(tensor);
    } catch (const NotImplementedError& error) {
      throw_error<NotImplementedError>("initializer '", printable(tensor.name, 60),
                                       "': ", error.what());
    } catch (const Error& error) {
      throw_error<ValueError>("initializer '", printable(tensor.name, 60), "': ", error.what());
    }
    const auto found = weights.find(tensor.name);
    if (x.is_floating_point() && x.dim() > 0 && found != weights.end() && found->second) {
      parameters.emplace_back(tensor.name, x.requires_grad_());
      parameter_slots.push_back(slot);
    } else {
      constants.emplace_back(slot, x);
    }
  }
  for (const wire::ValueInfo& info : graph.input) {
    if (slot_of.contains(info.name)) continue;  // an initializer is its default
    input_slots.push_back(add(info.name, "input"));
    inputs.push_back(info.name);
  }
  for (size_t n = 0; n < graph.node.size(); ++n) {
    const wire::Node& node = graph.node[n];
    const auto op = table().find(node.op_type);
    if ((!node.domain.empty() && node.domain != "ai.onnx") || op == table().end()) {
      throw_error<NotImplementedError>(label(node, n), ": Kiln lacks this operator",
                                       node.domain.empty() ? "" : " of domain ",
                                       printable(node.domain, 40));
    }
    Step step{&node, op->second, {}, {}};
    for (const std::string& name : node.input) {
      const auto slot = slot_of.find(name);
      if (!name.empty() && slot == slot_of.end()) {
        throw_error<ValueError>(label(node, n), ": nothing before it makes '", printable(name, 60),
                                "'; expected nodes in order, without circles");
      }
      step.inputs.push_back(name.empty() ? -1 : slot->second);
    }
    for (const std::string& name : node.output) {
      step.outputs.push_back(name.empty() ? -1 : add(name, "value"));
    }
    steps.push_back(std::move(step));
  }
  for (const wire::ValueInfo& info : graph.output) {
    const auto slot = slot_of.find(info.name);
    if (slot == slot_of.end()) {
      throw_error<ValueError>("no node makes the output '", printable(info.name, 60), "'");
    }
    output_slots.push_back(slot->second);
    outputs.push_back(info.name);
  }
}

Model Model::load(const std::string& path) {
  auto state = std::make_shared<State>();
  try {
    state->file = wire::decode(io::InputFile("onnx", path).read_whole(uint64_t{1} << 31));
    state->plan();
  } catch (const IoError&) {
    throw;
  } catch (const NotImplementedError& error) {
    throw_error<NotImplementedError>("onnx: '", path, "': ", error.what());
  } catch (const Error& error) {
    throw_error<IoError>("onnx: '", path, "': ", error.what());
  }
  for (wire::Tensor& tensor : state->file.graph[0].initializer)
    tensor = {};  // they are tensors now
  return Model(std::move(state));
}

TensorList Model::run(const TensorList& inputs, const TensorList& parameters) const {
  const State& state = *state_;
  if (inputs.size() != state.inputs.size() || parameters.size() != state.parameters.size()) {
    throw_error<ValueError>("onnx: got ", inputs.size(), " inputs and ", parameters.size(),
                            " parameters; expected ", state.inputs.size(), " and ",
                            state.parameters.size());
  }
  std::vector<Call::Value> values(static_cast<size_t>(state.slots));
  const auto at = [&](int slot) -> Call::Value& { return values[static_cast<size_t>(slot)]; };
  for (const auto& [slot, x] : state.constants) at(slot) = {x, true};
  for (size_t i = 0; i < inputs.size(); ++i) at(state.input_slots[i]) = {inputs[i], false};
  for (size_t i = 0; i < parameters.size(); ++i) {
    at(state.parameter_slots[i]) = {parameters[i], false};
  }
  for (size_t n = 0; n < state.steps.size(); ++n) {
    const Step& step = state.steps[n];
    std::vector<const Call::Value*> given;
    bool fixed = true;
    for (const int slot : step.inputs) {
      given.push_back(slot < 0 ? nullptr : &at(slot));
      if (slot >= 0 && !at(slot).tensor.defined()) given.back() = nullptr;
      fixed = fixed && (slot < 0 || at(slot).fixed);
    }
    // Shapes are the same in each call of a graph.
    fixed = fixed || step.node->op_type == "Shape" || step.node->op_type == "Size";
    Call call(*step.node, state.version, std::move(given), step.outputs.size());
    try {
      std::optional<graph::PauseCapture> pause;
      if (fixed) pause.emplace();
      step.op->run(call);
    } catch (const graph::CaptureError&) {
      throw;
    } catch (const NotImplementedError& error) {
      throw_error<NotImplementedError>("onnx: ", label(*step.node, n), ": ", error.what());
    } catch (const Error& error) {
      throw_error<ValueError>("onnx: ", label(*step.node, n), ": ", error.what());
    }
    for (size_t i = 0; i < step.outputs.size(); ++i) {
      if (step.outputs[i] >= 0) at(step.outputs[i]) = {std::move(call.results()[i]), fixed};
    }
  }
  TensorList out;
  for (size_t i = 0; i < state.outputs.size(); ++i) {
    out.push_back(at(state.output_slots[i]).tensor);
    if (!out.back().defined()) {
      throw_error<NotImplementedError>("onnx: Kiln does not compute the output '",
                                       printable(state.outputs[i], 60), "'");
    }
  }
  return out;
}

TensorList Model::operator()(const TensorList& inputs) const { return run(inputs, parameters()); }

const std::vector<std::pair<std::string, Tensor>>& Model::named_parameters() const {
  return state_->parameters;
}
TensorList Model::parameters() const {
  TensorList out;
  for (const auto& [name, x] : state_->parameters) out.push_back(x);
  return out;
}
const std::vector<std::string>& Model::input_names() const { return state_->inputs; }
const std::vector<std::string>& Model::output_names() const { return state_->outputs; }

GraphModel Model::capture(const TensorList& inputs) const {
  return kiln::capture([this](const TensorList& xs) { return (*this)(xs); }, inputs,
                       {.tensors = state_->parameters,
                        .input_names = state_->inputs,
                        .output_names = state_->outputs});
}

std::vector<std::string> operators() {
  std::vector<std::string> out;
  for (const auto& [name, op] : table()) out.push_back(name);
  return out;
}

}  // namespace kiln::onnx
