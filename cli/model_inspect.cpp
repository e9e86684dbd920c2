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

// What a model file computes: its inputs, outputs and rows by number.
void print_graph(const GraphModel& model) {
  const graph::Graph& graph = model.graph();
  std::vector<std::vector<std::string>> rows{{"graph", "name", "dtype", "shape"}};
  const auto add = [&](const char* what, const std::string& name, graph::ValueId id,
                       const std::vector<std::string>& free = {}) {
    std::string shape = to_string(graph[id].shape);
    if (!free.empty()) {
      shape = "[";
      for (size_t d = 0; d < free.size(); ++d) {
        if (d > 0) shape += ", ";
        shape +=
            free[d].empty() ? std::to_string(graph[id].shape[static_cast<int>(d)]) : safe(free[d]);
      }
      shape += "]";
    }
    rows.push_back({what, safe(name), to_string(graph[id].dtype), shape});
  };
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    add("input", graph[graph.inputs[i]].name, graph.inputs[i], model.free_dims_of(i));
  }
  for (size_t i = 0; i < graph.outputs.size(); ++i) {
    add("output", model.output_names()[i], graph.outputs[i]);
  }
  std::printf("\n%s", train::text_table(rows).c_str());
  std::map<std::string, int64_t> counts;
  for (const graph::Node& node : graph.nodes) ++counts[node.name];
  std::string text;
  for (const auto& [name, count] : counts) {
    text += concat(text.empty() ? "" : ", ", count, " ", name);
  }
  const graph::Cost cost = graph.cost();
  std::printf("\n%s nodes, %s Mflop a call: %s\n",
              train::grouped(static_cast<int64_t>(graph.nodes.size())).c_str(),
              train::grouped(cost.flops / 1'000'000).c_str(), text.c_str());
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
  if (has_graph) print_graph(GraphModel::load(flags.file));
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
  std::printf("\n%s tensor%s, %s elements, %s\n",
              train::grouped(static_cast<int64_t>(totals.tensors)).c_str(),
              totals.tensors == 1 ? "" : "s", train::grouped(totals.elements).c_str(),
              size_text(totals.bytes).c_str());
}

void print_json(const InspectFlags& flags, const io::ModelReader& model) {
  Totals totals;
  nlohmann::ordered_json out;
  out["file"] = flags.file;
  out["format"] = to_string(model.format());
  out["metadata"] = nlohmann::ordered_json::object();
  for (const auto& [name, value] : model.metadata()) out["metadata"][name] = value;
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
  // A name that is no UTF-8 is shown with replacement characters.
  std::printf("%s\n", out.dump(2, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
}

// Without a key all of a checkpoint is shown; other formats have no keys.
std::unique_ptr<io::ModelReader> open(const InspectFlags& flags) {
  if (!flags.key.empty()) return io::open_model_file(flags.file, {.key = flags.key});
  const io::FileFormat format = io::recognize(io::InputFile("inspect", flags.file));
  const bool is_torch = format == io::FileFormat::torch || format == io::FileFormat::torch_legacy;
  return io::open_model_file(flags.file, {.key = is_torch ? "." : ""});
}

}  // namespace

void add_inspect(CLI::App& app, int& status) {
  CLI::App* command = app.add_subcommand(
      "inspect",
      "Shows what is in a model file.\n"
      "Reads safetensors (one file, or the index of several), PyTorch's .pt and .pth, .npz and\n"
      ".npy. The format is detected from the content. No code in the file is ever executed.");
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
    const auto model = open(*flags);
    if (flags->json) {
      print_json(*flags, *model);
    } else {
      print_text(*flags, *model);
    }
    status = 0;
  });
}

}  // namespace kiln::cli
