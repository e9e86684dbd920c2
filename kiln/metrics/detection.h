// Mean average precision of detected boxes, by COCO's protocol.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "kiln/metrics/metric.h"

namespace kiln::metrics {

struct DetectionOptions {
  std::string box_format = "xyxy";          // or xywh (corner and size), cxcywh (middle and size)
  std::vector<double> iou_thresholds = {};  // 0.5 to 0.95 in steps of 0.05
  std::vector<double> rec_thresholds = {};  // 0 to 1 in steps of 0.01
  std::array<int64_t, 3> max_detections = {1, 10, 100};
};

// What was found in an image, or what is there: boxes [N, 4], labels [N] (integers), scores [N] of
// what was found. crowd [N] (optional): a group of objects, whose boxes may be matched many times
// and count nothing. area [N] (optional): instead of the box's, for sizes.
struct Detections {
  Tensor boxes;
  Tensor labels;
  Tensor scores = {};
  Tensor crowd = {};
  Tensor area = {};
};

class MeanAveragePrecision final : public Cloned<MeanAveragePrecision> {
 public:
  // Throws ValueError.
  explicit MeanAveragePrecision(DetectionOptions options = {});

  // One of each for each image. Throws ValueError, ShapeError, DTypeError; nothing is kept then.
  void update(const std::vector<Detections>& preds, const std::vector<Detections>& target);
  // The mean over thresholds and classes: "map" of results().
  Tensor compute() const override;
  // map, map_50, map_75, map_small, map_medium, map_large; mar_1, mar_10, mar_100 (by
  // max_detections), mar_small, mar_medium, mar_large; map_per_class, mar_100_per_class; classes.
  // -1 where there is nothing to find.
  std::map<std::string, Tensor> results() const;
  std::string description() const override;

 private:
  void visit_state(StateVisitor& visitor) override;
  void check_state() const override;

  DetectionOptions options_;
  // Image by image, one after the other; boxes as corner and size.
  std::vector<int64_t> found_count_, found_label_, there_count_, there_label_, there_crowd_;
  std::vector<double> found_box_, found_score_, there_box_, there_area_;
};

}  // namespace kiln::metrics
