// Programs of torch.export.
#include <algorithm>

#include "cli/runnable_kinds.h"
#include "cli/usage_error.h"
#include "kiln/core/utf8.h"
#include "kiln/kiln.h"
#include "kiln/pt2/model.h"

namespace kiln::cli {

namespace {

using Item = pt2::Model::Item;

class Pt2File final : public Runnable {
 public:
  explicit Pt2File(const std::string& path) : model_(pt2::Model::load(path)) {}

  std::string kind() const override { return "a program of torch.export"; }
  std::vector<Port> inputs() const override {
    std::vector<Port> out;
    for (const pt2::Described& one : model_.described_inputs()) {
      Port port{.name = one.name, .dtype = one.is_tensor ? to_string(one.dtype) : "number"};
      for (const pt2::Described::Dim& d : one.dims) port.dims.push_back({d.size, d.name});
      out.push_back(std::move(port));
    }
    return out;
  }
  std::vector<Port> outputs() const override {
    std::vector<Port> out;
    for (const std::string& name : model_.output_names()) {
      out.push_back({.name = name, .has_dims = false});
    }
    return out;
  }
  std::vector<std::string> nodes() const override { return model_.nodes(); }
  std::vector<std::pair<std::string, Tensor>> tensors() const override {
    std::vector<std::pair<std::string, Tensor>> out;
    for (const pt2::Held& one : model_.held()) out.emplace_back(one.name, one.tensor);
    return out;
  }

  Sizes example_sizes() const override {
    Sizes out;
    for (const auto& [name, range] : model_.free_sizes()) {
      // PyTorch takes 0 and 1 for special; its ranges begin at 2, or at 0 where nothing is known.
      out[name] = std::clamp<int64_t>(2, range.first, std::max(range.first, range.second));
    }
    return out;
  }
  TensorList examples(const Sizes& sizes) const override {
    TensorList out;
    const std::vector<pt2::Described> all = model_.described_inputs();
    const std::vector<Shape> shapes = model_.shapes_at(sizes);
    for (size_t i = 0; i < all.size(); ++i) {
      if (!all[i].is_tensor) {
        throw UsageError(concat("the input '", printable(all[i].name, 60),
                                "' is a number; a graph takes tensors"));
      }
      out.push_back(example_of(shapes[i], all[i].dtype));
    }
    return out;
  }

  std::vector<std::pair<std::string, Tensor>> run(const TensorList& inputs) const override {
    const NoGradGuard guard;
    const std::vector<pt2::Described> described = model_.described_inputs();
    const std::vector<bool> is_constant = model_.is_constant();
    std::vector<Item> items = model_.constant_inputs();
    size_t next = 0;
    for (size_t i = 0; i < items.size(); ++i) {
      if (is_constant[i]) continue;
      const Tensor& x = inputs[next];
      items[i] = described[next++].is_tensor ? Item(x) : number(x);
    }
    TensorList held;
    for (const pt2::Held& one : model_.held()) held.push_back(one.tensor);
    const std::vector<Item> results = model_.run_items(items, held);
    std::vector<std::pair<std::string, Tensor>> out;
    for (size_t i = 0; i < results.size(); ++i) {
      const std::string name = model_.output_names()[i];
      if (const auto* x = std::get_if<Tensor>(&results[i])) {
        out.emplace_back(name, *x);
      } else if (const auto* flag = std::get_if<bool>(&results[i])) {
        out.emplace_back(name, full({}, Scalar(*flag), {.dtype = DType::boolean}));
      } else if (const auto* integer = std::get_if<int64_t>(&results[i])) {
        out.emplace_back(name, full({}, Scalar(*integer), {.dtype = DType::i64}));
      } else if (const auto* real = std::get_if<double>(&results[i])) {
        out.emplace_back(name, full({}, Scalar(*real), {.dtype = DType::f64}));
      }
    }
    return out;
  }
  GraphModel graph(const TensorList& inputs, bool free) const override {
    CaptureModelOptions options;
    for (const pt2::Held& one : model_.held()) options.tensors.emplace_back(one.name, one.tensor);
    const Sizes sizes = example_sizes();
    for (const Port& port : this->inputs()) {
      options.input_names.push_back(port.name);
      for (size_t d = 0; free && d < port.dims.size(); ++d) {
        if (port.dims[d].size >= 0) continue;
        if (!sizes.contains(port.dims[d].name)) {
          throw UsageError(concat("the input '", printable(port.name, 60), "' has a dim of size ",
                                  printable(port.dims[d].name, 60),
                                  ", which no graph keeps free; fix the sizes with --size"));
        }
        options.dynamic_axes[port.name][static_cast<int64_t>(d)] = port.dims[d].name;
      }
    }
    return capture([&](const TensorList& xs) { return model_(xs); }, inputs, options);
  }

 private:
  static Item number(const Tensor& x) {
    if (x.dtype() == DType::boolean) return x.item<bool>();
    if (is_floating_point(x.dtype())) return x.item<double>();
    return x.item<int64_t>();
  }

  pt2::Model model_;
};

}  // namespace

std::unique_ptr<Runnable> open_pt2(const std::string& path) {
  return std::make_unique<Pt2File>(path);
}

}  // namespace kiln::cli
