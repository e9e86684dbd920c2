#include "cli/runs/model_summary.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>

#include "kiln/core/error.h"
#include "kiln/tensor/autograd/grad_mode.h"
#include "kiln/train/chart.h"
#include "kiln/train/text.h"

namespace kiln::cli {

namespace {

bool begins(const std::string& text, const char* part) { return text.starts_with(part); }

const Tensor* output_of(const nn::HookValue& value) {
  if (const Tensor* whole = value.tensor_if()) return whole;
  for (const Tensor* part : value.elements()) {
    if (part != nullptr) return part;
  }
  return nullptr;
}

int64_t product(const Shape& shape, int64_t from) {
  int64_t out = 1;
  for (int64_t d = from; d < shape.rank(); ++d) out *= shape[d];
  return out;
}

bool is_recurrent(const std::string& kind) {
  return begins(kind, "LSTM") || begins(kind, "GRU") || begins(kind, "RNN");
}

// Products of a layer with its own weights; of others none are counted.
int64_t multiply_adds_of(nn::Module& module, const Tensor* input, const Tensor& out) {
  const std::string kind = module.type_name();
  const auto own = module.named_parameters("", false);
  if (is_recurrent(kind) && input != nullptr) {
    int64_t weights = 0;
    for (const auto& [name, p] : module.named_parameters()) {
      weights += p.dim() == 2 ? p.numel() : 0;
    }
    return input->numel() / input->size(-1) * weights;
  }
  if (begins(kind, "Embedding")) return 0;
  for (const auto& [name, weight] : own) {
    if (name != "weight") continue;
    if (begins(kind, "ConvTranspose") && input != nullptr) {
      return input->numel() * product(weight.shape(), 1);
    }
    if (begins(kind, "Conv")) return out.numel() * product(weight.shape(), 1);
    if (weight.dim() == 2) return out.numel() * weight.size(1);
    return out.numel();  // norms: one product for each element
  }
  return 0;
}

// Hooks on all modules, as long as it lives.
class Watch {
 public:
  Watch(nn::Module& module, ModelSummary& summary) : summary_(summary) {
    for (const auto& [name, part] : module.named_modules()) {
      handles_.push_back(part->register_forward_pre_hook(
          [this, name = name](nn::Module& m, nn::HookArgs&) { enter(name, m); }));
      handles_.push_back(part->register_forward_hook(
          [this](nn::Module& m, nn::HookArgs& args, nn::HookValue& out) { leave(m, args, out); }));
    }
  }
  ~Watch() {
    for (auto& handle : handles_) handle.remove();
  }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

 private:
  void enter(const std::string& name, nn::Module& module) {
    LayerSummary layer;
    layer.name = name;
    layer.kind = module.type_name();
    layer.depth = static_cast<int>(open_.size());
    for (const auto& [own, p] : module.named_parameters("", false)) layer.parameters += p.numel();
    layer.is_leaf = module.children().empty();
    open_.push_back(summary_.layers.size());
    summary_.layers.push_back(std::move(layer));
  }
  void leave(nn::Module& module, nn::HookArgs& args, const nn::HookValue& value) {
    LayerSummary& layer = summary_.layers[open_.back()];
    open_.pop_back();
    const Tensor* out = output_of(value);
    if (out == nullptr) return;
    layer.output = out->shape();
    // A layer with parts multiplies in them, but for those that are one whole.
    const bool whole = layer.is_leaf || is_recurrent(layer.kind);
    if (whole) {
      const Tensor* input = args.size() > 0 ? args[0].tensor_if() : nullptr;
      layer.multiply_adds = multiply_adds_of(module, input, *out);
      summary_.multiply_adds += layer.multiply_adds;
      summary_.activation_bytes += out->numel() * static_cast<int64_t>(size_of(out->dtype()));
    }
  }

