#include "kiln/compile/graph_model.h"

#include <set>

#include "kiln/compile/guards.h"
#include "kiln/core/utf8.h"
#include "kiln/graph/capture.h"
#include "kiln/graph/file/graph_json.h"
#include "kiln/graph/passes/effects.h"
#include "kiln/graph/passes/passes.h"
#include "kiln/io/safetensors.h"
#include "kiln/nn/module.h"
#include "kiln/tensor/autograd/grad_mode.h"
#include "kiln/tensor/tensor_impl.h"

namespace kiln {

namespace {

const ErasedTensor& inner_of(const char* op, const Tensor& x) {
  return kiln::detail::parts_or_value(op, x).inner;
}

std::string name_at(const std::vector<std::string>& names, const char* stem, size_t i) {
  return i < names.size() ? names[i] : concat(stem, i);
}

void check_count(const char* what, const std::vector<std::string>& names, size_t count) {
  if (names.empty() || names.size() == count) return;
  throw_error<ValueError>("capture: got ", names.size(), " names of ", what, "; expected ", count);
}

// What was made of host memory while it was captured holds its values: a constant.
void make_constants(graph::Graph& graph) {
  std::erase_if(graph.nodes, [&](const graph::Node& node) {
    const bool data =
        node.kind == graph::NodeKind::row &&
        (node.row == graph::kRow_float_from_data || node.row == graph::kRow_int_from_data ||
         node.row == graph::kRow_bool_from_data);
    if (!data) return false;
    graph::Value& value = graph[node.results[0]];
    const Tensor made(std::get<TensorData>(node.arguments[0].attribute));
    value.origin = graph::Origin::constant;
    value.constant = inner_of("capture", made);
    return true;
  });
}

// A name of its own for each constant; the one that it has, where that is free.
std::vector<std::string> tensor_names(const graph::Graph& graph) {
  std::vector<std::string> out;
  std::set<std::string> taken;
  for (const graph::ValueId id : graph.constants()) {
    std::string name = graph[id].name;
    if (name.empty() || !taken.insert(name).second) {
      name = concat("constant.", out.size());
      while (!taken.insert(name).second) name += "_";
    }
    out.push_back(std::move(name));
  }
  return out;
}

}  // namespace

GraphModel::GraphModel(graph::Graph graph, std::vector<std::string> output_names)
    : output_names_(std::move(output_names)) {
  const graph::Effects effects(graph);
  for (const graph::ValueId id : graph.inputs) written_.push_back(effects.is_written(id) ? 1 : 0);
  plan_ = std::make_shared<const graph::Plan>(std::move(graph));
}

TensorList GraphModel::operator()(const TensorList& inputs) const {
  const graph::Graph& graph = plan_->graph();
  if (inputs.size() != graph.inputs.size()) {
    throw_error<ValueError>("graph: expected ", graph.inputs.size(), " inputs; got ",
                            inputs.size());
  }
  const NoGradGuard no_grad;
  const graph::PauseCapture pause;
  std::vector<ErasedTensor> given;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const graph::Value& value = graph[graph.inputs[i]];
    const Tensor& x = inputs[i];
    if (!x.defined()) throw_error<ValueError>("graph: input '", value.name, "' is undefined");
    if (x.dtype() != value.dtype) {
      throw_error<DTypeError>("graph: input '", value.name, "' is ", x.dtype(), "; expected ",
                              value.dtype);
    }
    if (!(x.shape() == value.shape)) {
      throw_error<ShapeError>("graph: input '", value.name, "' has shape ", x.shape(),
                              "; expected ", value.shape, ", which it was captured with");
    }
    if (x.device() != value.device) {
      throw_error<DeviceError>("graph: input '", value.name, "' is on ", x.device(), "; expected ",
                               value.device);
    }
    given.push_back(
        inner_of("graph", written_[i] != 0 ? x.detach().clone() : x.detach().contiguous()));
  }
  TensorList out;
  for (ErasedTensor& y : plan_->run(given)) out.push_back(kiln::detail::wrap(std::move(y)));
  return out;
}

Tensor GraphModel::operator()(const Tensor& x) const {
  TensorList out = (*this)(TensorList{x});
  if (out.size() != 1) {
    throw_error<ValueError>("graph: it has ", out.size(),
                            " outputs; expected one, or a call "
                            "with a list");
  }
  return out[0];
}

