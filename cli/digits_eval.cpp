#include "cli/digits_eval.h"

#include <cstdio>
#include <string>

#include "cli/digit_data.h"
#include "cli/test_result.h"
#include "kiln/core/parallel.h"

namespace kiln::cli {

int digits_eval(const DigitsEvalFlags& flags) {
  if (flags.threads > 0) set_num_threads(flags.threads);
  DigitModel model = load_digit_net(flags.model);
  const data::DatasetHandle test = load_digit_test(flags.data);
  const TestResult result = test_digits(model.net, test, {});
  std::printf("%s on %s\n\n", flags.model.c_str(), describe_test(flags.data, test->size()).c_str());
  print_confusion(result);
  print_accuracy(result);
  return 0;
}

}  // namespace kiln::cli
