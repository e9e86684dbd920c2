// Morphology: the largest and smallest values around each pixel (Serra, 1982).
#pragma once

#include <optional>

#include "kiln/vision/border.h"

namespace kiln::vision {

// A kernel [rows, columns] of bools: "rect", "cross" (through the anchor's place, the middle), or
// "ellipse" (inscribed). Throws ValueError for another name and for sizes outside [1, 4096].
Tensor structuring_element(const std::string& shape, int64_t rows, int64_t columns);

struct MorphologyOptions {
  int64_t iterations = 1;
  // The kernel's place that lies on the pixel; the middle unless given.
  std::optional<int64_t> anchor_row = {};
  std::optional<int64_t> anchor_column = {};
  // What lies outside; without one nothing does, so that edges neither grow nor shrink anything.
  std::optional<Border> border = {};
};

// x [.., H, W] of any real dtype or bool, kernel [rows, columns] of which the places count that are
// not 0: out[y, x] is the largest (dilate) or smallest (erode) of in[y + r - anchor_row, x + c -
// anchor_column]. Gradients go to the pixels taken, shared where several are equal. Throws
// ShapeError, and ValueError for a kernel of zeros only, an anchor outside it, and fewer than 0
// iterations.
Tensor dilate(const Tensor& x, const Tensor& kernel, const MorphologyOptions& options = {});
Tensor erode(const Tensor& x, const Tensor& kernel, const MorphologyOptions& options = {});

// Opening: erode, then dilate. Closing: dilate, then erode. Both turn the kernel around the second
// time, so that nothing moves.
Tensor opening(const Tensor& x, const Tensor& kernel, const MorphologyOptions& options = {});
Tensor closing(const Tensor& x, const Tensor& kernel, const MorphologyOptions& options = {});
// dilate - erode; x - opening; closing - x. Of bools: where the two differ.
Tensor morphological_gradient(const Tensor& x, const Tensor& kernel,
                              const MorphologyOptions& options = {});
Tensor top_hat(const Tensor& x, const Tensor& kernel, const MorphologyOptions& options = {});
Tensor black_hat(const Tensor& x, const Tensor& kernel, const MorphologyOptions& options = {});

}  // namespace kiln::vision
