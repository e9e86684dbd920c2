#include "cli/model_run.h"

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "cli/usage_error.h"
#include "kiln/compile/graph_model.h"
#include "kiln/core/error.h"
#include "kiln/core/utf8.h"
#include "kiln/io/npy_file.h"
#include "kiln/kiln.h"

namespace kiln::cli {

namespace {

struct RunFlags {
  std::string model;
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
};

// "NAME=FILE", or FILE for the next input in order.
TensorList read_inputs(const GraphModel& model, const std::vector<std::string>& given) {
  const std::vector<std::string> names = model.input_names();
  TensorList out(names.size());
  size_t next = 0;
  for (const std::string& text : given) {
    size_t at = next, from = 0;
    for (size_t i = 0; i < names.size(); ++i) {
      if (!names[i].empty() && text.starts_with(names[i] + "=")) {
        at = i;
        from = names[i].size() + 1;
      }
    }
    if (at >= names.size() || out[at].defined()) {
      throw UsageError(concat("--input: the model takes ", names.size(),
                              " inputs, each once; got '", text, "'"));
    }
    out[at] = io::load_npy(text.substr(from));
    while (next < names.size() && out[next].defined()) ++next;
  }
  for (size_t i = 0; i < names.size(); ++i) {
    if (!out[i].defined()) {
      throw UsageError(
          concat("--input: there is none for '", printable(names[i]),
                 "'; expected a .npy file for each input, which `kiln inspect` lists"));
    }
  }
  return out;
}

int run(const RunFlags& flags) {
  const GraphModel model = GraphModel::load(flags.model);
  if (!flags.outputs.empty() && flags.outputs.size() != model.output_names().size()) {
    throw UsageError(concat("--output: the model has ", model.output_names().size(),
                            " outputs; got ", flags.outputs.size(), " files"));
  }
  const TensorList results = model(read_inputs(model, flags.inputs));
  for (size_t i = 0; i < results.size(); ++i) {
    const std::string name = printable(model.output_names()[i]);
    if (flags.outputs.empty()) {
      std::printf("%s\n%s\n", name.c_str(), to_string(results[i]).c_str());
    } else {
      io::save_npy(flags.outputs[i], results[i]);
      std::printf("%s: %s %s in %s\n", name.c_str(), to_string(results[i].dtype()).c_str(),
                  to_string(results[i].shape()).c_str(), flags.outputs[i].c_str());
    }
  }
  return 0;
}

}  // namespace

void add_run(CLI::App& app, int& status) {
  CLI::App* command = app.add_subcommand(
      "run",
      "Runs a model file: a graph with its weights, as GraphModel::save and graph.save write it.\n"
      "Inputs and outputs are NumPy's .npy files. Nothing in the file is executed as code.");
  command->group("Commands");
  auto flags = std::make_shared<RunFlags>();
  command->add_option("MODEL", flags->model, "model file")->required()->type_name("");
  command
      ->add_option("--input", flags->inputs,
                   "values of an input, in order or by name;\nmay be repeated")
      ->type_name("[NAME=]FILE")
      ->expected(1)
      ->take_all();
  command
      ->add_option("--output", flags->outputs,
                   "file for an output, in order; may be repeated\n(default: they are printed)")
      ->type_name("FILE")
      ->expected(1)
      ->take_all();
  command->callback([flags, &status] { status = run(*flags); });
}

}  // namespace kiln::cli
