#include "cli/test_result.h"

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <string>

#include "kiln/core/error.h"
#include "kiln/data/data_loader.h"
#include "kiln/tensor/autograd/grad_mode.h"
#include "kiln/tensor/ops.h"
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

int64_t TestResult::total() const {
  return std::accumulate(confusion.begin(), confusion.end(), int64_t{0});
}

double TestResult::accuracy() const {
  int64_t right = 0;
  for (int64_t digit = 0; digit < kDigitClasses; ++digit) right += count(digit, digit);
  return static_cast<double>(right) / static_cast<double>(total());
}

double TestResult::accuracy(int64_t digit) const {
  int64_t all = 0;
  for (int64_t other = 0; other < kDigitClasses; ++other) all += count(digit, other);
  return static_cast<double>(count(digit, digit)) / static_cast<double>(all);
}

TestResult test_digits(DigitNet& net, const data::DatasetHandle& test,
                       const std::function<bool()>& should_stop, size_t most_mistakes) {
  data::DataLoader loader(test, {.batch_size = kTestBatch});
  const NoGradGuard no_grad;
  net.eval();
  TestResult result;
  for (const data::Batch& batch : loader) {
    if (should_stop && should_stop()) return result;
    const Tensor logits = net(batch.input());
    const auto labels = batch.target().to_vector<int64_t>();
    const auto predicted = logits.argmax(1).to_vector<int64_t>();
    for (size_t i = 0; i < labels.size(); ++i) {
      ++result.confusion[static_cast<size_t>(labels[i] * kDigitClasses + predicted[i])];
    }
    add_mistakes(batch, logits, result.mistakes);
  }
  std::stable_sort(result.mistakes.begin(), result.mistakes.end(),
                   [](const auto& a, const auto& b) { return a.probability > b.probability; });
  result.mistakes.resize(std::min(result.mistakes.size(), most_mistakes));
  result.complete = true;
  return result;
}

// A row for each digit with what it was taken for, how many there are and what share was right.
void print_confusion(const TestResult& result) {
  std::vector<std::vector<std::string>> rows{{"true \\ taken for"}};
  for (int64_t c = 0; c < kDigitClasses; ++c) rows[0].push_back(concat(c));
  rows[0].insert(rows[0].end(), {"samples", "right"});
  std::vector<int64_t> columns(kDigitClasses);
  for (int64_t digit = 0; digit < kDigitClasses; ++digit) {
    std::vector<std::string> row{concat(digit)};
    int64_t sum = 0;
    for (int64_t c = 0; c < kDigitClasses; ++c) {
      const int64_t count = result.count(digit, c);
      sum += count;
      columns[static_cast<size_t>(c)] += count;
      row.push_back(count == 0 ? "." : concat(count));
    }
    row.insert(row.end(), {concat(sum), train::percent(result.accuracy(digit))});
    rows.push_back(std::move(row));
  }
  std::vector<std::string> last{"all"};
  for (const int64_t sum : columns) last.push_back(concat(sum));
  last.insert(last.end(), {concat(result.total()), train::percent(result.accuracy())});
  rows.push_back(std::move(last));
  std::fputs(train::text_table(rows).c_str(), stdout);
}

void print_accuracy(const TestResult& result) {
  std::printf("test accuracy %s\n", train::percent(result.accuracy()).c_str());
}

}  // namespace kiln::cli
