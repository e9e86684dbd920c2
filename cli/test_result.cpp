#include "cli/test_result.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "kiln/train/text.h"

namespace kiln::cli {

namespace {

constexpr int64_t kTestBatch = 256;

void add_mistakes(const data::Batch& batch, const Tensor& logits,
                  std::vector<train::Mistake>& mistakes) {
  const auto [best, index] = logits.softmax(1).max(1);
  const auto labels = batch.target().to_vector<int64_t>();
  const auto predicted = index.to_vector<int64_t>();
  for (size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] == predicted[i]) continue;
    const auto at = static_cast<int64_t>(i);
    mistakes.push_back({batch.input()[at][0].to_data(), labels[i], predicted[i], best[at].item()});
  }
}

}  // namespace

TestResult test_digits(DigitNet& net, const data::DatasetHandle& test,
                       const std::function<bool()>& should_stop, size_t most_mistakes) {
  data::DataLoader loader(test, {.batch_size = kTestBatch});
  std::vector<train::Mistake> mistakes;
  train::EvaluateOptions options;
  options.should_stop = should_stop;
  options.on_batch = [&](const data::Batch& batch, const Tensor& logits) {
    add_mistakes(batch, logits, mistakes);
  };
  TestResult result{train::evaluate(
                        net, [&net](const Tensor& images) { return net(images); }, loader,
                        kDigitClasses, options),
                    {}};
  std::stable_sort(mistakes.begin(), mistakes.end(),
                   [](const auto& a, const auto& b) { return a.probability > b.probability; });
  mistakes.resize(std::min(mistakes.size(), most_mistakes));
  result.mistakes = std::move(mistakes);
  return result;
}

void print_confusion(const TestResult& result) {
  std::fputs(train::to_text(result.evaluation.confusion).c_str(), stdout);
}

void print_accuracy(const TestResult& result) {
  std::printf("test accuracy %s\n", train::percent(result.evaluation.accuracy()).c_str());
}

}  // namespace kiln::cli
