#include "kiln/vision/boxes.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "kiln/core/error.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/ops.h"

namespace kiln::vision {

namespace {

void check_boxes(const char* op, const Tensor& boxes) {
  if (boxes.dim() != 2 || boxes.size(1) != 4) {
    throw_error<ShapeError>(op, ": boxes are [N, 4]; got ", boxes.shape());
  }
  if (!boxes.is_floating_point() || boxes.is_complex()) {
    throw_error<DTypeError>(op, ": boxes are floating point; got ", boxes.dtype());
  }
}

struct Box {
  double x1, y1, x2, y2;
  double area() const { return (x2 - x1) * (y2 - y1); }
};

double overlap(const Box& a, const Box& b) {
  const double width = std::max(0.0, std::min(a.x2, b.x2) - std::max(a.x1, b.x1));
  const double height = std::max(0.0, std::min(a.y2, b.y2) - std::max(a.y1, b.y1));
  const double common = width * height;
  const double both = a.area() + b.area() - common;
  return common > 0 ? common / both : 0.0;
}

Tensor kept(const char* op, const Tensor& boxes, const Tensor& scores, const Tensor& classes,
            const NmsOptions& o) {
  check_boxes(op, boxes);
  const int64_t n = boxes.size(0);
  if (scores.shape() != Shape{n}) {
    throw_error<ShapeError>(op, ": ", n, " boxes need as many scores; got ", scores.shape());
  }
  if (!(o.iou_threshold >= 0 && o.iou_threshold <= 1)) {
    throw_error<ValueError>(op, ": iou_threshold must be from 0 to 1; got ", o.iou_threshold);
  }
  if (o.max_boxes < 0) {
    throw_error<ValueError>(op, ": max_boxes must not be negative; got ", o.max_boxes);
  }
  std::vector<int64_t> kinds;
  if (classes.defined()) {
    if (classes.shape() != Shape{n}) {
      throw_error<ShapeError>(op, ": ", n, " boxes need as many classes; got ", classes.shape());
    }
    if (classes.is_floating_point()) {
      throw_error<DTypeError>(op, ": classes are integers; got ", classes.dtype());
    }
    kinds = classes.to_vector<int64_t>();
  }
  const auto numbers = boxes.detach().to_vector<double>();
  const auto score = scores.detach().to_vector<double>();
  std::vector<size_t> order;
  for (size_t i = 0; i < score.size(); ++i) {
    if (std::isnan(score[i])) throw_error<ValueError>(op, ": score ", i, " is NaN");
    if (score[i] >= o.score_threshold) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return score[a] > score[b]; });
  const auto box = [&](size_t i) {
    return Box{numbers[4 * i], numbers[4 * i + 1], numbers[4 * i + 2], numbers[4 * i + 3]};
  };
  std::vector<int64_t> out;
  for (const size_t i : order) {
    if (static_cast<int64_t>(out.size()) >= o.max_boxes) break;
    const bool beaten = std::any_of(out.begin(), out.end(), [&](int64_t k) {
      const auto other = static_cast<size_t>(k);
      return (kinds.empty() || kinds[i] == kinds[other]) &&
             overlap(box(i), box(other)) > o.iou_threshold;
    });
    if (!beaten) out.push_back(static_cast<int64_t>(i));
  }
  return tensor(out, {i64, boxes.device()});
}

}  // namespace

Tensor box_area(const Tensor& boxes) {
  check_boxes("box_area", boxes);
  return (boxes.select(1, 2) - boxes.select(1, 0)) * (boxes.select(1, 3) - boxes.select(1, 1));
}

Tensor box_iou(const Tensor& a, const Tensor& b) {
  check_boxes("box_iou", a);
  check_boxes("box_iou", b);
  const auto side = [&](int64_t low, int64_t high) {
    const Tensor begin = a.narrow(1, low, 1).maximum(b.select(1, low));
    const Tensor end = a.narrow(1, high, 1).minimum(b.select(1, high));
    return (end - begin).clamp(0);
  };
  const Tensor common = side(0, 2) * side(1, 3);
  const Tensor both = box_area(a).unsqueeze(1) + box_area(b) - common;
  const Tensor none = common.eq(0);
  return (common / both.masked_fill(none, 1)).masked_fill(none, 0);
}

Tensor nms(const Tensor& boxes, const Tensor& scores, const NmsOptions& options) {
  return kept("nms", boxes, scores, {}, options);
}

Tensor batched_nms(const Tensor& boxes, const Tensor& scores, const Tensor& classes,
                   const NmsOptions& options) {
  if (!classes.defined()) throw_error<ValueError>("batched_nms: classes are undefined");
  return kept("batched_nms", boxes, scores, classes, options);
}

}  // namespace kiln::vision
