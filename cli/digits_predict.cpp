#include "cli/digits_predict.h"

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <string>
#include <vector>

#include "cli/digit_image.h"
#include "cli/digit_net.h"
#include "kiln/core/error.h"
#include "kiln/tensor/autograd/grad_mode.h"
#include "kiln/tensor/creation.h"
#include "kiln/train/progress.h"
#include "kiln/train/text.h"

namespace kiln::cli {

namespace {

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

}  // namespace

int digits_predict(const DigitsPredictFlags& flags) {
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

}  // namespace kiln::cli