std::vector<std::string> GraphModel::input_names() const {
  std::vector<std::string> out;
  for (const graph::ValueId id : graph().inputs) out.push_back(graph()[id].name);
  return out;
}

std::string GraphModel::str() const { return graph().str(); }

void GraphModel::save(const std::string& path) const {
  const std::vector<std::string> names = tensor_names(graph());
  const std::string json =
      encode_json(graph::to_json(graph(), names, output_names_), JsonFormat::text);
  io::NamedTensors tensors;
  size_t i = 0;
  for (const graph::ValueId id : graph().constants()) {
    tensors.emplace_back(names[i++], kiln::detail::wrap(graph()[id].constant).to_data());
  }
  io::save_safetensors(path, tensors, {{kGraphKey, json}});
}

GraphModel GraphModel::load(const std::string& path) {
  const io::SafetensorsReader file(path);
  const auto refuse = [&](const std::string& why) {
    throw_error<IoError>("load: '", path, "': ", printable(why, 400));
  };
  const auto text = file.metadata().find(kGraphKey);
  if (text == file.metadata().end()) {
    refuse("no graph in it; expected a file that GraphModel::save wrote");
  }
  graph::StoredGraph stored;
  try {
    stored = graph::graph_of(decode_json(text->second), [&](const std::string& name) {
      return graph::TensorInfo{file.shape(name), file.dtype(name)};
    });
  } catch (const IoError&) {
    throw;
  } catch (const Error& error) {
    refuse(error.what());
  }
  const std::vector<graph::ValueId> constants = stored.graph.constants();
  for (size_t i = 0; i < constants.size(); ++i) {
    stored.graph[constants[i]].constant = inner_of("load", Tensor(file.read(stored.tensors[i])));
  }
  return {std::move(stored.graph), std::move(stored.outputs)};
}

GraphModel detail::capture_function(const Compiled::Function& f, const TensorList& inputs,
                                    const CaptureModelOptions& options) {
  if (const char* reason = compiling::eager_reason(inputs)) {
    throw_error<graph::CaptureError>("capture: ", reason);
  }
  check_count("inputs", options.input_names, inputs.size());
  for (nn::Module* module : options.modules) module->materialize();
  const NoGradGuard no_grad;
  std::vector<ErasedTensor> outputs;
  graph::Capture recording({.fullgraph = true});
  for (size_t i = 0; i < inputs.size(); ++i) {
    const ErasedTensor& x = inner_of("capture", inputs[i]);
    if (inputs[i].is_complex() || kind_of(x->dtype()) == Kind::quantized) {
      throw_error<DTypeError>("capture: input ", i, " is ", inputs[i].dtype(),
                              "; expected a plain dtype");
    }
    if (recording.add_input(x, name_at(options.input_names, "input", i)) !=
        static_cast<graph::ValueId>(i)) {
      throw_error<ValueError>("capture: input ", i, " is the same tensor as another input");
    }
  }
  const auto name = [&](const std::string& text, const Tensor& x) {
    if (x.defined()) recording.name_constant(inner_of("capture", x), text);
  };
  for (nn::Module* module : options.modules) {
    for (const auto& [text, x] : module->named_parameters()) name(text, x);
    for (const auto& [text, x] : module->named_buffers()) name(text, x);
  }
  for (const auto& [text, x] : options.tensors) name(text, x);
  const TensorList results = f(inputs);
  check_count("outputs", options.output_names, results.size());
  std::vector<std::string> names;
  for (size_t i = 0; i < results.size(); ++i) {
    if (!results[i].defined() || results[i].is_complex()) {
      throw_error<ValueError>("capture: output ", i, " is ",
                              results[i].defined() ? "complex" : "undefined",
                              "; expected a tensor of a plain dtype");
    }
    outputs.push_back(inner_of("capture", results[i]));
    names.push_back(name_at(options.output_names, "output", i));
  }
  graph::Graph graph = recording.finish(outputs);
  const graph::PauseCapture pause;
  make_constants(graph);
  // Not the parameters: they stay by their names.
  return {graph::optimized(std::move(graph), {.fusion = false}), std::move(names)};
}

GraphModel capture(nn::Module& module, const Tensor& input, CaptureModelOptions options) {
  options.modules.push_back(&module);
  return capture(
      [&module](const TensorList& xs) { return TensorList{module.call_with_tensor(xs[0])}; },
      {input}, options);
}

}  // namespace kiln
