#include "cli/digits.h"

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <string>

#include <CLI/CLI.hpp>

#include "cli/digits_eval.h"
#include "cli/digits_predict.h"
#include "cli/digits_sample.h"
#include "cli/digits_train.h"
#include "cli/numbers.h"

namespace kiln::cli {

namespace {

// An option that takes one value; `preset` is what help shows as its default.
template <class T>
CLI::Option* value(CLI::App* app, const char* name, T& variable, const char* type, const char* text,
                   const std::string& preset = "") {
  return app->add_option(name, variable, text)->type_name(type)->default_str(preset);
}

void add_threads(CLI::App* app, int& threads) {
  value(app, "--threads", threads, "N", "threads to use", "all processors")
      ->check(whole_number(1, 4096));
}

void add_model(CLI::App* app, std::string& model) {
  value(app, "--model", model, "FILE", "file that `kiln digits train` wrote")->required();
}

void add_digits_train(CLI::App& digits, int& status) {
  CLI::App* app = digits.add_subcommand(
      "train",
      "Trains a convolutional network, on built-in digits or on MNIST.\n"
      "The built-in digits are drawn by the program itself. Writes model.safetensors, report.html\n"
      "and checkpoint.safetensors to a folder; what an earlier run left there is replaced. Ctrl-C\n"
      "saves, and --resume continues as if nothing had happened.");
  auto flags = std::make_shared<DigitsTrainFlags>();
  const CLI::Validator at_least_one = whole_number(1, int64_t{1} << 31);
  value(app, "--out", flags->out, "DIR", "folder for the results", flags->out);
  value(app, "--data", flags->data, "DIR",
        "folder with MNIST's four files, gzipped or not\n"
        "(default: the built-in digits)");
  value(app, "--samples", flags->samples, "N",
        "training samples to use (default: 24000 built-in\n"
        "digits, or all of the folder)")
      ->check(at_least_one);
  value(app, "--epochs", flags->epochs, "N", "how often to go through them", "5; 3 with --data")
      ->check(at_least_one);
  value(app, "--batch-size", flags->batch_size, "N", "samples in a step", "64")
      ->check(at_least_one);
  value(app, "--lr", flags->learning_rate, "RATE", "highest learning rate", "0.002")
      ->check(positive_number());
  value(app, "--seed", flags->seed, "N", "of the initial weights and the order of samples", "1")
      ->check(whole_number(0, std::numeric_limits<int64_t>::max()));
  add_threads(app, flags->threads);
  app->add_flag("--resume", flags->resume, "continue from the checkpoint in --out");
  app->add_flag("--quiet", flags->quiet, "print the last line only");
  app->add_flag("--plain", flags->plain, "print lines, without a progress bar");
  app->callback([flags, &status] { status = digits_train(*flags); });
}

void add_digits_eval(CLI::App& digits, int& status) {
  CLI::App* app = digits.add_subcommand(
      "eval", "Measures a trained network on test digits that it has not seen.");
  auto flags = std::make_shared<DigitsEvalFlags>();
  add_model(app, flags->model);
  value(app, "--data", flags->data, "DIR",
        "folder with MNIST's test files, gzipped or not\n"
        "(default: the built-in digits)");
  add_threads(app, flags->threads);
  app->callback([flags, &status] { status = digits_eval(*flags); });
}

void add_digits_predict(CLI::App& digits, int& status) {
  CLI::App* app = digits.add_subcommand(
      "predict",
      "Names the digit in each image.\n"
      "An image is a PNG, or a raw file of 784 bytes (28x28). One of another size than 28x28 is\n"
      "cropped to what is drawn on it and scaled.");
  auto flags = std::make_shared<DigitsPredictFlags>();
  add_model(app, flags->model);
  value(app, "IMAGE", flags->images, "", "PNG or raw files of one digit each")->required();
  const std::map<std::string, Invert> choices{
      {"auto", Invert::automatic}, {"yes", Invert::yes}, {"no", Invert::no}};
  value(app, "--invert", flags->invert, "WHEN", "whether the digit is dark on light: auto, yes, no",
        "auto")
      ->transform(CLI::CheckedTransformer(choices));
  value(app, "--top", flags->top, "N", "classes to show", "3")->check(whole_number(1, 10));
  app->callback([flags, &status] { status = digits_predict(*flags); });
}

void add_digits_sample(CLI::App& digits, int& status) {
  CLI::App* app = digits.add_subcommand(
      "sample", "Draws digits as the built-in set does, and writes them as a PNG.");
  auto flags = std::make_shared<DigitsSampleFlags>();
  value(app, "--out", flags->out, "FILE", "image to write", flags->out);
  value(app, "--digit", flags->digit, "N", "0 to 9 (default: any)")->check(whole_number(0, 9));
  value(app, "--seed", flags->seed, "N", "another seed draws other digits", "0")
      ->check(whole_number(0, std::numeric_limits<int64_t>::max()));
  value(app, "--grid", flags->grid, "N", "draw a sheet of N rows of N digits", "1")
      ->check(whole_number(1, 100));
  value(app, "--scale", flags->scale, "N", "enlarge each pixel to NxN", "1")
      ->check(whole_number(1, 32));
  app->callback([flags, &status] { status = digits_sample(*flags); });
}

}  // namespace

void add_digits(CLI::App& app, int& status) {
  CLI::App* digits =
      app.add_subcommand("digits", "Trains and uses a network that reads handwritten digits.");
  digits->group("Commands");
  digits->require_subcommand(1);
  add_digits_train(*digits, status);
  add_digits_eval(*digits, status);
  add_digits_predict(*digits, status);
  add_digits_sample(*digits, status);
  for (CLI::App* command : digits->get_subcommands({})) command->group("Commands");
}

}  // namespace kiln::cli
