#include "kiln/metrics/class_inputs.h"

#include <algorithm>
#include <cmath>

#include "kiln/core/error.h"

namespace kiln::metrics {

namespace {

bool is_float(const Tensor& x) { return x.is_floating_point() && !x.is_complex(); }

void check_integers(const char* op, const char* what, const Tensor& x) {
  if (x.is_floating_point() || x.is_complex()) {
    throw_error<DTypeError>(op, ": ", what, " must be integers or bools; got ", x.dtype());
  }
}

// [N, C, ..] -> [N, .., C].
Tensor columns_last(const Tensor& x) {
  if (x.dim() <= 2) return x;
  Dims order{0};
  for (int d = 2; d < x.dim(); ++d) order.push_back(d);
  order.push_back(1);
  return x.permute(order);
}

std::vector<double> values_of(const Tensor& x) { return x.detach().to_vector<double>(); }

bool are_logits(const ClassOptions& o, const std::vector<double>& scores) {
  if (o.from_logits) return *o.from_logits;
  return std::any_of(scores.begin(), scores.end(), [](double s) { return s < 0 || s > 1; });
}

void sigmoid(std::vector<double>& scores) {
  for (double& s : scores) s = 1 / (1 + std::exp(-s));
}

void softmax_rows(std::vector<double>& scores, size_t columns) {
  for (size_t row = 0; row < scores.size(); row += columns) {
    const auto begin = scores.begin() + static_cast<std::ptrdiff_t>(row);
    const auto end = begin + static_cast<std::ptrdiff_t>(columns);
    const double largest = *std::max_element(begin, end);
    double sum = 0;
    for (auto it = begin; it != end; ++it) sum += * it = std::exp(*it - largest);
    for (auto it = begin; it != end; ++it) *it /= sum;
  }
}

int64_t checked_class(const char* op, const char* what, int64_t c, int64_t classes) {
  if (c < 0 || c >= classes) {
    throw_error<IndexError>(op, ": a class among the ", what, " is out of range; got ", c,
                            "; expected 0 to ", classes - 1);
  }
  return c;
}

bool is_ignored(const ClassOptions& o, int64_t target) {
  return o.ignore_index && *o.ignore_index == target;
}

// 0 and 1, or -1 for what is ignored.
std::vector<int64_t> binary_targets(const char* op, const ClassOptions& o, const Tensor& target) {
  check_integers(op, "targets", target);
  std::vector<int64_t> out = columns_last(target).to_vector<int64_t>();
  for (int64_t& t : out) t = is_ignored(o, t) ? -1 : checked_class(op, "targets", t, 2);
  return out;
}

void check_labels(const char* op, const ClassOptions& o, Task task, const Tensor& preds,
                  const Tensor& target) {
  if (preds.shape() != target.shape() ||
      (task == Task::multilabel && (preds.dim() < 2 || preds.size(1) != o.num_labels))) {
    throw_error<ShapeError>(
        op, ": the shapes do not fit; got predictions ", preds.shape(), " and targets ",
        target.shape(), "; expected ",
        task == Task::binary ? "one shape" : concat("[N, ", o.num_labels, ", ..] both"));
  }
}

void check_classes(const char* op, const ClassOptions& o, const Tensor& preds, const Tensor& target,
                   bool scores) {
  bool fits =
      scores ? preds.dim() == target.dim() + 1 && preds.dim() >= 2 && preds.size(1) == o.num_classes
             : preds.shape() == target.shape();
  for (int d = 0; fits && scores && d < target.dim(); ++d) {
    fits = target.size(d) == preds.size(d == 0 ? 0 : d + 1);
  }
  if (!fits) {
    throw_error<ShapeError>(
        op, ": the shapes do not fit; got predictions ", preds.shape(), " and targets ",
        target.shape(), "; expected ",
        scores ? concat("[N, ", o.num_classes, ", ..] and [N, ..]") : "one shape");
  }
}

Decisions decide_classes(const char* op, const ClassOptions& o, const Tensor& preds,
                         const Tensor& target) {
  const bool scores = is_float(preds);
  check_integers(op, "targets", target);
  if (!scores) check_integers(op, "predicted classes", preds);
  check_classes(op, o, preds, target, scores);
  if (o.top_k > 1 && !scores) {
    throw_error<DTypeError>(op, ": top_k = ", o.top_k, " needs scores; got classes");
  }
  Decisions out;
  const std::vector<int64_t> wanted = target.to_vector<int64_t>();
  std::vector<int64_t> given;
  if (!scores) {
    given = preds.to_vector<int64_t>();
  } else if (preds.numel() > 0) {
    const Tensor rows = columns_last(preds.detach());
    given = (o.top_k > 1 ? rows.topk(o.top_k, -1).second : rows.argmax(-1)).to_vector<int64_t>();
  }
  const auto k = scores ? static_cast<size_t>(o.top_k) : 1;
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (is_ignored(o, wanted[i])) continue;
    const int64_t t = checked_class(op, "targets", wanted[i], o.num_classes);
    int64_t p = checked_class(op, "predictions", given[i * k], o.num_classes);
    for (size_t j = 1; j < k; ++j) {
      if (given[i * k + j] == t) p = t;
    }
    out.target.push_back(t);
    out.predicted.push_back(p);
  }
  return out;
}

}  // namespace

