// Boxes [N, 4] with the corners (x1, y1, x2, y2), and those of them that do not overlap.
#pragma once

#include <limits>
#include <optional>

#include "kiln/tensor/tensor.h"

namespace kiln::vision {

// (x2 - x1) (y2 - y1) -> [N].
Tensor box_area(const Tensor& boxes);
// What each of N boxes has in common with each of M, over what both cover -> [N, M]; 0 where both
// are empty. Differentiable.
Tensor box_iou(const Tensor& a, const Tensor& b);

struct NmsOptions {
  double iou_threshold = 0.5;  // boxes that have more than this in common with a better one go
  double score_threshold = -std::numeric_limits<double>::infinity();  // and those that score less
  int64_t max_boxes = std::numeric_limits<int64_t>::max();
};

// Non-maximum suppression: the places of the boxes that stay, those with the highest scores [N]
// first (of equal ones the first) -> [K] i64. Throws ShapeError, DTypeError unless floats,
// ValueError for scores that are NaN, a threshold outside [0, 1], a negative number of boxes.
Tensor nms(const Tensor& boxes, const Tensor& scores, const NmsOptions& options = {});
// The same where only boxes of equal classes [N] (integers) stand against each other.
Tensor batched_nms(const Tensor& boxes, const Tensor& scores, const Tensor& classes,
                   const NmsOptions& options = {});

}  // namespace kiln::vision