  ModelSummary& summary_;
  std::vector<size_t> open_;
  std::vector<HookHandle> handles_;
};

}  // namespace

std::string memory_text(int64_t bytes) {
  auto size = static_cast<double>(bytes);
  for (const char* unit : {"B", "KiB", "MiB"}) {
    if (size < 1024) return train::format_number(unit[1] == 0 ? "%.0f " : "%.1f ", size) + unit;
    size /= 1024;
  }
  return train::format_number("%.1f GiB", size);
}

std::string count_text(int64_t count) {
  auto value = static_cast<double>(count);
  if (value < 1e4) return train::grouped(count);
  for (const char* unit : {"k", "M", "G"}) {
    value /= 1000;
    if (value < 999.5) return train::format_number("%.3g ", value) + unit;
  }
  return train::format_number("%.3g T", value / 1000);
}

ModelSummary summarize(nn::Module& module, const Tensor& input,
                       const std::function<Tensor(const Tensor&)>& call) {
  ModelSummary out;
  const NoGradGuard no_grad;
  const bool trains = module.is_training();
  module.eval();
  for (const auto& [name, p] : module.named_parameters()) {
    out.parameters += p.numel();
    if (p.requires_grad()) out.trainable += p.numel();
    out.parameter_bytes += p.numel() * static_cast<int64_t>(size_of(p.dtype()));
  }
  for (const auto& [name, b] : module.named_buffers()) {
    out.parameter_bytes += b.numel() * static_cast<int64_t>(size_of(b.dtype()));
  }
  out.input_bytes = input.numel() * static_cast<int64_t>(size_of(input.dtype()));
  try {
    const Watch watch(module, out);
    call(input);
  } catch (...) {
    module.train(trains);
    throw;
  }
  module.train(trains);
  return out;
}

std::string sums_text(const ModelSummary& s) {
  return concat("parameters     ", train::grouped(s.parameters),
                s.trainable == s.parameters
                    ? ""
                    : concat(", of which ", train::grouped(s.trainable), " are trained"),
                "\nmultiply-adds  ", train::grouped(s.multiply_adds),
                " for each sample\nmemory         ", memory_text(s.parameter_bytes),
                " of parameters, ", memory_text(s.activation_bytes),
                " of activations for each sample\n");
}

std::string to_text(const ModelSummary& s, size_t most) {
  int deepest = 0;
  for (const LayerSummary& layer : s.layers) deepest = std::max(deepest, layer.depth);
  const auto shown = [&](int depth) {
    return static_cast<size_t>(std::count_if(s.layers.begin(), s.layers.end(),
                                             [&](const auto& l) { return l.depth <= depth; }));
  };
  while (most > 0 && deepest > 1 && shown(deepest) > most) --deepest;
  // What is left out counts where it belongs.
  std::vector<LayerSummary> layers;
  for (const LayerSummary& layer : s.layers) {
    if (layer.depth <= deepest) {
      layers.push_back(layer);
    } else {
      layers.back().parameters += layer.parameters;
      layers.back().multiply_adds += layer.multiply_adds;
    }
  }
  std::vector<std::vector<std::string>> rows{{"layer", "output", "parameters", "multiply-adds"}};
  for (const LayerSummary& layer : layers) {
    const size_t dot = layer.name.rfind('.');
    const std::string last = dot == std::string::npos ? layer.name : layer.name.substr(dot + 1);
    rows.push_back({concat(std::string(static_cast<size_t>(layer.depth) * 2, ' '),
                           layer.name.empty() ? layer.kind : concat(last, " (", layer.kind, ")")),
                    layer.output.rank() == 0 ? "" : to_string(layer.output),
                    layer.parameters > 0 ? train::grouped(layer.parameters) : "-",
                    layer.multiply_adds > 0 ? train::grouped(layer.multiply_adds) : "-"});
  }
  const std::string table = train::text_table(rows);
  const size_t left = s.layers.size() - layers.size();
  return concat(table,
                left > 0 ? concat("(", left, " layers below these; --all shows them)\n") : "", "\n",
                sums_text(s));
}

Json to_json(const ModelSummary& s) {
  Json out = Json::Object();
  Json layers = Json::Array();
  for (const LayerSummary& layer : s.layers) {
    Json row = Json::Object();
    row.add("name", layer.name);
    row.add("kind", layer.kind);
    row.add("depth", layer.depth);
    Json shape = Json::Array();
    for (const int64_t d : layer.output) shape.add(Json(d));
    row.add("output_shape", std::move(shape));
    row.add("parameters", layer.parameters);
    row.add("multiply_adds", layer.multiply_adds);
    layers.add(std::move(row));
  }
  out.add("layers", std::move(layers));
  out.add("parameters", s.parameters);
  out.add("trainable", s.trainable);
  out.add("multiply_adds", s.multiply_adds);
  out.add("input_bytes", s.input_bytes);
  out.add("activation_bytes", s.activation_bytes);
  out.add("parameter_bytes", s.parameter_bytes);
  return out;
}

}  // namespace kiln::cli