ClassOptions with_average(ClassOptions options, const char* average) {
  if (options.average.empty()) options.average = average;
  return options;
}

Task checked_task(const char* op, const ClassOptions& o) {
  const auto fail = [op](const char* what, const auto& got, const char* expected) {
    throw_error<ValueError>(op, ": ", what, "; got ", got, "; expected ", expected);
  };
  const bool binary = o.task == "binary", multiclass = o.task == "multiclass";
  if (!binary && !multiclass && o.task != "multilabel") {
    fail("unknown task", concat("'", o.task, "'"), "binary, multiclass or multilabel");
  }
  if (o.average != "micro" && o.average != "macro" && o.average != "weighted" &&
      o.average != "none" && !o.average.empty()) {
    fail("unknown average", concat("'", o.average, "'"), "micro, macro, weighted or none");
  }
  if (!(o.threshold >= 0 && o.threshold <= 1)) fail("bad threshold", o.threshold, "0 to 1");
  constexpr int64_t kMost = int64_t{1} << 20;
  if (multiclass && (o.num_classes < 2 || o.num_classes > kMost)) {
    fail("bad num_classes", o.num_classes, "2 or more");
  }
  if (!multiclass && !binary && (o.num_labels < 1 || o.num_labels > kMost)) {
    fail("bad num_labels", o.num_labels, "1 or more");
  }
  if (o.top_k < 1 || (o.top_k > 1 && (!multiclass || o.top_k > o.num_classes))) {
    fail("bad top_k", o.top_k, "1, or up to num_classes for multiclass");
  }
  return binary ? Task::binary : multiclass ? Task::multiclass : Task::multilabel;
}

size_t columns_of(const ClassOptions& o) {
  if (o.task == "binary") return 1;
  return static_cast<size_t>(o.task == "multiclass" ? o.num_classes : o.num_labels);
}

std::string describe(const char* name, const ClassOptions& o) {
  std::string out = concat(name, "(task=", o.task);
  if (o.task == "multiclass") {
    out += concat(", num_classes=", o.num_classes);
  } else {
    if (o.task == "multilabel") out += concat(", num_labels=", o.num_labels);
    out += concat(", threshold=", o.threshold);
  }
  if (o.task != "binary" && !o.average.empty()) out += concat(", average=", o.average);
  if (o.top_k > 1) out += concat(", top_k=", o.top_k);
  if (o.ignore_index) out += concat(", ignore_index=", *o.ignore_index);
  if (o.zero_division != 0) out += concat(", zero_division=", o.zero_division);
  if (o.from_logits) out += concat(", from_logits=", *o.from_logits);
  return out + ")";
}

Decisions decide(const char* op, const ClassOptions& o, const Tensor& preds, const Tensor& target) {
  const Task task = checked_task(op, o);
  if (task == Task::multiclass) return decide_classes(op, o, preds, target);
  check_labels(op, o, task, preds, target);
  Decisions out;
  out.target = binary_targets(op, o, target);
  if (is_float(preds)) {
    std::vector<double> scores = values_of(columns_last(preds));
    if (are_logits(o, scores)) sigmoid(scores);
    out.predicted.reserve(scores.size());
    for (const double s : scores) out.predicted.push_back(s > o.threshold ? 1 : 0);
  } else {
    check_integers(op, "decisions", preds);
    out.predicted = columns_last(preds).to_vector<int64_t>();
    for (const int64_t p : out.predicted) checked_class(op, "predictions", p, 2);
  }
  for (size_t i = 0; i < out.target.size(); ++i) {
    if (out.target[i] < 0) out.predicted[i] = -1;
  }
  return out;
}

Scores probabilities(const char* op, const ClassOptions& o, const Tensor& preds,
                     const Tensor& target) {
  const Task task = checked_task(op, o);
  if (!is_float(preds)) {
    throw_error<DTypeError>(op, ": predictions must be floating point; got ", preds.dtype());
  }
  Scores out;
  if (task == Task::multiclass) {
    check_integers(op, "targets", target);
    check_classes(op, o, preds, target, true);
  } else {
    check_labels(op, o, task, preds, target);
  }
  std::vector<double> scores = values_of(columns_last(preds));
  for (const double s : scores) {
    if (std::isnan(s)) throw_error<ValueError>(op, ": a prediction is NaN");
  }
  if (task != Task::multiclass) {
    if (are_logits(o, scores)) sigmoid(scores);
    out.target = binary_targets(op, o, target);
    out.scores = std::move(scores);
    return out;
  }
  const size_t columns = columns_of(o);
  if (are_logits(o, scores)) softmax_rows(scores, columns);
  const std::vector<int64_t> wanted = target.to_vector<int64_t>();
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (is_ignored(o, wanted[i])) continue;
    out.target.push_back(checked_class(op, "targets", wanted[i], o.num_classes));
    const auto row = scores.begin() + static_cast<std::ptrdiff_t>(i * columns);
    out.scores.insert(out.scores.end(), row, row + static_cast<std::ptrdiff_t>(columns));
  }
  return out;
}

}  // namespace kiln::metrics
