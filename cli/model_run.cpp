#include "cli/model_run.h"

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "cli/runnable.h"
#include "cli/usage_error.h"
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
TensorList read_inputs(const Runnable& model, const std::vector<std::string>& given) {
  std::vector<std::string> names;
  for (const Runnable::Port& port : model.inputs()) names.push_back(port.name);
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
  const std::unique_ptr<Runnable> model = open_runnable("run", flags.model);
  const size_t outputs = model->outputs().size();
  if (!flags.outputs.empty() && flags.outputs.size() != outputs) {
    throw UsageError(concat("--output: the model has ", outputs, " outputs; got ",
                            flags.outputs.size(), " files"));
  }
  const auto results = model->run(read_inputs(*model, flags.inputs));
  if (!flags.outputs.empty() && results.size() != outputs) {
    throw_error<ValueError>("run: ", outputs - results.size(),
                            " outputs are neither tensors nor numbers; expected none of these with "
                            "--output");
  }
  for (size_t i = 0; i < results.size(); ++i) {
    const auto& [full_name, value] = results[i];
    const std::string name = printable(full_name);
    if (flags.outputs.empty()) {
      std::printf("%s\n%s\n", name.c_str(), to_string(value).c_str());
    } else {
      io::save_npy(flags.outputs[i], value);
      std::printf("%s: %s %s in %s\n", name.c_str(), to_string(value.dtype()).c_str(),
                  to_string(value.shape()).c_str(), flags.outputs[i].c_str());
    }
  }
  return 0;
}

}  // namespace

void add_run(CLI::App& app, int& status) {
  CLI::App* command = app.add_subcommand(
      "run",
      "Runs a model file.\n"
      "It is a graph with its weights, as GraphModel::save and graph.save write it, an ONNX "
      "model,\n"
      "or a program of torch.export (.pt2). The kind is known by the content.\n"
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
