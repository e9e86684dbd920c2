// `kiln digits predict`.
#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "cli/digit_image.h"
#include "cli/digit_net.h"
#include "cli/digits.h"
#include "kiln/core/error.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/grad_mode.h"
#include "kiln/train/progress.h"
#include "kiln/train/text.h"

namespace kiln::cli {

namespace {

struct Flags {
  std::string model;
  std::vector<std::string> images;
  Invert invert = Invert::automatic;
  size_t top = 3;
};

void print_prediction(const std::string& path, const DigitImage& image,
                      const std::vector<double>& probabilities, size_t top) {
  constexpr int kBarWidth = 30;
  std::vector<size_t> order(probabilities.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return probabilities[a] > probabilities[b]; });
  std::printf("%s: %zu%s%s%s\n", path.c_str(), order[0], image.notes.empty() ? "" : "  (",
              image.notes.c_str(), image.notes.empty() ? "" : ")");
  const bool unicode = train::environment_is_utf8();
  for (size_t i = 0; i < std::min(top, order.size()); ++i) {
    const double p = probabilities[order[i]];
    const std::string bar = train::text_bar(p, kBarWidth, unicode);
    std::printf("  %zu  %8s%s%s\n", order[i], train::percent(p).c_str(), bar.empty() ? "" : "  ",
                bar.c_str());
  }
}

// 1 when an image could not be read; the others are named all the same.
int run(const Flags& flags) {
  DigitModel model = load_digit_net(flags.model);
  const NoGradGuard no_grad;
  int status = 0;
  for (const std::string& path : flags.images) {
    try {
      const DigitImage image = read_digit_image(path, flags.invert);
      const Tensor input = Tensor(image.pixels).reshape({1, 1, kDigitSide, kDigitSide});
      const auto probabilities = model.net(input).softmax(1).to_vector<double>();
      print_prediction(path, image, probabilities, flags.top);
    } catch (const Error& e) {
      std::fflush(stdout);
      std::fprintf(stderr, "kiln: %s\n", e.what());
      status = 1;
    }
  }
  return status;
}

}  // namespace

void add_digits_predict(CLI::App& digits, int& status) {
  CLI::App* predict = digits.add_subcommand(
      "predict",
      "Names the digit in each image.\n"
      "An image is a PNG, or a raw file of 784 bytes (28x28). One of another size than 28x28 is\n"
      "cropped to what is drawn on it and scaled.");
  auto flags = std::make_shared<Flags>();
  predict->add_option("--model", flags->model, "file that `kiln digits train` wrote")
      ->type_name("FILE")
      ->required();
  predict->add_option("IMAGE", flags->images, "PNG or raw files of one digit each")
      ->type_name("")
      ->required();
  const std::map<std::string, Invert> choices{
      {"auto", Invert::automatic}, {"yes", Invert::yes}, {"no", Invert::no}};
  predict
      ->add_option("--invert", flags->invert, "whether the digit is dark on light: auto, yes, no")
      ->type_name("WHEN")
      ->default_str("auto")
      ->transform(CLI::CheckedTransformer(choices));
  predict->add_option("--top", flags->top, "classes to show")
      ->type_name("N")
      ->default_str("3")
      ->check(CLI::Range(1, 10));
  predict->callback([flags, &status] { status = run(*flags); });
}

}  // namespace kiln::cli
