#include "kiln/metrics/detection_match.h"

#include <algorithm>
#include <limits>

#include "kiln/tensor/creation.h"

namespace kiln::metrics::detail {

namespace {

struct AreaRange {
  double low, high;
  bool holds(double area) const { return area >= low && area <= high; }
};
// All, small, medium, large: in pixels.
constexpr std::array<AreaRange, 4> kRanges{
    {{0, 1e10}, {0, 32.0 * 32}, {32.0 * 32, 96.0 * 96}, {96.0 * 96, 1e10}}};

// A crowd's share is of the found box alone.
double overlap(const CornerSize& a, const CornerSize& b, bool crowd) {
  const double width = std::min(a[0] + a[2], b[0] + b[2]) - std::max(a[0], b[0]);
  const double height = std::min(a[1] + a[3], b[1] + b[3]) - std::max(a[1], b[1]);
  if (width <= 0 || height <= 0) return 0;
  const double common = width * height, area = a[2] * a[3];
  return common / (crowd ? area : area + b[2] * b[3] - common);
}

// How a found box came out at one threshold.
struct Verdict {
  double score;
  bool matched;
  bool ignored;
};

// One class in one image: found boxes from the highest score on, each takes the best free box that
// is there. Boxes out of range, and crowds, are taken last and count nothing.
void match(const ClassImage& image, const AreaRange& range, double threshold, size_t most,
           std::vector<Verdict>& out) {
  std::vector<const ThereBox*> there;
  const auto ignored = [&range](const ThereBox& t) { return t.crowd || !range.holds(t.area); };
  for (const ThereBox& t : image.there) there.push_back(&t);
  std::stable_partition(there.begin(), there.end(),
                        [&](const ThereBox* t) { return !ignored(*t); });
  std::vector<const FoundBox*> found;
  for (const FoundBox& f : image.found) found.push_back(&f);
  std::stable_sort(found.begin(), found.end(),
                   [](const FoundBox* a, const FoundBox* b) { return a->score > b->score; });
  if (found.size() > most) found.resize(most);

  std::vector<bool> taken(there.size());
  for (const FoundBox* f : found) {
    double best = std::min(threshold, 1 - 1e-10);
    size_t match = there.size();
    for (size_t t = 0; t < there.size(); ++t) {
      if (taken[t] && !there[t]->crowd) continue;
      if (match < there.size() && !ignored(*there[match]) && ignored(*there[t])) break;
      const double share = overlap(f->box, there[t]->box, there[t]->crowd);
      if (share < best) continue;
      best = share;
      match = t;
    }
    const bool matched = match < there.size();
    if (matched) taken[match] = true;
    out.push_back({f->score, matched,
                   matched ? ignored(*there[match]) : !range.holds(f->box[2] * f->box[3])});
  }
}

// Precision, a mean over recalls, and the largest recall; -1 where nothing is there.
struct Curve {
  double precision = -1;
  double recall = -1;
};

Curve curve_of(const std::vector<ClassImage>& images, const AreaRange& range, double threshold,
               size_t most, const std::vector<double>& recalls) {
  std::vector<Verdict> verdicts;
  double there = 0;
  for (const ClassImage& image : images) {
    match(image, range, threshold, most, verdicts);
    for (const ThereBox& t : image.there) there += !t.crowd && range.holds(t.area) ? 1 : 0;
  }
  if (there == 0) return {};
  std::stable_sort(verdicts.begin(), verdicts.end(),
                   [](const Verdict& a, const Verdict& b) { return a.score > b.score; });
  std::vector<double> precision, recall;
  double right = 0, wrong = 0;
  for (const Verdict& v : verdicts) {
    if (v.ignored) continue;
    (v.matched ? right : wrong) += 1;
    recall.push_back(right / there);
    precision.push_back(right / (right + wrong));
  }
  for (size_t i = precision.size(); i-- > 1;) {
    precision[i - 1] = std::max(precision[i - 1], precision[i]);
  }
  double sum = 0;
  for (const double r : recalls) {
    const auto at = std::lower_bound(recall.begin(), recall.end(), r) - recall.begin();
    if (at < static_cast<std::ptrdiff_t>(precision.size()))
      sum += precision[static_cast<size_t>(at)];
  }
  return {sum / static_cast<double>(recalls.size()), recall.empty() ? 0 : recall.back()};
}

// The mean of those that are there.
class MeanOfSome {
 public:
  void add(double value) {
    if (value <= -1) return;
    sum_ += value;
    ++count_;
  }
  double value() const { return count_ == 0 ? -1 : sum_ / count_; }

 private:
  double sum_ = 0;
  int count_ = 0;
};

}  // namespace

std::map<std::string, Tensor> summarize(const std::map<int64_t, std::vector<ClassImage>>& images,
                                        const DetectionOptions& o) {
  const std::array<const char*, 4> sizes{"", "_small", "_medium", "_large"};
  std::map<std::string, MeanOfSome> means;
  for (const char* name : {"map", "map_50", "map_75", "map_small", "map_medium", "map_large",
                           "mar_small", "mar_medium", "mar_large"}) {
    means[name];
  }
  for (const int64_t most : o.max_detections) means[concat("mar_", most)];
  std::vector<double> precision_by_class, recall_by_class;
  std::vector<int64_t> classes;
  for (const auto& [label, parts] : images) {
    MeanOfSome precision, recall;
    for (const double threshold : o.iou_thresholds) {
      for (size_t size = 0; size < sizes.size(); ++size) {
        const Curve c = curve_of(parts, kRanges[size], threshold,
                                 static_cast<size_t>(o.max_detections[2]), o.rec_thresholds);
        means[concat("map", sizes[size])].add(c.precision);
        if (size > 0) {
          means[concat("mar", sizes[size])].add(c.recall);
          continue;
        }
        means[concat("mar_", o.max_detections[2])].add(c.recall);
        precision.add(c.precision);
        recall.add(c.recall);
        if (threshold == 0.5) means["map_50"].add(c.precision);
        if (threshold == 0.75) means["map_75"].add(c.precision);
      }
      for (const size_t k : {size_t{0}, size_t{1}}) {
        const int64_t most = o.max_detections[k];
        if (most == o.max_detections[k + 1]) continue;
        const Curve c =
            curve_of(parts, kRanges[0], threshold, static_cast<size_t>(most), o.rec_thresholds);
        means[concat("mar_", most)].add(c.recall);
      }
    }
    classes.push_back(label);
    precision_by_class.push_back(precision.value());
    recall_by_class.push_back(recall.value());
  }
  std::map<std::string, Tensor> out;
  for (const auto& [name, mean] : means) out[name] = value_tensor(mean.value());
  out["map_per_class"] = value_tensor(precision_by_class);
  out[concat("mar_", o.max_detections[2], "_per_class")] = value_tensor(recall_by_class);
  out["classes"] = tensor(classes, {i64});
  return out;
}

}  // namespace kiln::metrics::detail
