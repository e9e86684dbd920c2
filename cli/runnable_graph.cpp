// Kiln's own graph files.
#include "cli/runnable_kinds.h"
#include "kiln/io/model_file.h"
#include "kiln/kiln.h"
#include "kiln/train/text.h"

namespace kiln::cli {

namespace {

class GraphFile final : public Runnable {
 public:
  explicit GraphFile(const std::string& path) : path_(path), model_(GraphModel::load(path)) {}

  std::string kind() const override { return "a graph of Kiln"; }

  std::vector<Port> inputs() const override {
    std::vector<Port> out;
    for (size_t i = 0; i < graph().inputs.size(); ++i) {
      out.push_back(port(model_.input_names()[i], graph().inputs[i]));
      const std::vector<std::string> free = model_.free_dims_of(i);
      for (size_t d = 0; d < free.size(); ++d) {
        if (!free[d].empty()) out[i].dims[d] = {-1, free[d]};
      }
    }
    return out;
  }
  std::vector<Port> outputs() const override {
    std::vector<Port> out;
    for (size_t i = 0; i < graph().outputs.size(); ++i) {
      out.push_back(port(model_.output_names()[i], graph().outputs[i]));
    }
    return out;
  }
  std::vector<std::string> nodes() const override {
    std::vector<std::string> out;
    for (const graph::Node& node : graph().nodes) out.push_back(node.name);
    return out;
  }
  std::string cost() const override {
    const int64_t flops = graph().cost().flops;
    if (flops < 10'000) return concat(train::grouped(flops), " flop");
    if (flops < 10'000'000) return concat(train::grouped(flops / 1000), " kflop");
    return concat(train::grouped(flops / 1'000'000), " Mflop");
  }
  std::vector<std::pair<std::string, Tensor>> tensors() const override {
    const nn::StateDict all = io::load_model_file(path_).tensors;
    return {all.begin(), all.end()};
  }

  Sizes example_sizes() const override {
    Sizes out;
    const std::vector<std::string> names = model_.free_dims();
    for (size_t i = 0; i < names.size(); ++i) out[names[i]] = model_.example_sizes()[i];
    return out;
  }
  TensorList examples(const Sizes& sizes) const override {
    TensorList out;
    for (size_t i = 0; i < graph().inputs.size(); ++i) {
      const graph::Value& value = graph()[graph().inputs[i]];
      const std::vector<std::string> free = model_.free_dims_of(i);
      Shape shape = value.shape;
      for (size_t d = 0; d < free.size(); ++d) {
        if (!free[d].empty()) shape[static_cast<int>(d)] = sizes.at(free[d]);
      }
      out.push_back(example_of(shape, value.dtype));
    }
    return out;
  }

  std::vector<std::pair<std::string, Tensor>> run(const TensorList& inputs) const override {
    return named(model_.output_names(), model_(inputs));
  }
  GraphModel graph(const TensorList& inputs, bool free) const override {
    const std::vector<std::string> names = model_.free_dims();
    if (free || names.empty()) return model_;
    Sizes sizes = example_sizes();
    for (size_t i = 0; i < inputs.size(); ++i) {
      const std::vector<std::string> dims = model_.free_dims_of(i);
      for (size_t d = 0; d < dims.size(); ++d) {
        if (!dims[d].empty()) sizes[dims[d]] = inputs[i].size(static_cast<int>(d));
      }
    }
    std::vector<int64_t> all;
    for (const std::string& name : names) all.push_back(sizes.at(name));
    return {model_.graph_at(all), model_.output_names()};
  }

 private:
  const graph::Graph& graph() const { return model_.graph(); }
  Port port(const std::string& name, graph::ValueId id) const {
    Port out{.name = name, .dtype = to_string(graph()[id].dtype)};
    for (const int64_t d : graph()[id].shape) out.dims.push_back({d});
    return out;
  }

  std::string path_;
  GraphModel model_;
};

}  // namespace

std::vector<std::pair<std::string, Tensor>> named(const std::vector<std::string>& names,
                                                  const TensorList& tensors) {
  std::vector<std::pair<std::string, Tensor>> out;
  for (size_t i = 0; i < tensors.size(); ++i) out.emplace_back(names[i], tensors[i]);
  return out;
}

Tensor example_of(const Shape& shape, DType dtype) {
  return is_floating_point(dtype) ? randn(shape).to(dtype) : zeros(shape, {.dtype = dtype});
}

std::unique_ptr<Runnable> open_graph(const std::string& path) {
  return std::make_unique<GraphFile>(path);
}

}  // namespace kiln::cli
