#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "cli/runs/model_summary.h"
#include "cli/runs/runs_command.h"
#include "cli/train/plan.h"
#include "cli/train/train_run.h"
#include "cli/usage_error.h"
#include "kiln/compile/graph_model.h"
#include "kiln/core/error.h"
#include "kiln/core/utf8.h"
#include "kiln/io/model_reader.h"
#include "kiln/train/text.h"

namespace kiln::cli {

namespace {

namespace fs = std::filesystem;

struct SummaryFlags {
  std::string file;
  bool all = false;
  bool json = false;
};

constexpr size_t kMostLayers = 60;

int of_config(const SummaryFlags& flags, const std::string& path) {
  std::string folder = fs::path(path).parent_path().string();
  if (folder.empty()) folder = ".";
  const TrainPlan plan = read_plan(path, read_config_file(path), folder);
  const ModelSummary summary =
      summarize(*plan.model.module, blank_input(plan.data.shape), plan.model.forward);
  if (flags.json) {
    Json out = Json::Object();
    out.add("model", plan.model.name);
    const Json layers = to_json(summary);
    for (const auto& [name, value] : *layers.as<Json::Object>()) out.add(name, value);
    std::printf("%s\n", encode_json(out).c_str());
  } else {
    std::printf("%s on %s: %s\n\n%s", plan.model.name.c_str(), plan.data.kind.c_str(),
                plan.data.text.c_str(), to_text(summary, flags.all ? 0 : kMostLayers).c_str());
  }
  return 0;
}

// A model as a graph: its rows with their results.
int of_graph(const SummaryFlags& flags) {
  const GraphModel model = GraphModel::load(flags.file);
  const graph::Graph& graph = model.graph();
  int64_t parameters = 0, parameter_bytes = 0, activation_bytes = 0, flops = 0;
  for (const graph::ValueId id : graph.constants()) {
    parameters += graph[id].shape.numel();
    parameter_bytes += graph[id].shape.numel() * static_cast<int64_t>(size_of(graph[id].dtype));
  }
  std::vector<std::vector<std::string>> rows{{"row", "output", "multiply-adds"}};
  Json layers = Json::Array();
  for (const graph::Node& node : graph.nodes) {
    const int64_t cost = graph.cost(node).flops / 2;
    flops += cost;
    std::string shapes;
    for (const graph::ValueId id : node.results) {
      shapes += (shapes.empty() ? "" : ", ") + to_string(graph[id].shape);
      activation_bytes += graph[id].shape.numel() * static_cast<int64_t>(size_of(graph[id].dtype));
    }
    rows.push_back({node.name, shapes, cost > 0 ? train::grouped(cost) : "-"});
    Json layer = Json::Object();
    layer.add("name", node.name);
    layer.add("output_shape", shapes);
    layer.add("multiply_adds", cost);
    layers.add(std::move(layer));
  }
  if (flags.json) {
    Json out = Json::Object();
    out.add("layers", std::move(layers));
    out.add("parameters", parameters);
    out.add("multiply_adds", flops);
    out.add("activation_bytes", activation_bytes);
    out.add("parameter_bytes", parameter_bytes);
    std::printf("%s\n", encode_json(out).c_str());
    return 0;
  }
  std::printf(
      "%s: a graph of %zu rows\n\n%s\nparameters     %s\nmultiply-adds  %s for each call\n"
      "memory         %s of parameters, %s of results\n",
      flags.file.c_str(), graph.nodes.size(), train::text_table(rows).c_str(),
      train::grouped(parameters).c_str(), train::grouped(flops).c_str(),
      memory_text(parameter_bytes).c_str(), memory_text(activation_bytes).c_str());
  return 0;
}

// Weights alone: layers by the names of their tensors. What they compute is not in the file.
int of_weights(const SummaryFlags& flags, const io::ModelReader& model) {
  struct Layer {
    std::string shapes;
    int64_t parameters = 0;
    int64_t bytes = 0;
  };
  std::vector<std::pair<std::string, Layer>> layers;
  Layer sum;
  for (const io::TensorEntry& entry : model.entries()) {
    const size_t dot = entry.name.rfind('.');
    const std::string name = dot == std::string::npos ? "" : entry.name.substr(0, dot);
    const std::string own = dot == std::string::npos ? entry.name : entry.name.substr(dot + 1);
    if (layers.empty() || layers.back().first != name) layers.emplace_back(name, Layer());
    Layer& layer = layers.back().second;
    layer.shapes +=
        concat(layer.shapes.empty() ? "" : ", ", printable(own, 40), " ", to_string(entry.shape));
    layer.parameters += entry.shape.numel();
    layer.bytes += static_cast<int64_t>(entry.bytes);
    sum.parameters += entry.shape.numel();
    sum.bytes += static_cast<int64_t>(entry.bytes);
  }
  if (flags.json) {
    Json out = Json::Object();
    Json list = Json::Array();
    for (const auto& [name, layer] : layers) {
      Json row = Json::Object();
      row.add("name", printable(name, 200));
      row.add("tensors", layer.shapes);
      row.add("elements", layer.parameters);
      row.add("bytes", layer.bytes);
      list.add(std::move(row));
    }
    out.add("layers", std::move(list));
    out.add("elements", sum.parameters);
    out.add("bytes", sum.bytes);
    std::printf("%s\n", encode_json(out).c_str());
    return 0;
  }
  std::string text;
  size_t width = 5;
  for (const auto& [name, layer] : layers) width = std::max(width, printable(name, 60).size());
  for (const auto& [name, layer] : layers) {
    const std::string label = name.empty() ? "(model)" : printable(name, 60);
    const std::string count = train::grouped(layer.parameters);
    text += concat(label, std::string(width + 2 - std::min(width + 1, label.size()), ' '),
                   std::string(count.size() < 12 ? 12 - count.size() : 0, ' '), count, "  ",
                   layer.shapes, "\n");
  }
  std::printf(
      "%s: weights without a graph, in %zu layers\n\n%s\n%s elements, %s; what they compute is "
      "not in the file\n",
      flags.file.c_str(), layers.size(), text.c_str(), train::grouped(sum.parameters).c_str(),
      memory_text(sum.bytes).c_str());
  return 0;
}

int summary(const SummaryFlags& flags) {
  const fs::path path(flags.file);
  if (fs::is_directory(path)) {
    if (!fs::exists(path / "config.json")) {
      throw_error<IoError>("'", flags.file, "' holds no config.json; expected a configuration of ",
                           "kiln train, a run's folder or a model file");
    }
    return of_config(flags, (path / "config.json").string());
  }
  if (path.extension() == ".json" && !flags.file.ends_with(".index.json")) {
    return of_config(flags, flags.file);
  }
  const auto model = io::open_model_file(flags.file);
  return model->metadata().contains(kGraphKey) ? of_graph(flags) : of_weights(flags, *model);
}

}  // namespace

void add_summary(CLI::App& app, int& status) {
  CLI::App* command = app.add_subcommand(
      "summary",
      "Shows a model's layers: output shapes, parameters, multiply-adds, memory.\n"
      "FILE is a configuration of `kiln train`, a run's folder, or a model file: a graph (see\n"
      "kiln run) is shown by its rows, weights alone by the names of their tensors.");
  command->group("Commands");
  auto flags = std::make_shared<SummaryFlags>();
  command->add_option("FILE", flags->file, "configuration, run or model file")
      ->required()
      ->type_name("");
  command->add_flag("--all", flags->all, "all layers, however deep");
  command->add_flag("--json", flags->json, "print JSON");
  command->callback([flags, &status] { status = summary(*flags); });
}

}  // namespace kiln::cli
