#include "kiln/nn/adaptive_log_softmax.h"

#include <cmath>

#include "kiln/core/error.h"
#include "kiln/nn/repr.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/index/advanced_index.h"
#include "kiln/tensor/index/scatter.h"
#include "kiln/tensor/ops.h"

namespace kiln::nn {
namespace {

constexpr const char* kName = "AdaptiveLogSoftmaxWithLoss";

std::vector<int64_t> ends_of(std::vector<int64_t> cutoffs, int64_t n_classes) {
  const std::vector<int64_t> given = cutoffs;
  cutoffs.push_back(n_classes);
  int64_t before = 0;
  for (const int64_t end : cutoffs) {
    if (given.empty() || end <= before) {
      throw_error<ValueError>(kName,
                              ": cutoffs must grow, from 1 to n_classes - 1 = ", n_classes - 1,
                              "; got ", Shape(std::span<const int64_t>(given)));
    }
    before = end;
  }
  return cutoffs;
}

}  // namespace

AdaptiveLogSoftmaxWithLoss::AdaptiveLogSoftmaxWithLoss(int64_t in_features, int64_t n_classes,
                                                       std::vector<int64_t> cutoffs,
                                                       const AdaptiveLogSoftmaxOptions& options,
                                                       const ParamOptions& param_options)
    : head(in_features, ends_of(cutoffs, n_classes)[0] + static_cast<int64_t>(cutoffs.size()),
           options.head_bias, param_options),
      ends_(ends_of(cutoffs, n_classes)) {
  for (size_t i = 0; i + 1 < ends_.size(); ++i) {
    const double share = std::floor(static_cast<double>(in_features) /
                                    std::pow(options.div_value, static_cast<double>(i + 1)));
    if (!(share >= 1.0 && share <= 1e15)) {
      throw_error<ValueError>(kName, ": div_value ", detail::repr(options.div_value),
                              " leaves cluster ", i, " no features of ", in_features);
    }
    const auto hidden = static_cast<int64_t>(share);
    Sequential cluster;
    cluster.push_back(Linear(in_features, hidden, false, param_options));
    cluster.push_back(Linear(hidden, ends_[i + 1] - ends_[i], false, param_options));
    tail.push_back(std::move(cluster));
  }
}

auto AdaptiveLogSoftmaxWithLoss::forward(const Tensor& given, const Tensor& classes) const
    -> Output {
  const bool batched = classes.dim() == 1;
  if (!(batched && given.dim() == 2) && !(classes.dim() == 0 && given.dim() == 1)) {
    throw_error<ShapeError>(kName,
                            ": expected input [N, in_features] and target [N], or both without N; "
                            "got ",
                            given.shape(), " and ", classes.shape());
  }
  const Tensor input = batched ? given : given.unsqueeze(0);
  const Tensor target = batched ? classes : classes.unsqueeze(0);
  if (input.size(0) != target.size(0)) {
    throw_error<ShapeError>(kName, ": input and target must have one batch size; got ",
                            input.size(0), " and ", target.size(0));
  }
  if (target.numel() > 0) {
    const auto least = target.min().item<int64_t>(), most = target.max().item<int64_t>();
    if (least < 0 || most >= n_classes()) {
      throw_error<IndexError>(kName, ": targets must be from 0 to ", n_classes() - 1, "; got ",
                              least, " to ", most);
    }
  }
  const Tensor of_head = head.forward(input).log_softmax(1);
  Tensor place = target.clone();  // the class in the head: of the shortlist, or the cluster
  std::vector<std::pair<Tensor, Tensor>> parts;
  for (size_t i = 0; i < tail.size(); ++i) {
    const Tensor inside = target.ge(ends_[i]).logical_and(target.lt(ends_[i + 1]));
    const Tensor rows = nonzero(inside).squeeze(1);
    if (rows.numel() == 0) continue;
    place = index_fill(place, 0, rows, shortlist_size() + static_cast<int64_t>(i));
    const Tensor own = tail[i].forward(input.index_select(0, rows)).log_softmax(1);
    const Tensor which = (target.index_select(0, rows) - ends_[i]).unsqueeze(1);
    parts.emplace_back(rows, own.gather(1, which).squeeze(1));
  }
  Tensor output = of_head.gather(1, place.unsqueeze(1)).squeeze(1);
  for (const auto& [rows, value] : parts) output = output.index_add(0, rows, value);
  const Tensor loss = -output.mean();
  return {batched ? output : output.squeeze(0), loss};
}

Tensor AdaptiveLogSoftmaxWithLoss::log_prob(const Tensor& input) const {
  const Tensor of_head = head.forward(input).log_softmax(1);
  std::vector<Tensor> parts = {of_head.narrow(1, 0, shortlist_size())};
  for (size_t i = 0; i < tail.size(); ++i) {
    const Tensor cluster = of_head.narrow(1, shortlist_size() + static_cast<int64_t>(i), 1);
    parts.push_back(tail[i].forward(input).log_softmax(1) + cluster);
  }
  return cat(parts, 1);
}

Tensor AdaptiveLogSoftmaxWithLoss::predict(const Tensor& input) const {
  return log_prob(input).argmax(1);
}

void AdaptiveLogSoftmaxWithLoss::reset_parameters() {
  head.reset_parameters();
  for (Sequential& cluster : tail) {
    for (int64_t i = 0; i < 2; ++i) cluster.at<Linear>(i).reset_parameters();
  }
}

KILN_MODULE_DEFINED(AdaptiveLogSoftmaxWithLoss, head, tail)

}  // namespace kiln::nn
