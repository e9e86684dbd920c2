// ONNX files.
#include "cli/runnable_kinds.h"
#include "cli/usage_error.h"
#include "kiln/core/utf8.h"
#include "kiln/kiln.h"
#include "kiln/onnx/model.h"

namespace kiln::cli {

namespace {

class OnnxFile final : public Runnable {
 public:
  explicit OnnxFile(const std::string& path) : model_(onnx::Model::load(path)) {}

  std::string kind() const override { return concat("ONNX, operator set ", model_.opset()); }
  std::vector<Port> inputs() const override { return ports(model_.inputs()); }
  std::vector<Port> outputs() const override { return ports(model_.outputs()); }
  std::vector<std::string> nodes() const override { return model_.nodes(); }
  std::vector<std::pair<std::string, Tensor>> tensors() const override {
    return model_.named_parameters();
  }

  Sizes example_sizes() const override {
    Sizes out;
    for (const Port& port : inputs()) {
      for (const Dim& d : port.dims) {
        if (d.size < 0) out[d.name] = 1;
      }
    }
    return out;
  }
  TensorList examples(const Sizes& sizes) const override {
    TensorList out;
    const std::vector<onnx::Described> all = model_.inputs();
    const std::vector<Port> ports = inputs();
    for (size_t i = 0; i < all.size(); ++i) {
      if (!all[i].is_tensor || !all[i].dtype || !all[i].dims) {
        throw UsageError(concat("the file does not say the shape and dtype of the input '",
                                printable(all[i].name, 60), "'"));
      }
      Shape shape;
      for (const Dim& d : ports[i].dims) {
        if (shape.rank() == kMaxRank) throw UsageError("an input has more than 12 dims");
        shape.push_back(d.size < 0 ? sizes.at(d.name) : d.size);
      }
      out.push_back(example_of(shape, *all[i].dtype));
    }
    return out;
  }

  std::vector<std::pair<std::string, Tensor>> run(const TensorList& inputs) const override {
    const NoGradGuard guard;
    return named(model_.output_names(), model_(inputs));
  }
  GraphModel graph(const TensorList& inputs, bool free) const override {
    CaptureModelOptions options{.tensors = model_.named_parameters(),
                                .input_names = model_.input_names(),
                                .output_names = model_.output_names()};
    if (free) {
      for (const Port& port : this->inputs()) {
        for (size_t d = 0; d < port.dims.size(); ++d) {
          if (port.dims[d].size >= 0) continue;
          options.dynamic_axes[port.name][static_cast<int64_t>(d)] = port.dims[d].name;
        }
      }
    }
    return capture([&](const TensorList& xs) { return model_(xs); }, inputs, options);
  }

 private:
  // A free dim without a name gets one: "x.0".
  static std::vector<Port> ports(const std::vector<onnx::Described>& all) {
    std::vector<Port> out;
    for (const onnx::Described& one : all) {
      Port port{.name = one.name,
                .dtype = one.dtype ? to_string(*one.dtype) : "",
                .has_dims = one.dims.has_value()};
      for (size_t d = 0; one.dims && d < one.dims->size(); ++d) {
        const onnx::Described::Dim& dim = (*one.dims)[d];
        port.dims.push_back({dim.size, dim.name.empty() ? concat(one.name, ".", d) : dim.name});
      }
      out.push_back(std::move(port));
    }
    return out;
  }

  onnx::Model model_;
};

}  // namespace

std::unique_ptr<Runnable> open_onnx(const std::string& path) {
  return std::make_unique<OnnxFile>(path);
}

}  // namespace kiln::cli
