#include "kiln/compile/graph_model.h"

#include <algorithm>
#include <set>

#include "kiln/compile/free_graph.h"
#include "kiln/compile/guards.h"
#include "kiln/core/utf8.h"
#include "kiln/graph/capture.h"
#include "kiln/graph/file/graph_json.h"
#include "kiln/graph/passes/effects.h"
#include "kiln/graph/passes/passes.h"
#include "kiln/io/safetensors.h"
#include "kiln/nn/module.h"
#include "kiln/tensor/autograd/grad_mode.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/elementwise/pointwise.h"
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

// What is kept in files: rows as they were recorded, so that other versions and ONNX have them.
constexpr graph::PassOptions kStored = {
    .epilogues = false, .joined_convolutions = false, .fusion = false};
graph::PassOptions stored_passes(const CaptureModelOptions& options) {
  graph::PassOptions out = kStored;
  out.freeze = options.freeze;
  out.norm_folding = out.merged_products = !options.exact;
  return out;
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
  graph_ = std::make_shared<const graph::Graph>(std::move(graph));
  graph::PassReport report;
  plan_ = std::make_shared<const graph::Plan>(graph::optimized(*graph_, {}, &report));
  report_ = std::move(report.lines);
}

GraphModel::GraphModel(std::shared_ptr<const FreeGraph> free)
    : GraphModel(graph::optimized(free->at(free->example()), kStored), free->output_names()) {
  plan_ = nullptr;
  free_ = std::move(free);
}

std::string GraphModel::explain() const {
  std::string out;
  for (const std::string& line : free_ == nullptr ? report_ : free_->report()) out += line + "\n";
  if (plan_ == nullptr) return out;
  for (const std::string& line : plan_->times()) out += line + "\n";
  return out;
}

