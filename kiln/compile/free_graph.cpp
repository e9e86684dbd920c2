#include "kiln/compile/free_graph.h"

#include <algorithm>

#include "kiln/compile/graph_model.h"
#include "kiln/core/utf8.h"
#include "kiln/graph/capture.h"
#include "kiln/graph/file/graph_json.h"
#include "kiln/graph/passes/passes.h"
#include "kiln/io/safetensors.h"
#include "kiln/tensor/tensor_impl.h"

namespace kiln {

namespace {

// Files with free sizes; those without have version 1 and no "free".
constexpr int64_t kFreeVersion = 2;
constexpr size_t kMostPlans = 8;

const Json::Array& items_of(const Json& json, const char* key) {
  const Json* found = json.find(key);
  const auto* items = found == nullptr ? nullptr : found->as<Json::Array>();
  if (items == nullptr) throw_error<ValueError>("expected a list '", key, "'");
  return *items;
}

}  // namespace

bool FreeGraph::is_free(const Json& json) {
  const Json* version = json.find("version");
  return version != nullptr && *version == Json(kFreeVersion);
}

FreeGraph::FreeGraph(Json json) : json_(std::move(json)) {
  for (const Json& one : items_of(json_, "free")) {
    const Json *name = one.find("name"), *size = one.find("size");
    const auto* text = name == nullptr ? nullptr : name->as<std::string>();
    const auto* number = size == nullptr ? nullptr : size->as<int64_t>();
    if (text == nullptr || number == nullptr || *number < 0 || names_.size() == 4) {
      throw_error<ValueError>("expected at most four free dims, each with a name and a size");
    }
    names_.push_back(*text);
    example_.push_back(*number);
  }
  std::vector<char> bound(names_.size(), 0);
  const size_t inputs = items_of(json_, "inputs").size();
  for (size_t i = 0; i < inputs; ++i) {
    for (const std::string& name : dims_of(i)) {
      const auto found = std::ranges::find(names_, name);
      if (found != names_.end()) bound[static_cast<size_t>(found - names_.begin())] = 1;
    }
  }
  for (size_t i = 0; i < names_.size(); ++i) {
    if (bound[i] != 0) continue;
    throw_error<ValueError>("the free dim '", printable(names_[i], 60), "' is that of no input");
  }
}

FreeGraph::FreeGraph(Json json, std::vector<std::string> names, graph::Sizes example,
                     Constants constants)
    : names_(std::move(names)), example_(std::move(example)), constants_(std::move(constants)) {
  Json free = Json::Array{};
  for (size_t i = 0; i < names_.size(); ++i) {
    free.add(Json(Json::Object{{"name", names_[i]}, {"size", example_[i]}}));
  }
  json_ = Json::Object{{"version", kFreeVersion}, {"free", std::move(free)}};
  for (auto& [key, value] : *json.as<Json::Object>()) {
    if (key != "version") json_.add(key, std::move(value));
  }
}

void FreeGraph::add_constant(const std::string& name, ErasedTensor x) {
  constants_.emplace_back(name, std::move(x));
}

std::vector<std::string> FreeGraph::output_names() const {
  std::vector<std::string> out;
  for (const Json& one : items_of(json_, "outputs")) {
    const Json* name = one.find("name");
    if (name == nullptr || name->as<std::string>() == nullptr) {
      throw_error<ValueError>("expected a name for each output");
    }
    out.push_back(*name->as<std::string>());
  }
  return out;
}

std::vector<std::string> FreeGraph::dims_of(size_t input) const {
  std::vector<std::string> out;
  for (const Json& dim : items_of(items_of(json_, "inputs").at(input), "shape")) {
    const auto e = graph::expression_of(dim, names_);
    if (!e && dim.as<int64_t>() == nullptr) {
      throw_error<ValueError>("got ", dim.describe(), "; expected a size or a free one");
    }
    if (e && e->single() < 0) {
      throw_error<ValueError>("input ", input, " has a dim of size ", e->str(names_),
                              "; expected a free one by itself");
    }
    out.push_back(e ? names_[static_cast<size_t>(e->single())] : "");
  }
  return out;
}

Json FreeGraph::json_at(const graph::Sizes& sizes) const {
  Json out = Json::Object{{"version", int64_t{1}}};
  for (const char* key : {"inputs", "constants", "nodes", "outputs"}) {
    const Json* found = json_.find(key);
    if (found != nullptr) out.add(key, graph::at_sizes(*found, names_, sizes));
  }
  return out;
}

graph::Graph FreeGraph::at(const graph::Sizes& sizes) const {
  const auto constant = [&](const std::string& name) -> const ErasedTensor& {
    for (const auto& [known, x] : constants_) {
      if (known == name) return x;
    }
    throw_error<ValueError>("no constant '", printable(name, 60), "'");
  };
  graph::StoredGraph stored = graph::graph_of(json_at(sizes), [&](const std::string& name) {
    const ErasedTensor& x = constant(name);
    return graph::TensorInfo{x->shape(), x->dtype()};
  });
  const std::vector<graph::ValueId> ids = stored.graph.constants();
  for (size_t i = 0; i < ids.size(); ++i) {
    stored.graph[ids[i]].constant = constant(stored.tensors[i]);
  }
  return std::move(stored.graph);
}

graph::Sizes FreeGraph::sizes_of(const std::vector<Tensor>& inputs) const {
  graph::Sizes out(names_.size(), -1);
  const auto& described = items_of(json_, "inputs");
  for (size_t i = 0; i < inputs.size(); ++i) {
    const std::vector<std::string> dims = dims_of(i);
    const auto& sizes = items_of(described[i], "shape");
    const Shape& shape = inputs[i].shape();
    bool fits = dims.size() == static_cast<size_t>(shape.rank());
    for (size_t d = 0; fits && d < dims.size(); ++d) {
      const int64_t n = shape[static_cast<int>(d)];
      const auto place = static_cast<size_t>(std::ranges::find(names_, dims[d]) - names_.begin());
      if (dims[d].empty() || place == names_.size()) {
        fits = sizes[d] == Json(n);
        continue;
      }
      fits = out[place] < 0 || out[place] == n;
      out[place] = n;
    }
    if (fits) continue;
    std::string expected;
    for (size_t d = 0; d < dims.size(); ++d) {
      const auto* n = sizes[d].as<int64_t>();
      expected += concat(d == 0 ? "" : ", ", n == nullptr ? dims[d] : concat(*n));
    }
    const auto* name = described[i].find("name")->as<std::string>();
    throw_error<ShapeError>("graph: input '", name == nullptr ? "" : *name, "' has shape ", shape,
                            "; expected [", expected, "], with one size for each name");
  }
  return out;
}

std::shared_ptr<const graph::Plan> FreeGraph::plan(const std::vector<Tensor>& inputs) const {
  const graph::Sizes sizes = sizes_of(inputs);
  const std::lock_guard lock(mutex_);
  const auto known = std::ranges::find_if(plans_, [&](const auto& p) { return p.sizes == sizes; });
  if (known != plans_.end()) {
    std::rotate(plans_.begin(), known, known + 1);
    return plans_.front().plan;
  }
  std::shared_ptr<const graph::Plan> made;
  graph::PassReport report;
  try {
    made = std::make_shared<const graph::Plan>(graph::optimized(at(sizes), {}, &report));
  } catch (const Error& error) {
    std::string text;
    for (size_t i = 0; i < sizes.size(); ++i) {
      text += concat(i == 0 ? "" : ", ", names_[i], " = ", sizes[i]);
    }
    throw_error<ValueError>("graph: it does not take ", text, ": ", error.what());
  }
  plans_.insert(plans_.begin(), {sizes, made, std::move(report.lines)});
  if (plans_.size() > kMostPlans) plans_.pop_back();
  return made;
}

std::vector<std::string> FreeGraph::report() const {
  const std::lock_guard lock(mutex_);
  if (plans_.empty()) return {};
  std::vector<std::string> out = plans_.front().report;
  for (std::string& line : plans_.front().plan->times()) out.push_back(std::move(line));
  return out;
}

void FreeGraph::save(const std::string& path) const {
  io::NamedTensors tensors;
  for (const auto& [name, x] : constants_) {
    tensors.emplace_back(name, kiln::detail::wrap(x).to_data());
  }
  io::save_safetensors(path, tensors, {{kGraphKey, encode_json(json_, JsonFormat::text)}});
}

}  // namespace kiln
