#include "kiln/metrics/image.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kiln/core/error.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/nn/convolution.h"
#include "kiln/tensor/nn/padding.h"
#include "kiln/tensor/nn/pooling.h"
#include "kiln/tensor/ops.h"

namespace kiln::metrics {

namespace {

constexpr double kNoValue = std::numeric_limits<double>::quiet_NaN();

void check_options(const char* op, const SsimOptions& o) {
  if (!(o.data_range > 0 && o.sigma > 0 && o.sigma < 1000 && o.k1 >= 0 && o.k2 >= 0)) {
    throw_error<ValueError>(op, ": bad options; got data_range ", o.data_range, ", sigma ", o.sigma,
                            ", k1 ", o.k1, ", k2 ", o.k2,
                            "; expected positive ones, sigma below 1000");
  }
}

std::string text_of(const SsimOptions& o) {
  return concat("data_range=", o.data_range, ", sigma=", o.sigma, ", k1=", o.k1, ", k2=", o.k2);
}

int64_t radius_of(const SsimOptions& o) { return static_cast<int64_t>(3.5 * o.sigma + 0.5); }

void check_images(const char* op, const Tensor& preds, const Tensor& target, int64_t larger_than) {
  check_same_shape(op, preds, target);
  if (preds.dim() != 4 || preds.size(1) < 1 || preds.size(2) <= larger_than ||
      preds.size(3) <= larger_than) {
    throw_error<ShapeError>(op, ": expected [N, C, H, W] with H and W above ", larger_than,
                            "; got ", preds.shape());
  }
  for (const Tensor* x : {&preds, &target}) {
    if (!x->is_floating_point() || x->is_complex()) {
      throw_error<DTypeError>(op, ": images must be floating point; got ", x->dtype());
    }
  }
}

Tensor window(const SsimOptions& o) {
  const int64_t radius = radius_of(o);
  std::vector<double> weights;
  double sum = 0;
  for (int64_t i = -radius; i <= radius; ++i) {
    const double x = static_cast<double>(i) / o.sigma;
    weights.push_back(std::exp(-x * x / 2));
    sum += weights.back();
  }
  for (double& w : weights) w /= sum;
  return tensor(weights, {f64});
}

struct Similarity {
  std::vector<double> whole;     // of each image
  std::vector<double> contrast;  // without what the means say, where the window fits
};

// x and y f64 [N, C, H, W].
Similarity similarity(const SsimOptions& o, const Tensor& x, const Tensor& y, bool contrast) {
  const int64_t n = x.size(0), c = x.size(1), h = x.size(2), w = x.size(3), r = radius_of(o);
  const Tensor row = window(o);
  const auto blurred = [&](const Tensor& image) {
    const Tensor padded = functional::pad(image.reshape({n * c, 1, h, w}), {r, r, r, r}, "reflect");
    const Tensor columns = functional::conv2d(padded, row.reshape({1, 1, 2 * r + 1, 1}));
    return functional::conv2d(columns, row.reshape({1, 1, 1, 2 * r + 1}));
  };
  const double c1 = std::pow(o.k1 * o.data_range, 2), c2 = std::pow(o.k2 * o.data_range, 2);
  const Tensor mx = blurred(x), my = blurred(y);
  const Tensor xx = (blurred(x * x) - mx * mx).clamp(0), yy = (blurred(y * y) - my * my).clamp(0);
  const Tensor xy = blurred(x * y) - mx * my;
  const Tensor rest = (2 * xy + c2) / (xx + yy + c2);
  const Tensor all = (2 * mx * my + c1) / (mx * mx + my * my + c1) * rest;
  Similarity out;
  out.whole = all.reshape({n, c * h * w}).mean(1).to_vector<double>();
  if (contrast) {
    const Tensor inner = rest.narrow(2, r, h - 2 * r).narrow(3, r, w - 2 * r);
    out.contrast = inner.reshape({n, -1}).mean(1).to_vector<double>();
  }
  return out;
}

Tensor halved(const Tensor& x) { return functional::avg_pool2d(x, 2); }

}  // namespace

PeakSignalNoiseRatio::PeakSignalNoiseRatio(double data_range) : data_range_(data_range) {
  if (!(data_range > 0 && std::isfinite(data_range))) {
    throw_error<ValueError>("PeakSignalNoiseRatio: data_range must be positive; got ", data_range);
  }
}

std::string PeakSignalNoiseRatio::description() const {
  return concat("PeakSignalNoiseRatio(data_range=", data_range_, ")");
}

void PeakSignalNoiseRatio::visit_state(StateVisitor& visitor) {
  visitor("sum", sum_, Join::sum);
  visitor("count", count_, Join::sum);
}

void PeakSignalNoiseRatio::update(const Tensor& preds, const Tensor& target) {
  check_same_shape("PeakSignalNoiseRatio", preds, target);
  const std::vector<double> p = preds.detach().to_vector<double>();
  const std::vector<double> t = target.detach().to_vector<double>();
  for (size_t i = 0; i < p.size(); ++i) sum_ += (p[i] - t[i]) * (p[i] - t[i]);
  count_ += preds.numel();
}

Tensor PeakSignalNoiseRatio::compute() const {
  if (count_ == 0) return value_tensor(kNoValue);
  const double mean = sum_ / static_cast<double>(count_);
  return value_tensor(10 * std::log10(data_range_ * data_range_ / mean));
}

StructuralSimilarityIndexMeasure::StructuralSimilarityIndexMeasure(const SsimOptions& options)
    : options_(options) {
  check_options("StructuralSimilarityIndexMeasure", options);
}

std::string StructuralSimilarityIndexMeasure::description() const {
  return concat("StructuralSimilarityIndexMeasure(", text_of(options_), ")");
}

void StructuralSimilarityIndexMeasure::visit_state(StateVisitor& visitor) {
  visitor("sum", sum_, Join::sum);
  visitor("count", count_, Join::sum);
}

void StructuralSimilarityIndexMeasure::update(const Tensor& preds, const Tensor& target) {
  check_images("StructuralSimilarityIndexMeasure", preds, target, radius_of(options_));
  if (preds.size(0) == 0) return;
  const auto of = similarity(options_, preds.detach().to(f64), target.detach().to(f64), false);
  for (const double s : of.whole) sum_ += s;
  count_ += preds.size(0);
}

Tensor StructuralSimilarityIndexMeasure::compute() const {
  return value_tensor(ratio(sum_, static_cast<double>(count_), kNoValue));
}

MultiScaleStructuralSimilarityIndexMeasure::MultiScaleStructuralSimilarityIndexMeasure(
    const SsimOptions& options, std::vector<double> betas)
    : options_(options), betas_(std::move(betas)) {
  check_options("MultiScaleStructuralSimilarityIndexMeasure", options);
  if (betas_.empty() || betas_.size() > 16) {
    throw_error<ValueError>(
        "MultiScaleStructuralSimilarityIndexMeasure: expected 1 to 16 betas; got ", betas_.size());
  }
}

std::string MultiScaleStructuralSimilarityIndexMeasure::description() const {
  std::string out =
      concat("MultiScaleStructuralSimilarityIndexMeasure(", text_of(options_), ", betas=");
  for (const double beta : betas_) out += concat(beta, " ");
  return out + ")";
}

void MultiScaleStructuralSimilarityIndexMeasure::visit_state(StateVisitor& visitor) {
  visitor("sum", sum_, Join::sum);
  visitor("count", count_, Join::sum);
}

void MultiScaleStructuralSimilarityIndexMeasure::update(const Tensor& preds, const Tensor& target) {
  const auto scales = static_cast<int64_t>(betas_.size());
  const int64_t smallest =
      2 * radius_of(options_) * std::max<int64_t>(1, (scales - 1) * (scales - 1));
  check_images("MultiScaleStructuralSimilarityIndexMeasure", preds, target,
               std::max(smallest, (int64_t{1} << scales) - 1));
  if (preds.size(0) == 0) return;
  Tensor x = preds.detach().to(f64), y = target.detach().to(f64);
  std::vector<double> product(static_cast<size_t>(x.size(0)), 1.0);
  for (size_t scale = 0; scale < betas_.size(); ++scale) {
    const bool last = scale + 1 == betas_.size();
    const Similarity of = similarity(options_, x, y, !last);
    const std::vector<double>& values = last ? of.whole : of.contrast;
    for (size_t i = 0; i < product.size(); ++i) {
      product[i] *= std::pow(std::max(values[i], 0.0), betas_[scale]);
    }
    if (last) break;
    x = halved(x);
    y = halved(y);
  }
  for (const double p : product) sum_ += p;
  count_ += static_cast<int64_t>(product.size());
}

Tensor MultiScaleStructuralSimilarityIndexMeasure::compute() const {
  return value_tensor(ratio(sum_, static_cast<double>(count_), kNoValue));
}

DiceScore::DiceScore(int64_t num_classes, bool include_background, std::string average,
                     bool one_hot)
    : num_classes_(num_classes),
      include_background_(include_background),
      average_(std::move(average)),
      one_hot_(one_hot) {
  if (num_classes < (include_background ? 1 : 2) || num_classes > int64_t{1} << 16) {
    throw_error<ValueError>(
        "DiceScore: expected 1 to 65536 classes, with more than the background; got ", num_classes);
  }
  if (average_ != "micro" && average_ != "macro" && average_ != "weighted" && average_ != "none") {
    throw_error<ValueError>("DiceScore: unknown average; got '", average_,
                            "'; expected micro, macro, weighted or none");
  }
  const int64_t first = include_background ? 0 : 1;
  sum_.assign(average_ == "none" ? static_cast<size_t>(num_classes - first) : 1, 0);
  count_.assign(sum_.size(), 0);
}

std::string DiceScore::description() const {
  return concat("DiceScore(num_classes=", num_classes_,
                ", include_background=", include_background_, ", average=", average_,
                ", one_hot=", one_hot_, ")");
}

void DiceScore::visit_state(StateVisitor& visitor) {
  visitor("sum", sum_, Join::sum);
  visitor("count", count_, Join::sum);
}

void DiceScore::update(const Tensor& preds, const Tensor& target) {
  check_same_shape("DiceScore", preds, target);
  if (preds.dim() < (one_hot_ ? 2 : 1) || (one_hot_ && preds.size(1) != num_classes_)) {
    throw_error<ShapeError>("DiceScore: expected ",
                            one_hot_ ? concat("[N, ", num_classes_, ", ..]") : "[N, ..]", "; got ",
                            preds.shape());
  }
  for (const Tensor* x : {&preds, &target}) {
    if (x->is_floating_point() || x->is_complex()) {
      throw_error<DTypeError>("DiceScore: classes must be integers or bools; got ", x->dtype());
    }
  }
  const auto images = static_cast<size_t>(preds.size(0));
  if (preds.numel() == 0) return;
  const auto classes = static_cast<size_t>(num_classes_);
  const std::vector<int64_t> p = preds.to_vector<int64_t>(), t = target.to_vector<int64_t>();
  const size_t pixels = p.size() / images / (one_hot_ ? classes : 1);
  // What is common and what both have together, by image and class.
  std::vector<double> common(images * classes), both(images * classes), support(images * classes);
  for (size_t i = 0; i < p.size(); ++i) {
    for (const int64_t c : {p[i], t[i]}) {
      if (c < 0 || c >= (one_hot_ ? 2 : num_classes_)) {
        throw_error<IndexError>("DiceScore: a class is out of range; got ", c);
      }
    }
    if (one_hot_) {
      const size_t at = i / pixels;
      common[at] += static_cast<double>(p[i] & t[i]);
      both[at] += static_cast<double>(p[i] + t[i]);
      support[at] += static_cast<double>(t[i]);
    } else {
      const size_t first = i / pixels * classes;
      if (p[i] == t[i]) common[first + static_cast<size_t>(p[i])] += 1;
      both[first + static_cast<size_t>(p[i])] += 1;
      both[first + static_cast<size_t>(t[i])] += 1;
      support[first + static_cast<size_t>(t[i])] += 1;
    }
  }
  const size_t skipped = include_background_ ? 0 : 1;
  for (size_t image = 0; image < images; ++image) {
    double above = 0, below = 0, sum = 0, weighted = 0, supports = 0;
    int64_t found = 0;
    for (size_t c = skipped; c < classes; ++c) {
      const size_t at = image * classes + c;
      above += 2 * common[at];
      below += both[at];
      if (both[at] == 0) continue;
      const double dice = 2 * common[at] / both[at];
      ++found;
      sum += dice;
      weighted += support[at] * dice;
      supports += support[at];
      if (average_ == "none") {
        sum_[c - skipped] += dice;
        ++count_[c - skipped];
      }
    }
    if (average_ == "none" || found == 0) continue;
    sum_[0] += average_ == "micro"   ? above / below
               : average_ == "macro" ? sum / static_cast<double>(found)
                                     : ratio(weighted, supports, 0);
    ++count_[0];
  }
}

Tensor DiceScore::compute() const {
  std::vector<double> out;
  for (size_t i = 0; i < sum_.size(); ++i) {
    out.push_back(ratio(sum_[i], static_cast<double>(count_[i]), kNoValue));
  }
  return average_ == "none" ? value_tensor(out) : value_tensor(out[0]);
}

}  // namespace kiln::metrics
