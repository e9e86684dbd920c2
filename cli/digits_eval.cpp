// `kiln digits eval`.
#include <cstdio>
#include <memory>
#include <string>

#include <CLI/CLI.hpp>

#include "cli/digit_data.h"
#include "cli/digits.h"
#include "cli/test_result.h"
#include "kiln/core/parallel.h"

namespace kiln::cli {

namespace {

struct Flags {
  std::string model;
  std::string data;
  int threads = 0;
};

int run(const Flags& flags) {
  if (flags.threads > 0) set_num_threads(flags.threads);
  DigitModel model = load_digit_net(flags.model);
  const data::DatasetHandle test = load_digit_test(flags.data);
  const TestResult result = test_digits(model.net, test, {});
  std::printf("%s on %s\n\n", flags.model.c_str(), describe_test(flags.data, test->size()).c_str());
  print_confusion(result);
  print_accuracy(result);
  return 0;
}

}  // namespace

void add_digits_eval(CLI::App& digits, int& status) {
  CLI::App* eval = digits.add_subcommand(
      "eval", "Measures a trained network on test digits that it has not seen.");
  auto flags = std::make_shared<Flags>();
  eval->add_option("--model", flags->model, "file that `kiln digits train` wrote")
      ->type_name("FILE")
      ->required();
  eval->add_option("--data", flags->data,
                   "folder with MNIST's test files, gzipped or not\n"
                   "(default: the built-in digits)")
      ->type_name("DIR");
  eval->add_option("--threads", flags->threads, "threads to use")
      ->type_name("N")
      ->default_str("all processors")
      ->check(CLI::Range(1, 4096));
  eval->callback([flags, &status] { status = run(*flags); });
}

}  // namespace kiln::cli