TensorList GraphModel::operator()(const TensorList& inputs) const {
  const graph::Graph& graph = *graph_;
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
    if (free_ == nullptr && !(x.shape() == value.shape)) {
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
  const std::shared_ptr<const graph::Plan> plan = free_ == nullptr ? plan_ : free_->plan(inputs);
  TensorList out;
  for (ErasedTensor& y : plan->run(given)) out.push_back(kiln::detail::wrap(std::move(y)));
  return out;
}

std::vector<std::string> GraphModel::free_dims() const {
  return free_ == nullptr ? std::vector<std::string>{} : free_->names();
}
std::vector<std::string> GraphModel::free_dims_of(size_t input) const {
  if (free_ != nullptr) return free_->dims_of(input);
  const auto rank = static_cast<size_t>(graph()[graph().inputs.at(input)].shape.rank());
  return std::vector<std::string>(rank);
}
std::vector<int64_t> GraphModel::example_sizes() const {
  return free_ == nullptr ? std::vector<int64_t>{} : free_->example();
}
graph::Graph GraphModel::graph_at(const std::vector<int64_t>& sizes) const {
  if (sizes.size() != free_dims().size()) {
    throw_error<ValueError>("graph: got ", sizes.size(), " sizes; expected ", free_dims().size());
  }
  return free_ == nullptr ? graph() : free_->at(sizes);
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
  if (free_ != nullptr) return free_->save(path);
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
  const auto read = [&](const std::string& name) {
    return inner_of("load", Tensor(file.read(name)));
  };
  graph::StoredGraph stored;
  std::shared_ptr<FreeGraph> free;
  try {
    Json json = decode_json(text->second);
    if (FreeGraph::is_free(json)) {
      free = std::make_shared<FreeGraph>(std::move(json));
      json = free->json_at(free->example());
    }
    stored = graph::graph_of(json, [&](const std::string& name) {
      return graph::TensorInfo{file.shape(name), file.dtype(name)};
    });
    if (free != nullptr) {
      for (const std::string& name : stored.tensors) free->add_constant(name, read(name));
      return GraphModel(std::shared_ptr<const FreeGraph>(std::move(free)));
    }
  } catch (const IoError&) {
    throw;
  } catch (const Error& error) {
    refuse(error.what());
  }
  const std::vector<graph::ValueId> constants = stored.graph.constants();
  for (size_t i = 0; i < constants.size(); ++i) {
    stored.graph[constants[i]].constant = read(stored.tensors[i]);
  }
  return {std::move(stored.graph), std::move(stored.outputs)};
}

namespace {

// A tensor that is given twice, as in attention(x, x, x), is two inputs of the graph.
TensorList each_its_own(TensorList xs) {
  for (size_t i = 1; i < xs.size(); ++i) {
    const ErasedTensor& x = inner_of("capture", xs[i]);
    const bool known = std::any_of(xs.begin(), xs.begin() + static_cast<int64_t>(i),
                                   [&](const Tensor& y) { return inner_of("capture", y) == x; });
    if (known) xs[i] = xs[i].clone();
  }
  return xs;
}

// f(examples) as it was recorded, and the names of its outputs.
std::pair<graph::Graph, std::vector<std::string>> recorded(const Compiled::Function& f,
                                                           const TensorList& examples,
                                                           const CaptureModelOptions& options) {
  std::vector<ErasedTensor> outputs;
  const TensorList inputs = each_its_own(examples);
  graph::Capture recording({.fullgraph = true, .reads_constants = true});
  for (size_t i = 0; i < inputs.size(); ++i) {
    const ErasedTensor& x = inner_of("capture", inputs[i]);
    if (inputs[i].is_complex() || kind_of(x->dtype()) == Kind::quantized) {
      throw_error<DTypeError>("capture: input ", i, " is ", inputs[i].dtype(),
                              "; expected a plain dtype");
    }
    recording.add_input(x, name_at(options.input_names, "input", i));
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
  return {std::move(graph), std::move(names)};
}

// Which free dim stands where in the inputs.
struct FreeDims {
  std::vector<std::string> names;
  graph::Sizes sizes;                             // of the example
  std::vector<std::map<int64_t, size_t>> places;  // by input, by dim
};
FreeDims free_dims_of(const TensorList& inputs, const CaptureModelOptions& options) {
  FreeDims out;
  out.places.resize(inputs.size());
  for (const auto& [input, dims] : options.dynamic_axes) {
    size_t i = 0;
    while (i < inputs.size() && name_at(options.input_names, "input", i) != input) ++i;
    if (i == inputs.size()) {
      throw_error<ValueError>("capture: dynamic_axes names the input '", printable(input, 60),
                              "', which there is not");
    }
    for (const auto& [given, name] : dims) {
      const int64_t rank = inputs[i].dim(), dim = given < 0 ? given + rank : given;
      if (dim < 0 || dim >= rank) {
        throw_error<ValueError>("capture: dynamic_axes of '", input, "' has dim ", given,
                                "; the input has shape ", inputs[i].shape());
      }
      if (name.empty() || !is_utf8(name)) {
        throw_error<ValueError>("capture: dynamic_axes of '", input, "' has no name for dim ",
                                given);
      }
      const auto known = std::ranges::find(out.names, name);
      const auto place = static_cast<size_t>(known - out.names.begin());
      const int64_t size = inputs[i].size(dim);
      if (known == out.names.end()) {
        out.names.push_back(name);
        out.sizes.push_back(size);
      } else if (out.sizes[place] != size) {
        throw_error<ValueError>("capture: the free dim '", name, "' has sizes ", out.sizes[place],
                                " and ", size, "; expected one");
      }
      out.places[i][dim] = place;
    }
  }
  if (out.names.size() > 4) {
    throw_error<ValueError>("capture: got ", out.names.size(), " free dims; expected at most 4");
  }
  return out;
}

// The example's elements, again and again where there are more.
Tensor resized(const Tensor& x, const std::map<int64_t, size_t>& places,
               const graph::Sizes& sizes) {
  Tensor out = x.detach();
  for (const auto& [dim, place] : places) {
    const int64_t n = out.size(dim), wanted = sizes[place];
    if (n == 0) {
      throw_error<ValueError>("capture: a free dim of size 0; expected an example with elements");
    }
    out = out.index_select(dim, arange(0, wanted).remainder(n));
  }
  return out.contiguous();
}

// The constants, which must be the same at all sizes.
using Constants = std::vector<std::pair<std::string, ErasedTensor>>;
Constants constants_of(const graph::Graph& graph, const std::vector<std::string>& names) {
  Constants out;
  size_t i = 0;
  for (const graph::ValueId id : graph.constants())
    out.emplace_back(names[i++], graph[id].constant);
  return out;
}
void check_constants(const Constants& a, const Constants& b) {
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    if (a[i].second.get() == b[i].second.get()) continue;
    const Tensor x = kiln::detail::wrap(a[i].second), y = kiln::detail::wrap(b[i].second);
    if (x.dtype() == y.dtype() && x.equal(y)) continue;
    throw_error<graph::CaptureError>("capture: the constant '", a[i].first, "' is ", x.dtype(), " ",
                                     x.shape(), ", and ", y.dtype(), " ", y.shape(),
                                     " with other values at other sizes of the free dims: it is "
                                     "made outside of what is captured");
  }
  if (a.size() != b.size()) {
    throw_error<graph::CaptureError>("capture: there are ", a.size(), " constants, and ", b.size(),
                                     " at other sizes of the free dims");
  }
}

std::shared_ptr<FreeGraph> captured_at(const Compiled::Function& f, const TensorList& inputs,
                                       const CaptureModelOptions& options, const FreeDims& dims,
                                       int attempt) {
  const std::vector<graph::Sizes> samples = graph::sample_sizes(dims.sizes, attempt);
  std::vector<Json> graphs;
  Constants constants;
  for (const graph::Sizes& sizes : samples) {
    TensorList given;
    for (size_t i = 0; i < inputs.size(); ++i) {
      given.push_back(resized(inputs[i], dims.places[i], sizes));
    }
    auto [graph, names] = recorded(f, given, options);
    const graph::PauseCapture pause;
    graph::remove_dead_code(graph);
    if (options.freeze) {
      graph::PassOptions passes = stored_passes(options);
      passes.any_size = true;
      graph = graph::optimized(std::move(graph), passes);
    }
    const std::vector<std::string> tensors = tensor_names(graph);
    graphs.push_back(graph::to_json(graph, tensors, names));
    Constants here = constants_of(graph, tensors);
    if (graphs.size() > 1) check_constants(constants, here);
    if (graphs.size() == 1) constants = std::move(here);
  }
  Json all = graph::unified(graphs, samples, dims.names);
  return std::make_shared<FreeGraph>(std::move(all), dims.names, dims.sizes, std::move(constants));
}

// Whether the graph gives what the function gives, at the example's sizes.
void check_example(const GraphModel& model, const TensorList& inputs, const TensorList& expected) {
  const TensorList found = model(inputs);
  for (size_t i = 0; i < found.size(); ++i) {
    const Tensor &a = found[i], &b = expected[i];
    bool same = a.shape() == b.shape() && a.dtype() == b.dtype();
    if (same && a.is_floating_point()) {
      const Tensor x = a.to(DType::f64), y = b.detach().to(DType::f64);
      const double scale = y.numel() == 0 ? 0 : nan_to_num(y.abs(), 0.0, 0.0).max().item<double>();
      same = x.allclose(y, 1e-3, 1e-3 * scale, true);
    } else if (same) {
      same = a.equal(b.detach());
    }
    if (same) continue;
    throw_error<graph::CaptureError>("capture: with free dims output '", model.output_names()[i],
                                     "' is not what the function gives: what it computes depends "
                                     "on the sizes");
  }
}

}  // namespace

GraphModel detail::capture_function(const Compiled::Function& f, const TensorList& inputs,
                                    const CaptureModelOptions& options) {
  if (const char* reason = compiling::eager_reason(inputs)) {
    throw_error<graph::CaptureError>("capture: ", reason);
  }
  check_count("inputs", options.input_names, inputs.size());
  for (nn::Module* module : options.modules) module->materialize();
  const NoGradGuard no_grad;
  const FreeDims dims = free_dims_of(inputs, options);
  if (dims.names.empty()) {
    auto [graph, names] = recorded(f, inputs, options);
    const graph::PauseCapture pause;
    // Parameters stay by their names, unless they are frozen.
    return {graph::optimized(std::move(graph), stored_passes(options)), std::move(names)};
  }
  const TensorList expected = f(inputs);
  for (int attempt = 0;; ++attempt) {
    try {
      GraphModel model(captured_at(f, inputs, options, dims, attempt));
      check_example(model, inputs, expected);
      return model;
    } catch (const DTypeError&) {
      throw;
    } catch (const Error& error) {
      // Some sizes suit a function less than others: those of another dim, or odd ones.
      if (attempt + 1 < graph::kSampleAttempts) continue;
      throw_error<graph::CaptureError>("capture: with free dims: ", error.what());
    }
  }
}

GraphModel capture(nn::Module& module, const Tensor& input, CaptureModelOptions options) {
  options.modules.push_back(&module);
  return capture(
      [&module](const TensorList& xs) { return TensorList{module.call_with_tensor(xs[0])}; },
      {input}, options);
}

}  // namespace kiln
