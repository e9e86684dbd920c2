#include "kiln/metrics/classification.h"

#include "kiln/core/error.h"

namespace kiln::metrics {

ClassMetric::ClassMetric(const char* name, ClassOptions options, const char* average)
    : name_(name),
      options_(with_average(std::move(options), average)),
      task_(checked_task(name, options_)) {
  for (auto* counts : {&tp_, &fp_, &tn_, &fn_}) counts->assign(columns_of(options_), 0);
}

void ClassMetric::visit_state(StateVisitor& visitor) {
  visitor("tp", tp_, Join::sum);
  visitor("fp", fp_, Join::sum);
  visitor("tn", tn_, Join::sum);
  visitor("fn", fn_, Join::sum);
}

void ClassMetric::update(const Tensor& preds, const Tensor& target) {
  const Decisions d = decide(name_, options_, preds, target);
  const size_t columns = tp_.size();
  if (task_ == Task::multiclass) {
    for (int64_t& n : tn_) n += static_cast<int64_t>(d.target.size());
    for (size_t i = 0; i < d.target.size(); ++i) {
      const auto t = static_cast<size_t>(d.target[i]), p = static_cast<size_t>(d.predicted[i]);
      --tn_[t];
      if (t == p) {
        ++tp_[t];
      } else {
        --tn_[p];
        ++fn_[t];
        ++fp_[p];
      }
    }
    return;
  }
  for (size_t i = 0; i < d.target.size(); ++i) {
    if (d.target[i] < 0) continue;
    auto& counts =
        d.target[i] == 1 ? (d.predicted[i] == 1 ? tp_ : fn_) : (d.predicted[i] == 1 ? fp_ : tn_);
    ++counts[i % columns];
  }
}

StatCounts ClassMetric::counts(size_t i) const { return {tp_[i], fp_[i], tn_[i], fn_[i]}; }

Tensor ClassMetric::compute() const {
  if (task_ == Task::binary) return value_tensor(score(counts(0)));
  const size_t columns = tp_.size();
  if (options_.average == "micro") {
    StatCounts all;
    for (size_t i = 0; i < columns; ++i) {
      if (is_left_out(i)) continue;
      all.tp += tp_[i];
      all.fp += fp_[i];
      all.tn += tn_[i];
      all.fn += fn_[i];
    }
    return value_tensor(score(all));
  }
  std::vector<double> scores;
  double sum = 0, weights = 0;
  for (size_t i = 0; i < columns; ++i) {
    const StatCounts c = counts(i);
    scores.push_back(score(c));
    const bool occurs = c.tp + c.fn + (counts_predicted() ? c.fp : 0) > 0;
    double weight = options_.average == "weighted" ? static_cast<double>(c.tp + c.fn)
                    : counts_negatives() || occurs ? 1.0
                                                   : 0.0;
    if (is_left_out(i) && options_.average == "macro") weight = 0;
    sum += weight * scores.back();
    weights += weight;
  }
  if (options_.average == "none") return value_tensor(scores);
  return value_tensor(ratio(sum, weights, 0));
}

double Accuracy::score(const StatCounts& c) const {
  if (!counts_negatives()) {
    return ratio(static_cast<double>(c.tp), static_cast<double>(c.tp + c.fn), 0);
  }
  return ratio(static_cast<double>(c.tp + c.tn), static_cast<double>(c.tp + c.tn + c.fp + c.fn), 0);
}

double HammingDistance::score(const StatCounts& c) const {
  if (!counts_negatives()) {
    return 1 - ratio(static_cast<double>(c.tp), static_cast<double>(c.tp + c.fn), 0);
  }
  return 1 -
         ratio(static_cast<double>(c.tp + c.tn), static_cast<double>(c.tp + c.tn + c.fp + c.fn), 0);
}

double Precision::score(const StatCounts& c) const {
  return ratio(static_cast<double>(c.tp), static_cast<double>(c.tp + c.fp), zero_division());
}

double Recall::score(const StatCounts& c) const {
  return ratio(static_cast<double>(c.tp), static_cast<double>(c.tp + c.fn), zero_division());
}

double Specificity::score(const StatCounts& c) const {
  return ratio(static_cast<double>(c.tn), static_cast<double>(c.tn + c.fp), 0);
}

FBetaScore::FBetaScore(double beta, ClassOptions o)
    : Cloned("FBetaScore", std::move(o)), beta_(beta) {
  if (!(beta > 0 && beta < 1e100)) {
    throw_error<ValueError>("FBetaScore: beta must be positive; got ", beta);
  }
}

std::string FBetaScore::description() const {
  return concat("beta=", beta_, " ", ClassMetric::description());
}

double FBetaScore::score(const StatCounts& c) const {
  const double square = beta_ * beta_;
  const double rights = (1 + square) * static_cast<double>(c.tp);
  return ratio(rights, rights + square * static_cast<double>(c.fn) + static_cast<double>(c.fp),
               zero_division());
}

double JaccardIndex::score(const StatCounts& c) const {
  return ratio(static_cast<double>(c.tp), static_cast<double>(c.tp + c.fp + c.fn), zero_division());
}

bool JaccardIndex::is_left_out(size_t column) const {
  return options().task == "multiclass" && options().ignore_index &&
         *options().ignore_index == static_cast<int64_t>(column);
}

}  // namespace kiln::metrics
