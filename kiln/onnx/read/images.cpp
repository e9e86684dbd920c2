// Sampling of images at points, boxes, and columns of windows.
#include <algorithm>
#include <cmath>

#include "kiln/onnx/read/window.h"
#include "kiln/tensor/nn/convolution.h"
#include "kiln/tensor/nn/folding.h"
#include "kiln/tensor/nn/interpolate.h"
#include "kiln/vision/boxes.h"

namespace kiln::onnx {

namespace {

void grid_sample_of(Call& c) {
  std::string mode = c.s("mode", "linear");
  if (mode == "linear") mode = "bilinear";
  if (mode == "cubic") mode = "bicubic";
  c.out(functional::grid_sample(c.in(0), c.in(1), mode, c.s("padding_mode", "zeros"),
                                c.i("align_corners", 0) != 0));
}
void affine_grid_of(Call& c) {
  c.out(functional::affine_grid(c.in(0), Shape(c.integers(1)), c.i("align_corners", 0) != 0));
}

void deform_conv(Call& c) {
  const Tensor weight = c.in(1);
  const Window w = window_of(c, c.in(0), behind_channels(weight));
  if (w.dims != 2) c.refuse(concat("a deformable convolution over ", w.dims, " dims"));
  c.out(functional::deform_conv2d(padded(c.in(0), w, 0.0), c.in(2), weight, c.maybe(3),
                                  Sizes(w.stride), 0, Sizes(w.dilation), c.maybe(4)));
}

// The transposed of taking windows apart: into the padded image, of which the pads are cut off.
void col2im(Call& c) {
  const std::vector<int64_t> image = c.integers(1), block = c.integers(2);
  if (image.size() != 2 || block.size() != 2) {
    c.refuse(concat("columns of ", image.size(), " dims; Kiln has 2"));
  }
  const auto strides = c.ints("strides"), dilations = c.ints("dilations"), pads = c.ints("pads");
  Shape size, kernel, stride, dilation;
  for (int d = 0; d < 2; ++d) {
    const auto at = static_cast<size_t>(d);
    if (image[at] < 0 || image[at] > (1 << 28)) c.fail(concat("got the size ", image[at]));
    size.push_back(image[at] + option(c, pads, d, 0) +
                   option(c, pads, pads.empty() ? d : d + 2, 0));
    kernel.push_back(block[at]);
    stride.push_back(option(c, strides, d, 1));
    dilation.push_back(option(c, dilations, d, 1));
  }
  Tensor y =
      functional::fold(c.in(0), Sizes(size), Sizes(kernel), Sizes(dilation), 0, Sizes(stride));
  for (int d = 0; d < 2; ++d) {
    y = y.narrow(d + 2, option(c, pads, d, 0), image[static_cast<size_t>(d)]);
  }
  c.out(y);
}

// The corners of boxes: of any two opposite ones, or of a center, a width and a height.
Tensor corners(Call& c, const Tensor& boxes) {
  const Tensor a = boxes.narrow(1, 0, 2), b = boxes.narrow(1, 2, 2);
  if (c.i("center_point_box", 0) == 0) return cat({a.minimum(b), a.maximum(b)}, 1);
  const Tensor half = b.div(2.0);
  return cat({a.sub(half), a.add(half)}, 1);
}
void non_max_suppression(Call& c) {
  const Tensor boxes = c.in(0), scores = c.in(1);
  if (boxes.dim() != 3 || boxes.size(2) != 4 || scores.dim() != 3 ||
      scores.size(0) != boxes.size(0) || scores.size(2) != boxes.size(1)) {
    c.fail(concat("expected boxes [B, N, 4] and scores [B, C, N]; got ", boxes.shape(), " and ",
                  scores.shape()));
  }
  vision::NmsOptions options;
  options.max_boxes = c.has(2) ? c.integers(2).at(0) : 0;
  options.iou_threshold = c.has(3) ? c.number(3) : 0.0;
  if (c.has(4)) options.score_threshold = c.number(4);
  std::vector<Tensor> found;
  for (int64_t b = 0; b < boxes.size(0); ++b) {
    const Tensor those = corners(c, boxes.select(0, b));
    for (int64_t k = 0; k < scores.size(1); ++k) {
      const Tensor kept = vision::nms(those, scores.select(0, b).select(0, k), options);
      found.push_back(stack({full_like(kept, b), full_like(kept, k), kept}, 1));
    }
  }
  c.out(found.empty() ? kiln::zeros({0, 3}, {.dtype = DType::i64}) : cat(found, 0));
}

// To the sizes: what is too long loses both ends, what is too short gets zeros at both.
void center_crop_pad(Call& c) {
  Tensor x = c.in(0);
  const std::vector<int64_t> sizes = c.integers(1);
  std::vector<int64_t> axes = c.ints("axes");
  if (axes.empty()) {
    for (int64_t d = 0; d < x.dim(); ++d) axes.push_back(d);
  }
  if (axes.size() != sizes.size()) c.fail("expected a size for each axis");
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t dim = c.axis(axes[i], x.dim()), n = x.size(dim), size = sizes[i];
    if (size < 0 || size > (1 << 28)) c.fail(concat("got the size ", size));
    if (size <= n) {
      x = x.narrow(dim, (n - size) / 2, size);
    } else {
      Shape ends = Shape::filled(2 * static_cast<int>(x.dim() - dim), 0);
      ends[ends.rank() - 2] = (size - n) / 2;
      ends[ends.rank() - 1] = size - n - (size - n) / 2;
      x = functional::pad(x, ends, "constant", 0.0);
    }
  }
  c.out(x);
}

// Places in [0, n) to read a line at, with shares of the elements before and after each; outside
// of it nothing is read.
struct LineReads {
  std::vector<int64_t> low, high;
  std::vector<double> low_share, high_share;
};
LineReads line_reads(double start, double bin, int64_t bins, int64_t samples, int64_t n) {
  LineReads out;
  for (int64_t b = 0; b < bins; ++b) {
    for (int64_t i = 0; i < samples; ++i) {
      double p = start + static_cast<double>(b) * bin +
                 (static_cast<double>(i) + 0.5) * bin / static_cast<double>(samples);
      const bool inside = p >= -1.0 && p <= static_cast<double>(n);
      p = inside ? std::max(p, 0.0) : 0.0;
      const int64_t low = std::min(static_cast<int64_t>(p), n - 1);
      const double rest = low == n - 1 ? 0.0 : p - static_cast<double>(low);
      out.low.push_back(low);
      out.high.push_back(std::min(low + 1, n - 1));
      out.low_share.push_back(inside ? 1 - rest : 0);
      out.high_share.push_back(inside ? rest : 0);
    }
  }
  return out;
}

// Of each region the means or maxima of bins, which are read at a grid of places (Mask R-CNN, He et
// al., 2017). The maximum is over the four shares of the reads, as ONNX has it.
void roi_align(Call& c) {
  const Tensor x = c.in(0);
  const std::vector<double> regions = c.numbers(1);
  const std::vector<int64_t> batch = c.integers(2);
  const int64_t rows = c.i("output_height", 1), cols = c.i("output_width", 1);
  const int64_t ratio = c.i("sampling_ratio", 0);
  const std::string mode = c.s("mode", "avg");
  const double scale = c.f("spatial_scale", 1.0);
  const bool half =
      c.version() >= 16 && c.s("coordinate_transformation_mode", "half_pixel") == "half_pixel";
  if (x.dim() != 4 || x.numel() == 0 || c.in(1).dim() != 2 || c.in(1).size(1) != 4 ||
      regions.size() != 4 * batch.size() || rows < 1 || cols < 1 || rows > (1 << 16) ||
      cols > (1 << 16) || (mode != "avg" && mode != "max")) {
    c.fail("expected [N, C, H, W], regions [R, 4] and the batch of each");
  }
  const int64_t h = x.size(2), w = x.size(3), channels = x.size(1);
  std::vector<Tensor> out;
  for (size_t r = 0; r < batch.size(); ++r) {
    if (batch[r] < 0 || batch[r] >= x.size(0)) c.fail(concat("a region of batch ", batch[r]));
    const auto edge = [&](size_t i) { return regions[4 * r + i] * scale - (half ? 0.5 : 0.0); };
    double width = edge(2) - edge(0), height = edge(3) - edge(1);
    if (!half) {
      width = std::max(width, 1.0);
      height = std::max(height, 1.0);
    }
    const auto samples = [&](double size, int64_t bins) {
      const double n =
          ratio > 0 ? static_cast<double>(ratio) : std::ceil(size / static_cast<double>(bins));
      if (!(n >= 0 && n <= 1 << 12)) c.fail(concat("a region of size ", size));
      return static_cast<int64_t>(n);
    };
    const int64_t down = samples(height, rows), right = samples(width, cols);
    const int64_t most = (int64_t{1} << 28) / channels;
    if (down == 0 || right == 0) {
      out.push_back(kiln::zeros({channels, rows, cols}, {.dtype = x.dtype()}));
      continue;
    }
    if (rows * down > most / (cols * right)) c.fail("a region with too many places");
    const LineReads y_reads =
        line_reads(edge(1), height / static_cast<double>(rows), rows, down, h);
    const LineReads x_reads =
        line_reads(edge(0), width / static_cast<double>(cols), cols, right, w);
    const Tensor image = x.select(0, batch[r]);
    const auto places = [&](const std::vector<int64_t>& at) {
      return Tensor(TensorData(at, {static_cast<int64_t>(at.size())}));
    };
    const auto shares = [&](const std::vector<double>& by, const Shape& shape) {
      return Tensor(TensorData(by, {static_cast<int64_t>(by.size())}).cast(x.dtype()))
          .reshape(shape);
    };
    Tensor all;
    for (const bool low_row : {true, false}) {
      for (const bool low_col : {true, false}) {
        const Tensor part =
            image.index_select(1, places(low_row ? y_reads.low : y_reads.high))
                .index_select(2, places(low_col ? x_reads.low : x_reads.high))
                .mul(shares(low_row ? y_reads.low_share : y_reads.high_share, {rows * down, 1}))
                .mul(shares(low_col ? x_reads.low_share : x_reads.high_share, {cols * right}));
        all = !all.defined() ? part : mode == "avg" ? all.add(part) : all.maximum(part);
      }
    }
    const Tensor bins = all.reshape({channels, rows, down, cols, right});
    out.push_back(mode == "avg" ? bins.mean({2, 4}) : bins.amax({2, 4}));
  }
  c.out(out.empty() ? kiln::zeros({0, channels, rows, cols}, {.dtype = x.dtype()}) : stack(out, 0));
}

constexpr Operator kImagesOperators[] = {
    {"GridSample", grid_sample_of},
    {"AffineGrid", affine_grid_of},
    {"DeformConv", deform_conv},
    {"Col2Im", col2im},
    {"NonMaxSuppression", non_max_suppression},
    {"CenterCropPad", center_crop_pad},
    {"RoiAlign", roi_align},
};

}  // namespace

std::span<const Operator> image_operators() { return kImagesOperators; }

}  // namespace kiln::onnx
