#include "kiln/metrics/ranking.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kiln/core/error.h"

namespace kiln::metrics {

Thresholds even_thresholds(int64_t count) {
  if (count < 2 || count > int64_t{1} << 20) {
    throw_error<ValueError>("thresholds: expected 2 to 1048576 of them; got ", count);
  }
  Thresholds out;
  for (int64_t i = 0; i < count; ++i) {
    out.push_back(static_cast<double>(i) / static_cast<double>(count - 1));
  }
  return out;
}

CurveArea::CurveArea(const char* name, ClassOptions options, Thresholds thresholds)
    : name_(name),
      options_(with_average(std::move(options), "macro")),
      task_(checked_task(name, options_)),
      thresholds_(std::move(thresholds)) {
  // As floats, which scores mostly are.
  for (double& t : thresholds_) t = static_cast<float>(t);
  std::sort(thresholds_.begin(), thresholds_.end());
  for (const double t : thresholds_) {
    if (!(t >= 0 && t <= 1)) {
      throw_error<ValueError>(name, ": thresholds must be from 0 to 1; got ", t);
    }
  }
  if (!thresholds_.empty()) {
    positive_.assign(columns_of(options_) * (thresholds_.size() + 1), 0);
    negative_ = positive_;
  }
  if (task_ == Task::multiclass && options_.average == "micro") {
    throw_error<ValueError>(name,
                            ": average 'micro' is for labels; expected macro, weighted or none");
  }
}

std::string CurveArea::description() const {
  std::string out = describe(name_, options_);
  if (thresholds_.empty()) return out;
  out += ", thresholds=";
  for (const double t : thresholds_) out += concat(t, " ");
  return out;
}

void CurveArea::visit_state(StateVisitor& visitor) {
  if (!thresholds_.empty()) {
    visitor("positive", positive_, Join::sum);
    visitor("negative", negative_, Join::sum);
    return;
  }
  visitor("scores", scores_, Join::append);
  visitor("target", target_, Join::append);
}

void CurveArea::check_state() const {
  const size_t columns = columns_of(options_);
  const size_t rows = task_ == Task::multiclass ? target_.size() * columns : target_.size();
  if (scores_.size() != rows || scores_.size() % columns != 0) {
    throw_error<ValueError>("load_state_dict: ", scores_.size(), " scores do not fit ",
                            target_.size(), " targets");
  }
}

void CurveArea::update(const Tensor& preds, const Tensor& target) {
  Scores given = probabilities(name_, options_, preds, target);
  if (!thresholds_.empty()) return count(given.scores, given.target);
  scores_.insert(scores_.end(), given.scores.begin(), given.scores.end());
  target_.insert(target_.end(), given.target.begin(), given.target.end());
}

double CurveArea::area_of(std::vector<std::pair<double, bool>>& samples) const {
  std::sort(samples.begin(), samples.end(),
            [](const auto& a, const auto& b) { return a.first > b.first; });
  Groups groups;
  double positives = 0, negatives = 0;
  for (size_t i = 0; i < samples.size(); ++i) {
    if (i == 0 || samples[i].first != samples[i - 1].first) groups.emplace_back(0, 0);
    (samples[i].second ? groups.back().first : groups.back().second) += 1;
    (samples[i].second ? positives : negatives) += 1;
  }
  return area(groups, positives, negatives);
}

void CurveArea::count(const std::vector<double>& scores, const std::vector<int64_t>& target) {
  const size_t columns = columns_of(options_), bins = thresholds_.size() + 1;
  for (size_t i = 0; i < scores.size(); ++i) {
    const size_t column = i % columns;
    const int64_t t = task_ == Task::multiclass ? target[i / columns] : target[i];
    if (t < 0) continue;
    const bool positive = task_ == Task::multiclass ? t == static_cast<int64_t>(column) : t == 1;
    const auto reached = static_cast<size_t>(
        std::upper_bound(thresholds_.begin(), thresholds_.end(), scores[i]) - thresholds_.begin());
    ++(positive ? positive_ : negative_)[column * bins + reached];
  }
}

double CurveArea::binned_area_of(size_t column, bool together, double& positives) const {
  const size_t bins = thresholds_.size() + 1;
  Groups above(bins - 1);
  std::pair<double, double> sum{0, 0};
  for (size_t bin = bins; bin-- > 0;) {
    for (size_t c = together ? 0 : column; c < (together ? columns_of(options_) : column + 1);
         ++c) {
      sum.first += static_cast<double>(positive_[c * bins + bin]);
      sum.second += static_cast<double>(negative_[c * bins + bin]);
    }
    if (bin > 0) above[bin - 1] = sum;
  }
  positives = sum.first;
  return binned_area(above, sum.first, sum.second);
}

double CurveArea::exact_area_of(size_t column, bool together, double& positives) const {
  const size_t columns = columns_of(options_);
  std::vector<std::pair<double, bool>> samples;
  positives = 0;
  for (size_t i = together ? 0 : column; i < scores_.size(); i += together ? 1 : columns) {
    const int64_t t = task_ == Task::multiclass
                          ? target_[i / columns] == static_cast<int64_t>(column)
                          : target_[i];
    if (t < 0) continue;
    samples.emplace_back(scores_[i], t == 1);
    positives += t == 1 ? 1 : 0;
  }
  return area_of(samples);
}

Tensor CurveArea::compute() const {
  const size_t columns = columns_of(options_);
  const bool together = task_ == Task::binary || options_.average == "micro";
  std::vector<double> areas, support;
  for (size_t column = 0; column < (together ? 1 : columns); ++column) {
    double positives = 0;
    areas.push_back(thresholds_.empty() ? exact_area_of(column, together, positives)
                                        : binned_area_of(column, together, positives));
    support.push_back(positives);
  }
  if (together) return value_tensor(areas[0]);
  if (options_.average == "none") return value_tensor(areas);
  double sum = 0, weights = 0;
  for (size_t i = 0; i < columns; ++i) {
    if (std::isnan(areas[i])) continue;
    const double weight = options_.average == "weighted" ? support[i] : 1;
    sum += weight * areas[i];
    weights += weight;
  }
  return value_tensor(ratio(sum, weights, std::numeric_limits<double>::quiet_NaN()));
}

double AUROC::area(const Groups& groups, double positives, double negatives) const {
  double sum = 0, above = 0;
  for (const auto& [p, n] : groups) {
    sum += n * (above + p / 2);
    above += p;
  }
  return ratio(sum, positives * negatives, std::numeric_limits<double>::quiet_NaN());
}

double AUROC::binned_area(const Groups& above, double positives, double negatives) const {
  if (positives == 0 || negatives == 0) return std::numeric_limits<double>::quiet_NaN();
  double sum = 0;  // of trapezoids
  for (size_t i = 1; i < above.size(); ++i) {
    sum += (above[i - 1].second - above[i].second) * (above[i - 1].first + above[i].first) / 2;
  }
  return sum / (positives * negatives);
}

double AveragePrecision::area(const Groups& groups, double positives, double) const {
  double sum = 0, right = 0, taken = 0;
  for (const auto& [p, n] : groups) {
    right += p;
    taken += p + n;
    sum += p * right / taken;
  }
  return ratio(sum, positives, std::numeric_limits<double>::quiet_NaN());
}

double AveragePrecision::binned_area(const Groups& above, double positives, double) const {
  if (positives == 0) return std::numeric_limits<double>::quiet_NaN();
  double sum = 0;
  for (size_t i = 0; i < above.size(); ++i) {
    const auto& [right, wrong] = above[i];
    const double next = i + 1 < above.size() ? above[i + 1].first : 0;
    sum += (right - next) * ratio(right, right + wrong, 0.0);
  }
  return sum / positives;
}

CalibrationError::CalibrationError(ClassOptions options, int64_t n_bins, std::string norm)
    : options_(std::move(options)),
      norm_(std::move(norm)),
      task_(checked_task("CalibrationError", options_)) {
  if (task_ == Task::multilabel) {
    throw_error<ValueError>("CalibrationError: the task must be binary or multiclass; got ",
                            options_.task);
  }
  if (n_bins < 1 || n_bins > int64_t{1} << 20) {
    throw_error<ValueError>("CalibrationError: n_bins must be positive; got ", n_bins);
  }
  if (norm_ != "l1" && norm_ != "l2" && norm_ != "max") {
    throw_error<ValueError>("CalibrationError: unknown norm; got '", norm_,
                            "'; expected l1, l2 or max");
  }
  count_.assign(static_cast<size_t>(n_bins + 1), 0);
  right_ = count_;
  confidence_.assign(count_.size(), 0);
}

void CalibrationError::visit_state(StateVisitor& visitor) {
  visitor("count", count_, Join::sum);
  visitor("right", right_, Join::sum);
  visitor("confidence", confidence_, Join::sum);
}

std::string CalibrationError::description() const {
  return concat(describe("CalibrationError", options_), ", n_bins=", count_.size() - 1,
                ", norm=", norm_);
}

void CalibrationError::update(const Tensor& preds, const Tensor& target) {
  const Scores given = probabilities("CalibrationError", options_, preds, target);
  const size_t columns = columns_of(options_);
  const auto bins = static_cast<double>(count_.size() - 1);
  for (size_t i = 0; i < given.target.size(); ++i) {
    if (given.target[i] < 0) continue;
    const auto row = given.scores.begin() + static_cast<std::ptrdiff_t>(i * columns);
    const auto best = std::max_element(row, row + static_cast<std::ptrdiff_t>(columns));
    const double confidence = std::clamp(*best, 0.0, 1.0);
    const bool right = task_ == Task::binary ? given.target[i] == 1 : best - row == given.target[i];
    const auto bin = static_cast<size_t>(confidence * bins);
    ++count_[bin];
    right_[bin] += right ? 1 : 0;
    confidence_[bin] += confidence;
  }
}

Tensor CalibrationError::compute() const {
  double total = 0, sum = 0, largest = 0;
  for (const int64_t n : count_) total += static_cast<double>(n);
  if (total == 0) return value_tensor(std::numeric_limits<double>::quiet_NaN());
  for (size_t i = 0; i < count_.size(); ++i) {
    const auto n = static_cast<double>(count_[i]);
    if (n == 0) continue;
    const double gap = std::abs(static_cast<double>(right_[i]) - confidence_[i]) / n;
    sum += (norm_ == "l2" ? gap * gap : gap) * n / total;
    largest = std::max(largest, gap);
  }
  return value_tensor(norm_ == "max" ? largest : norm_ == "l2" ? std::sqrt(sum) : sum);
}

}  // namespace kiln::metrics
