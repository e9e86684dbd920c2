// COCO's matching of boxes and what it adds up to, on plain numbers.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "kiln/metrics/detection.h"

namespace kiln::metrics::detail {

using CornerSize = std::array<double, 4>;  // x, y, width, height

struct FoundBox {
  CornerSize box;
  double score;
};
struct ThereBox {
  CornerSize box;
  double area;
  bool crowd;
};
// What of one class was found and is in one image.
struct ClassImage {
  std::vector<FoundBox> found;
  std::vector<ThereBox> there;
};

// What MeanAveragePrecision::results() gives, from the images of each class.
std::map<std::string, Tensor> summarize(const std::map<int64_t, std::vector<ClassImage>>& images,
                                        const DetectionOptions& options);

}  // namespace kiln::metrics::detail
