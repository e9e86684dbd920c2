#include "kiln/train/metrics.h"

#include <algorithm>
#include <limits>

#include "kiln/core/error.h"
#include "kiln/train/text.h"

namespace kiln::train {

namespace {

double share(int64_t part, int64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole)
                   : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace

double RunningMean::value() const {
  return weight_ > 0 ? sum_ / weight_ : std::numeric_limits<double>::quiet_NaN();
}

int64_t count_correct(const Tensor& scores, const Tensor& labels) {
  if (scores.dim() != 2 || labels.dim() != 1 || scores.size(0) != labels.size(0)) {
    throw_error<ShapeError>("count_correct: the shapes do not fit; got scores ", scores.shape(),
                            " and labels ", labels.shape(), "; expected [N, C] and [N]");
  }
  if (labels.numel() == 0) return 0;
  return scores.argmax(1).eq(labels).sum().item<int64_t>();
}

ConfusionMatrix::ConfusionMatrix(int64_t classes) : classes_(classes) {
  if (classes < 1) {
    throw_error<ValueError>("ConfusionMatrix: too few classes; got ", classes,
                            "; expected 1 or more");
  }
  counts_.resize(static_cast<size_t>(classes * classes));
}

void ConfusionMatrix::add(const Tensor& labels, const Tensor& predicted) {
  if (labels.dim() != 1 || labels.shape() != predicted.shape()) {
    throw_error<ShapeError>("ConfusionMatrix::add: the shapes do not fit; got labels ",
                            labels.shape(), " and predictions ", predicted.shape(),
                            "; expected [N] both");
  }
  const std::vector<int64_t> from = labels.to_vector<int64_t>();
  const std::vector<int64_t> to = predicted.to_vector<int64_t>();
  for (const std::vector<int64_t>* numbers : {&from, &to}) {
    for (const int64_t c : *numbers) {
      if (c < 0 || c >= classes_) {
        throw_error<IndexError>("ConfusionMatrix::add: class out of range; got ", c, " for ",
                                classes_, " classes");
      }
    }
  }
  for (size_t i = 0; i < from.size(); ++i) {
    ++counts_[static_cast<size_t>(from[i] * classes_ + to[i])];
  }
}

int64_t ConfusionMatrix::count(int64_t label, int64_t predicted) const {
  if (label < 0 || label >= classes_ || predicted < 0 || predicted >= classes_) {
    throw_error<IndexError>("ConfusionMatrix::count: class out of range; got ", label, " and ",
                            predicted, " for ", classes_, " classes");
  }
  return counts_[static_cast<size_t>(label * classes_ + predicted)];
}

int64_t ConfusionMatrix::total() const {
  int64_t sum = 0;
  for (const int64_t n : counts_) sum += n;
  return sum;
}

int64_t ConfusionMatrix::correct() const {
  int64_t sum = 0;
  for (int64_t c = 0; c < classes_; ++c) sum += count(c, c);
  return sum;
}

double ConfusionMatrix::accuracy() const { return share(correct(), total()); }

double ConfusionMatrix::class_accuracy(int64_t label) const {
  int64_t sum = 0;
  for (int64_t c = 0; c < classes_; ++c) sum += count(label, c);
  return share(count(label, label), sum);
}

std::string to_text(const ConfusionMatrix& matrix, const std::vector<std::string>& names) {
  const int64_t n = matrix.classes();
  if (!names.empty() && static_cast<int64_t>(names.size()) != n) {
    throw_error<ValueError>("to_text: the names do not fit; got ", names.size(), " for ", n,
                            " classes");
  }
  const auto name = [&](int64_t c) {
    return names.empty() ? concat(c) : names[static_cast<size_t>(c)];
  };
  std::vector<std::vector<std::string>> rows;
  std::vector<std::string> head{"true \\ taken for"};
  for (int64_t c = 0; c < n; ++c) head.push_back(name(c));
  head.insert(head.end(), {"samples", "right"});
  rows.push_back(std::move(head));
  for (int64_t label = 0; label < n; ++label) {
    std::vector<std::string> row{name(label)};
    int64_t sum = 0;
    for (int64_t c = 0; c < n; ++c) {
      const int64_t count = matrix.count(label, c);
      sum += count;
      row.push_back(count == 0 ? "." : concat(count));
    }
    row.push_back(concat(sum));
    row.push_back(percent(matrix.class_accuracy(label)));
    rows.push_back(std::move(row));
  }
  std::vector<std::string> last{"all"};
  for (int64_t c = 0; c < n; ++c) {
    int64_t sum = 0;
    for (int64_t label = 0; label < n; ++label) sum += matrix.count(label, c);
    last.push_back(concat(sum));
  }
  last.insert(last.end(), {concat(matrix.total()), percent(matrix.accuracy())});
  rows.push_back(std::move(last));
  return text_table(rows);
}

}  // namespace kiln::train
