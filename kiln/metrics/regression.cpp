#include "kiln/metrics/regression.h"

#include <cmath>
#include <limits>

#include "kiln/core/error.h"

namespace kiln::metrics {

namespace {

constexpr double kUndefined = std::numeric_limits<double>::quiet_NaN();

// f(prediction, target) summed over both tensors.
template <class F>
double sum_of(const char* op, const Tensor& preds, const Tensor& target, F f) {
  check_same_shape(op, preds, target);
  const std::vector<double> p = preds.detach().to_vector<double>();
  const std::vector<double> t = target.detach().to_vector<double>();
  double sum = 0;
  for (size_t i = 0; i < p.size(); ++i) sum += f(p[i] - t[i]);
  return sum;
}

}  // namespace

void MeanAbsoluteError::update(const Tensor& preds, const Tensor& target) {
  sum_ += sum_of("MeanAbsoluteError", preds, target, [](double e) { return std::abs(e); });
  count_ += preds.numel();
}
Tensor MeanAbsoluteError::compute() const {
  return value_tensor(ratio(sum_, static_cast<double>(count_), kUndefined));
}
void MeanAbsoluteError::visit_state(StateVisitor& visitor) {
  visitor("sum", sum_, Join::sum);
  visitor("count", count_, Join::sum);
}

void MeanSquaredError::update(const Tensor& preds, const Tensor& target) {
  sum_ += sum_of("MeanSquaredError", preds, target, [](double e) { return e * e; });
  count_ += preds.numel();
}
Tensor MeanSquaredError::compute() const {
  const double mean = ratio(sum_, static_cast<double>(count_), kUndefined);
  return value_tensor(squared_ ? mean : std::sqrt(mean));
}
void MeanSquaredError::visit_state(StateVisitor& visitor) {
  visitor("sum", sum_, Join::sum);
  visitor("count", count_, Join::sum);
}

R2Score::R2Score(std::string multioutput) : multioutput_(std::move(multioutput)) {
  if (multioutput_ != "uniform_average" && multioutput_ != "variance_weighted" &&
      multioutput_ != "raw_values") {
    throw_error<ValueError>("R2Score: unknown multioutput; got '", multioutput_,
                            "'; expected uniform_average, variance_weighted or raw_values");
  }
}

void R2Score::visit_state(StateVisitor& visitor) {
  visitor("count", count_, Join::sum);
  visitor("mean", mean_, Join::sum);
  visitor("spread", spread_, Join::sum);
  visitor("residual", residual_, Join::sum);
}

void R2Score::check_state() const {
  if (mean_.size() != spread_.size() || mean_.size() != residual_.size()) {
    throw_error<ValueError>("load_state_dict: R2Score's values differ in size");
  }
}

void R2Score::reset() {
  count_ = 0;
  for (auto* values : {&mean_, &spread_, &residual_}) values->clear();
}

// Chan, Golub & LeVeque (1983): moments of two parts give those of both.
void R2Score::add(int64_t count, const std::vector<double>& mean, const std::vector<double>& spread,
                  const std::vector<double>& residual) {
  if (count == 0) return;
  if (count_ == 0) {
    count_ = count;
    mean_ = mean;
    spread_ = spread;
    residual_ = residual;
    return;
  }
  const auto n = static_cast<double>(count_), m = static_cast<double>(count);
  for (size_t k = 0; k < mean_.size(); ++k) {
    const double gap = mean[k] - mean_[k];
    mean_[k] += gap * m / (n + m);
    spread_[k] += spread[k] + gap * gap * n * m / (n + m);
    residual_[k] += residual[k];
  }
  count_ += count;
}

void R2Score::join(const Metric& other) {
  const auto& o = static_cast<const R2Score&>(other);
  if (count_ > 0 && o.count_ > 0 && mean_.size() != o.mean_.size()) {
    throw_error<ShapeError>("merge: R2Score saw ", o.mean_.size(), " columns; expected ",
                            mean_.size());
  }
  add(o.count_, std::vector(o.mean_), std::vector(o.spread_), std::vector(o.residual_));
}

void R2Score::update(const Tensor& preds, const Tensor& target) {
  check_same_shape("R2Score", preds, target);
  if (preds.dim() < 1 || preds.dim() > 2) {
    throw_error<ShapeError>("R2Score: expected [N] or [N, K]; got ", preds.shape());
  }
  const auto columns = static_cast<size_t>(preds.dim() == 2 ? preds.size(1) : 1);
  if (count_ > 0 && columns != mean_.size()) {
    throw_error<ShapeError>("R2Score: got ", columns, " columns; expected ", mean_.size(),
                            " as before");
  }
  const auto rows = static_cast<size_t>(preds.size(0));
  const std::vector<double> p = preds.detach().to_vector<double>();
  const std::vector<double> t = target.detach().to_vector<double>();
  std::vector<double> mean(columns), spread(columns), residual(columns);
  for (size_t k = 0; k < columns; ++k) {
    for (size_t i = 0; i < rows; ++i) mean[k] += t[i * columns + k];
    mean[k] /= static_cast<double>(rows);
    for (size_t i = 0; i < rows; ++i) {
      const double x = t[i * columns + k], off = x - p[i * columns + k];
      spread[k] += (x - mean[k]) * (x - mean[k]);
      residual[k] += off * off;
    }
  }
  add(static_cast<int64_t>(rows), mean, spread, residual);
}

Tensor R2Score::compute() const {
  if (count_ < 2) return value_tensor(kUndefined);
  std::vector<double> scores;
  double sum = 0, weights = 0, equal = 0;
  for (size_t k = 0; k < mean_.size(); ++k) {
    scores.push_back(spread_[k] != 0 ? 1 - residual_[k] / spread_[k] : residual_[k] == 0 ? 1 : 0);
    equal += scores.back();
    sum += spread_[k] * scores.back();
    weights += spread_[k];
  }
  if (multioutput_ == "raw_values" && scores.size() > 1) return value_tensor(scores);
  const double mean = ratio(equal, static_cast<double>(scores.size()), kUndefined);
  if (multioutput_ == "variance_weighted") return value_tensor(ratio(sum, weights, mean));
  return value_tensor(mean);
}

}  // namespace kiln::metrics
