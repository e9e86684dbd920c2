#include "cli/model_inspect.h"

#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fnmatch.h>
#include <nlohmann/json.hpp>

#include "cli/file_size.h"
#include "cli/runnable.h"
#include "cli/usage_error.h"
#include "kiln/compile/graph_model.h"
#include "kiln/core/error.h"
#include "kiln/io/input_file.h"
#include "kiln/io/model_reader.h"
#include "kiln/train/text.h"

namespace kiln::cli {

namespace {

struct InspectFlags {
  std::string file;
  std::string key;
  std::string filter;
  bool json = false;
};

struct Totals {
  size_t tensors = 0;
  int64_t elements = 0;
  uint64_t bytes = 0;
};

bool shown(const InspectFlags& flags, const std::string& name) {
  return flags.filter.empty() || ::fnmatch(flags.filter.c_str(), name.c_str(), 0) == 0;
}

std::vector<const io::TensorEntry*> chosen_tensors(const InspectFlags& flags,
                                                   const io::ModelReader& model, Totals& totals) {
  std::vector<const io::TensorEntry*> out;
  for (const io::TensorEntry& entry : model.entries()) {
    if (!shown(flags, entry.name)) continue;
    out.push_back(&entry);
    ++totals.tensors;
    totals.bytes += entry.bytes;
    totals.elements += entry.shape.numel();
  }
  return out;
}

// One line, fit for a terminal, whatever the file holds.
std::string safe(const std::string& text) { return printable(text, 60); }

// "3 Conv, 2 Relu".
std::string counts_text(const Runnable& model) {
  std::map<std::string, int64_t> counts;
  for (const std::string& name : model.nodes()) ++counts[name];
  std::string text;
  for (const auto& [name, count] : counts) {
    text += concat(text.empty() ? "" : ", ", count, " ", safe(name));
  }
  return text;
}

// What a model file computes: its inputs, outputs and nodes by number.
void print_model(const Runnable& model) {
  std::vector<std::vector<std::string>> rows{{"graph", "name", "dtype", "shape"}};
  const auto add = [&](const char* what, const std::vector<Runnable::Port>& ports) {
    for (const Runnable::Port& port : ports) {
      rows.push_back({what, safe(port.name), port.dtype, port.shape_text()});
    }
  };
  add("input", model.inputs());
  add("output", model.outputs());
  const std::string cost = model.cost().empty() ? "" : concat(", ", model.cost(), " a call");
  std::printf("\n%s\n%s nodes%s: %s\n", train::text_table(rows).c_str(),
              train::grouped(static_cast<int64_t>(model.nodes().size())).c_str(), cost.c_str(),
              counts_text(model).c_str());
}

// What JSON says of the same.
void add_model(nlohmann::ordered_json& out, const Runnable& model) {
  const auto list = [](const std::vector<Runnable::Port>& ports) {
    nlohmann::ordered_json all = nlohmann::ordered_json::array();
    for (const Runnable::Port& port : ports) {
      nlohmann::ordered_json one;
      one["name"] = port.name;
      if (!port.dtype.empty()) one["dtype"] = port.dtype;
      if (port.has_dims) {
        one["shape"] = nlohmann::ordered_json::array();
        for (const Runnable::Dim& d : port.dims) {
          one["shape"].push_back(d.size >= 0 ? nlohmann::ordered_json(d.size)
                                             : nlohmann::ordered_json(d.name));
        }
      }
      all.push_back(std::move(one));
    }
    return all;
  };
  out["inputs"] = list(model.inputs());
  out["outputs"] = list(model.outputs());
  out["nodes"] = nlohmann::ordered_json::object();
  for (const std::string& name : model.nodes()) {
    nlohmann::ordered_json& count = out["nodes"][name];
    count = (count.is_null() ? 0 : count.get<int64_t>()) + 1;
  }
}

void print_total(const Totals& totals) {
  std::printf("\n%s tensor%s, %s elements, %s\n",
              train::grouped(static_cast<int64_t>(totals.tensors)).c_str(),
              totals.tensors == 1 ? "" : "s", train::grouped(totals.elements).c_str(),
              size_text(totals.bytes).c_str());
}

void print_json(const nlohmann::ordered_json& out) {
  // A name that is no UTF-8 is shown with replacement characters.
  std::printf("%s\n", out.dump(2, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
}

// An ONNX model, or a program of torch.export.
void print_foreign(const InspectFlags& flags, const Runnable& model) {
  Totals totals;
  std::vector<std::vector<std::string>> rows{{"tensor", "dtype", "shape", "bytes"}};
  nlohmann::ordered_json out, tensors = nlohmann::ordered_json::array();
  out["file"] = flags.file;
  out["format"] = model.kind();
  add_model(out, model);
  for (const auto& [name, x] : model.tensors()) {
    if (!shown(flags, name)) continue;
    const uint64_t bytes = static_cast<uint64_t>(x.numel()) * size_of(x.dtype());
    ++totals.tensors;
    totals.elements += x.numel();
    totals.bytes += bytes;
    rows.push_back({safe(name), to_string(x.dtype()), to_string(x.shape()),
                    train::grouped(static_cast<int64_t>(bytes))});
    tensors.push_back({{"name", name},
                       {"dtype", to_string(x.dtype())},
                       {"shape", x.shape().to_vector()},
                       {"bytes", bytes}});
  }
  if (flags.json) {
    out["tensors"] = std::move(tensors);
    out["total"] = {
        {"tensors", totals.tensors}, {"elements", totals.elements}, {"bytes", totals.bytes}};
    return print_json(out);
  }
  std::printf("%s: %s\n", flags.file.c_str(), model.kind().c_str());
  print_model(model);
  std::printf("\n%s", train::text_table(rows).c_str());
  print_total(totals);
}

void print_text(const InspectFlags& flags, const io::ModelReader& model) {
  Totals totals;
  const auto tensors = chosen_tensors(flags, model, totals);
  std::printf("%s: %s\n", flags.file.c_str(), to_string(model.format()).c_str());
  const bool has_graph = model.metadata().contains(kGraphKey);
  if (model.metadata().size() > (has_graph ? 1 : 0)) {
    std::printf("\n%s\n", model.value() == nullptr ? "metadata" : "values");
    for (const auto& [name, value] : model.metadata()) {
      if (name == kGraphKey) continue;
      std::printf("  %s = %s\n", safe(name).c_str(), safe(value).c_str());
    }
  }
  if (has_graph) print_model(*open_runnable("inspect", flags.file));
  std::vector<std::vector<std::string>> rows{{"tensor", "dtype", "shape", "bytes"}};
  for (const io::TensorEntry* entry : tensors) {
    rows.push_back({safe(entry->name), safe(entry->type_name), to_string(entry->shape),
                    entry->refusal.empty() ? train::grouped(static_cast<int64_t>(entry->bytes))
                                           : "unreadable"});
  }
  std::printf("\n%s", train::text_table(rows).c_str());
  for (const io::TensorEntry* entry : tensors) {
    if (!entry->refusal.empty()) {
      std::printf("%s cannot be read: %s\n", safe(entry->name).c_str(), entry->refusal.c_str());
    }
  }
  print_total(totals);
}

void print_json(const InspectFlags& flags, const io::ModelReader& model) {
  Totals totals;
  nlohmann::ordered_json out;
  out["file"] = flags.file;
  out["format"] = to_string(model.format());
  out["metadata"] = nlohmann::ordered_json::object();
  for (const auto& [name, value] : model.metadata()) out["metadata"][name] = value;
  if (model.metadata().contains(kGraphKey)) add_model(out, *open_runnable("inspect", flags.file));
  out["tensors"] = nlohmann::ordered_json::array();
  for (const io::TensorEntry* entry : chosen_tensors(flags, model, totals)) {
    nlohmann::ordered_json tensor;
    tensor["name"] = entry->name;
    tensor["dtype"] = entry->type_name;
    tensor["shape"] = entry->shape.to_vector();
    tensor["bytes"] = entry->bytes;
    if (!entry->refusal.empty()) tensor["unreadable"] = entry->refusal;
    out["tensors"].push_back(std::move(tensor));
  }
  out["total"] = {
      {"tensors", totals.tensors}, {"elements", totals.elements}, {"bytes", totals.bytes}};
  print_json(out);
}

// Without a key all of a checkpoint is shown; other formats have no keys.
std::unique_ptr<io::ModelReader> open(const InspectFlags& flags) {
  if (!flags.key.empty()) return io::open_model_file(flags.file, {.key = flags.key});
  const io::FileFormat format = io::recognize(io::InputFile("inspect", flags.file));
  const bool is_torch = format == io::FileFormat::torch || format == io::FileFormat::torch_legacy;
  return io::open_model_file(flags.file, {.key = is_torch ? "." : ""});
}

// Null for files of tensors and Kiln's own graphs.
std::unique_ptr<Runnable> open_foreign(const InspectFlags& flags) {
  const ModelKind kind = kind_of("inspect", flags.file);
  const bool damaged =
      kind == ModelKind::none && (flags.file.ends_with(".onnx") || flags.file.ends_with(".pt2"));
  if (kind != ModelKind::onnx && kind != ModelKind::pt2 && !damaged) return nullptr;
  if (!flags.key.empty()) {
    throw UsageError("--key: only a PyTorch checkpoint has places inside; got '" +
                     printable(flags.key, 60) + "'");
  }
  return open_runnable("inspect", flags.file);
}

}  // namespace

void add_inspect(CLI::App& app, int& status) {
  CLI::App* command = app.add_subcommand(
      "inspect",
      "Shows what is in a model file.\n"
      "Reads safetensors (one file, or the index of several), PyTorch's .pt and .pth, .npz, .npy,\n"
      "ONNX models and programs of torch.export (.pt2). The format is detected from the content.\n"
      "No code in the file is ever executed.");
  command->group("Commands");
  auto flags = std::make_shared<InspectFlags>();
  command->add_option("FILE", flags->file, "model file or checkpoint")->required()->type_name("");
  command
      ->add_option("--key", flags->key,
                   "place in a PyTorch checkpoint, such as\nmodel or ema.state_dict")
      ->type_name("PATH")
      ->default_str("all of it");
  command->add_option("--filter", flags->filter, "show only tensors that match, such as '*.bias'")
      ->type_name("PATTERN");
  command->add_flag("--json", flags->json, "print JSON");
  command->callback([flags, &status] {
    status = 0;
    if (const auto foreign = open_foreign(*flags)) return print_foreign(*flags, *foreign);
    const auto model = open(*flags);
    if (flags->json) {
      print_json(*flags, *model);
    } else {
      print_text(*flags, *model);
    }
  });
}

}  // namespace kiln::cli
