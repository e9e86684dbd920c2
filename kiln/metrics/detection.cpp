#include "kiln/metrics/detection.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>
#include <utility>

#include "kiln/core/error.h"
#include "kiln/metrics/detection_match.h"
#include "kiln/tensor/creation.h"

namespace kiln::metrics {

namespace {

constexpr const char* kOp = "MeanAveragePrecision";

std::vector<double> steps(double first, double last, int count) {
  std::vector<double> out;
  const double step = (last - first) / (count - 1);
  for (int i = 0; i < count; ++i) out.push_back(i + 1 == count ? last : i * step + first);
  return out;
}

// What a list of an image must be.
void check(const Detections& d, const char* what, bool scored) {
  const auto fail = [what](const char* part, const Tensor& got, const char* expected) {
    throw_error<ShapeError>(kOp, ": ", part, " of ", what, " do not fit; got ",
                            got.defined() ? concat(got.shape()) : "nothing", "; expected ",
                            expected);
  };
  if (!d.boxes.defined() || (d.boxes.numel() > 0 && (d.boxes.dim() != 2 || d.boxes.size(1) != 4))) {
    fail("boxes", d.boxes, "[N, 4]");
  }
  const Shape one{d.boxes.numel() / 4};
  const auto fits = [&one](const Tensor& x) { return x.defined() && x.shape() == one; };
  if (!fits(d.labels)) fail("labels", d.labels, "[N]");
  if (d.labels.is_floating_point() || d.labels.is_complex()) {
    throw_error<DTypeError>(kOp, ": labels must be integers; got ", d.labels.dtype());
  }
  if (scored && !fits(d.scores)) fail("scores", d.scores, "[N]");
  if (d.crowd.defined() && !fits(d.crowd)) fail("crowds", d.crowd, "[N]");
  if (d.area.defined() && !fits(d.area)) fail("areas", d.area, "[N]");
}

template <class T, class U = T>
void append(std::vector<T>& to, const Tensor& from) {
  const std::vector<T> values = from.detach().to_vector<T>();
  to.insert(to.end(), values.begin(), values.end());
}

void append_boxes(std::vector<double>& to, const Tensor& boxes, const std::string& format) {
  std::vector<double> b = boxes.detach().to_vector<double>();
  for (size_t i = 0; i < b.size(); i += 4) {
    if (format == "xyxy") {
      b[i + 2] -= b[i];
      b[i + 3] -= b[i + 1];
    } else if (format == "cxcywh") {
      b[i] -= b[i + 2] / 2;
      b[i + 1] -= b[i + 3] / 2;
    }
  }
  to.insert(to.end(), b.begin(), b.end());
}

}  // namespace

MeanAveragePrecision::MeanAveragePrecision(DetectionOptions options)
    : options_(std::move(options)) {
  auto& o = options_;
  if (o.box_format != "xyxy" && o.box_format != "xywh" && o.box_format != "cxcywh") {
    throw_error<ValueError>(kOp, ": unknown box_format; got '", o.box_format,
                            "'; expected xyxy, xywh or cxcywh");
  }
  if (o.iou_thresholds.empty()) o.iou_thresholds = steps(0.5, 0.95, 10);
  if (o.rec_thresholds.empty()) o.rec_thresholds = steps(0, 1, 101);
  for (const auto* thresholds : {&o.iou_thresholds, &o.rec_thresholds}) {
    for (const double t : *thresholds) {
      if (!(t >= 0 && t <= 1)) throw_error<ValueError>(kOp, ": a threshold is not in [0, 1]: ", t);
    }
  }
  std::sort(o.rec_thresholds.begin(), o.rec_thresholds.end());
  std::sort(o.max_detections.begin(), o.max_detections.end());
  if (o.max_detections[0] < 1) {
    throw_error<ValueError>(kOp, ": max_detections must be positive; got ", o.max_detections[0]);
  }
}

std::string MeanAveragePrecision::description() const {
  std::string out = concat(kOp, "(box_format=", options_.box_format, ", max_detections=");
  for (const int64_t n : options_.max_detections) out += concat(n, " ");
  out += ", iou_thresholds=";
  for (const double t : options_.iou_thresholds) out += concat(t, " ");
  return out + concat(", ", options_.rec_thresholds.size(), " rec_thresholds)");
}

void MeanAveragePrecision::visit_state(StateVisitor& visitor) {
  visitor("found_count", found_count_, Join::append);
  visitor("found_box", found_box_, Join::append);
  visitor("found_label", found_label_, Join::append);
  visitor("found_score", found_score_, Join::append);
  visitor("there_count", there_count_, Join::append);
  visitor("there_box", there_box_, Join::append);
  visitor("there_label", there_label_, Join::append);
  visitor("there_crowd", there_crowd_, Join::append);
  visitor("there_area", there_area_, Join::append);
}

void MeanAveragePrecision::check_state() const {
  const auto fits = [](const std::vector<int64_t>& counts, size_t size) {
    uint64_t sum = 0;
    for (const int64_t n : counts) {
      if (n < 0 || static_cast<uint64_t>(n) > size) return false;
      sum += static_cast<uint64_t>(n);
    }
    return sum == size;
  };
  if (found_count_.size() != there_count_.size() || !fits(found_count_, found_label_.size()) ||
      !fits(there_count_, there_label_.size()) || found_box_.size() != 4 * found_label_.size() ||
      found_score_.size() != found_label_.size() || there_box_.size() != 4 * there_label_.size() ||
      there_crowd_.size() != there_label_.size() || there_area_.size() != there_label_.size()) {
    throw_error<ValueError>("load_state_dict: MeanAveragePrecision's values do not fit");
  }
}

void MeanAveragePrecision::update(const std::vector<Detections>& preds,
                                  const std::vector<Detections>& target) {
  if (preds.size() != target.size()) {
    throw_error<ValueError>(kOp, ": got predictions for ", preds.size(), " images and targets for ",
                            target.size());
  }
  for (size_t i = 0; i < preds.size(); ++i) {
    check(preds[i], "predictions", true);
    check(target[i], "targets", false);
    for (const double score : preds[i].scores.detach().to_vector<double>()) {
      if (std::isnan(score)) throw_error<ValueError>(kOp, ": a score of image ", i, " is NaN");
    }
  }
  for (size_t i = 0; i < preds.size(); ++i) {
    const Detections& found = preds[i];
    found_count_.push_back(found.labels.numel());
    append(found_label_, found.labels);
    append(found_score_, found.scores);
    append_boxes(found_box_, found.boxes, options_.box_format);

    const Detections& there = target[i];
    there_count_.push_back(there.labels.numel());
    append(there_label_, there.labels);
    append_boxes(there_box_, there.boxes, options_.box_format);
    if (there.crowd.defined()) append(there_crowd_, there.crowd);
    there_crowd_.resize(there_label_.size());
    if (there.area.defined()) append(there_area_, there.area);
    for (size_t k = there_area_.size(); k < there_label_.size(); ++k) {
      there_area_.push_back(there_box_[4 * k + 2] * there_box_[4 * k + 3]);
    }
  }
}

std::map<std::string, Tensor> MeanAveragePrecision::results() const {
  std::set<int64_t> classes(found_label_.begin(), found_label_.end());
  classes.insert(there_label_.begin(), there_label_.end());
  // Everything of a class, image by image.
  std::map<int64_t, std::vector<detail::ClassImage>> images;
  size_t f = 0, t = 0;
  for (size_t image = 0; image < found_count_.size(); ++image) {
    std::map<int64_t, detail::ClassImage> parts;
    for (int64_t k = 0; k < found_count_[image]; ++k, ++f) {
      const double* b = &found_box_[4 * f];
      parts[found_label_[f]].found.push_back({{b[0], b[1], b[2], b[3]}, found_score_[f]});
    }
    for (int64_t k = 0; k < there_count_[image]; ++k, ++t) {
      const double* b = &there_box_[4 * t];
      parts[there_label_[t]].there.push_back(
          {{b[0], b[1], b[2], b[3]}, there_area_[t], there_crowd_[t] != 0});
    }
    for (auto& [label, part] : parts) images[label].push_back(std::move(part));
  }
  return detail::summarize(images, options_);
}

Tensor MeanAveragePrecision::compute() const { return results().at("map"); }

}  // namespace kiln::metrics
