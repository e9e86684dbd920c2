#include "cli/predict/predict_command.h"

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "cli/numbers.h"
#include "cli/predict/answers.h"
#include "cli/predict/predictor.h"
#include "cli/predict/trained_model.h"
#include "cli/usage_error.h"
#include "kiln/core/error.h"
#include "kiln/core/parallel.h"

namespace kiln::cli {

namespace {

struct PredictFlags {
  std::string model;
  std::vector<std::string> inputs;
  std::vector<std::string> texts;
  PredictOptions options;
  std::string device = "cpu";
  int threads = 0;
  bool json = false;
  bool csv = false;
};

int predict(const PredictFlags& flags) {
  if (flags.inputs.empty() && flags.texts.empty()) {
    throw UsageError("predict needs files to read, or --text (try kiln predict --help)");
  }
  if (flags.json && flags.csv) throw UsageError("--json and --csv: give one of them");
  if (flags.threads > 0) set_num_threads(flags.threads);
  const TrainedModel model = load_trained(flags.model, Device(flags.device));
  int64_t refused = 0;
  std::unique_ptr<AnswerPrinter> printer;
  Predictor predictor(
      model, flags.options, [&](const Answer& answer) { printer->print(answer); },
      [&](const std::string& what) {
        ++refused;
        if (flags.options.skip) return;
        std::fflush(stdout);
        std::fprintf(stderr, "kiln: %s\n", what.c_str());
      });
  const AnswerForm form = flags.json  ? AnswerForm::json
                          : flags.csv ? AnswerForm::csv
                                      : AnswerForm::lines;
  printer = std::make_unique<AnswerPrinter>(
      model, form, std::min(flags.options.top, std::max<int64_t>(model.shape.classes, 1)));
  if (!flags.texts.empty()) predictor.predict_texts(flags.texts);
  predictor.predict(flags.inputs);
  printer->end();
  std::fflush(stdout);
  const int64_t skipped = predictor.skipped() + refused;
  if (flags.options.skip && skipped > 0) {
    std::fprintf(stderr, "kiln: left out %lld bad input%s\n", static_cast<long long>(skipped),
                 skipped == 1 ? "" : "s");
  }
  return refused > 0 && !flags.options.skip ? 1 : 0;
}

}  // namespace

void add_predict(CLI::App& app, int& status) {
  CLI::App* command = app.add_subcommand(
      "predict",
      "Says what a model that `kiln train` wrote makes of new data.\n"
      "MODEL is a run's folder or its model.safetensors. An input is an image or a folder of "
      "them,\n"
      "a table of rows (CSV, JSON Lines), or a file of texts, one on each line (- is standard "
      "input).");
  command->group("Commands");
  auto flags = std::make_shared<PredictFlags>();
  command->add_option("MODEL", flags->model, "a run's folder, or a model file")
      ->required()
      ->type_name("");
  command->add_option("INPUT", flags->inputs, "files to read")->type_name("");
  command
      ->add_option("--text", flags->texts, "a text to classify or to go on with; may be repeated")
      ->type_name("TEXT")
      ->expected(1)
      ->take_all();
  command->add_option("--top", flags->options.top, "how many classes to show")
      ->type_name("N")
      ->capture_default_str()
      ->check(whole_number(1, 1'000'000));
  command->add_flag("--csv", flags->csv, "print CSV");
  command->add_flag("--json", flags->json, "print JSON");
  command->add_option("--masks", flags->options.masks, "the folder for the masks of a segmentation")
      ->type_name("DIR");
  command
      ->add_option("--tokenizer", flags->options.tokenizer,
                   "tokenizer.json, where it is not where it was at training")
      ->type_name("FILE");
  command->add_flag("--skip-bad", flags->options.skip, "leave out and count what cannot be read");
  command->add_option("--batch", flags->options.batch, "inputs that are computed at once")
      ->type_name("N")
      ->capture_default_str()
      ->check(whole_number(1, 100'000));
  command->add_option("--device", flags->device, "what computes: cpu, opencl, opencl:1")
      ->type_name("D")
      ->capture_default_str();
  command->add_option("--threads", flags->threads, "threads to use (default: all processors)")
      ->type_name("N")
      ->check(whole_number(1, 4096));
  command->callback([flags, &status] { status = predict(*flags); });
}

}  // namespace kiln::cli
