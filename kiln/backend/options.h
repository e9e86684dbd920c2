// Parameters of ops that take more than tensors, dims and numbers.
#pragma once

#include <array>
#include <cstdint>

#include "kiln/backend/optimizer_step.h"
#include "kiln/core/dtype.h"
#include "kiln/core/shape.h"

namespace kiln {

// Height and width of something.
using IntPair = std::array<int64_t, 2>;

// conv2d: x [N, C, H, W], weight [O, C / groups, KH, KW] -> [N, O, OH, OW] with
// OH = (H + 2 padding - dilation (KH - 1) - 1) / stride + 1.
struct ConvOptions {
  IntPair stride = {1, 1};
  IntPair padding = {0, 0};
  IntPair dilation = {1, 1};
  int64_t groups = 1;
};

// Depth, height and width of something.
using IntTriple = std::array<int64_t, 3>;

// conv3d: the same of volumes, x [N, C, D, H, W] and weight [O, C / groups, KD, KH, KW].
struct Conv3dOptions {
  IntTriple stride = {1, 1, 1};
  IntTriple padding = {0, 0, 0};
  IntTriple dilation = {1, 1, 1};
  int64_t groups = 1;

  // Without depth.
  ConvOptions planes() const {
    return {{stride[1], stride[2]}, {padding[1], padding[2]}, {dilation[1], dilation[2]}, groups};
  }
};

// max_pool2d, avg_pool2d: x [N, C, H, W] -> [N, C, OH, OW].
struct PoolOptions {
  IntPair kernel = {2, 2};
  IntPair stride = {2, 2};
  IntPair padding = {0, 0};
  IntPair dilation = {1, 1};  // max pooling only
  bool ceil_mode = false;
  bool count_include_pad = true;  // average pooling only
};

// Output size of a window op along one dim.
int64_t conv_output_size(int64_t in, int64_t kernel, int64_t stride, int64_t padding,
                         int64_t dilation);
int64_t pool_output_size(int64_t in, int64_t kernel, int64_t stride, int64_t padding,
                         int64_t dilation, bool ceil_mode);

// What a linear layer applies to its result. gelu_tanh is the tanh approximation of gelu.
enum class Activation : uint8_t {
  none,
  relu,
  gelu,
  gelu_tanh,
  silu,
  tanh,
  sigmoid,
  relu6,
  hardswish,
  hardsigmoid,
};

// What becomes of elements that are scattered to one place.
enum class ScatterReduction : uint8_t { prod, amax, amin };

// How dims are continued at their ends: mirrored at the outermost element, which is not repeated;
// by repeating it; by beginning anew.
enum class EdgeMode : uint8_t { reflect, replicate, circular };
// Where element i of a dim of size n, in [-before, n + behind), comes from. Mirrors and new
// beginnings are met once.
inline int64_t edge_source(EdgeMode mode, int64_t i, int64_t n) {
  switch (mode) {
    case EdgeMode::reflect:
      i = i < 0 ? -i : i;
      return i < n ? i : 2 * (n - 1) - i;
    case EdgeMode::replicate:
      return i < 0 ? 0 : i < n ? i : n - 1;
    default:
      return (i % n + n) % n;
  }
}

// How images are read at points: what lies outside is 0, the nearest border or a mirror image; at
// a point between elements, the nearest of them, or two or four along each dim. Normalized points
// are in [-1, 1] from end to end, which are the centers of the outermost elements (align_corners)
// or their outer edges; others count elements.
enum class GridOutside : uint8_t { zeros, border, reflection };
enum class GridBetween : uint8_t { nearest, linear, cubic };
struct GridOptions {
  GridOutside outside = GridOutside::zeros;
  GridBetween between = GridBetween::linear;
  bool align_corners = false;
  bool normalized = true;
};

// Rows of logits against class indices.
struct CrossEntropyOptions {
  int64_t ignore_index = -100;   // rows with this target give 0 and no gradient
  double label_smoothing = 0.0;  // in [0, 1]
};

// Symmetric quantization: value = scale * q, q in [-127, 127] or, in 4 bits, in [-7, 7]. A tensor
// is seen as a matrix for it: a row for each index of its first dim (tensors of one dim or none are
// one row).
enum class QuantLevel : uint8_t {
  tensor,   // one scale
  channel,  // one for each row
  block,    // one for each `block` neighbours in a row; the last one of a row may be shorter
};

// What functional::linear does with its input where the weight is quantized.
enum class QuantActivations : uint8_t {
  floating,  // multiplies by it as it is: only the weight loses accuracy
  dynamic,   // quantizes each of its rows first, in 8 bits by its largest magnitude
};

struct QuantScheme {
  // Of QuantLevel::tensor only. 0: take it from the tensor: max |x| / 127 (or 7), as the other
  // levels do for each scale.
  double scale = 0.0;
  int bits = 8;  // or 4: two values in a byte
  QuantLevel level = QuantLevel::tensor;
  int64_t block = 32;
  QuantActivations activations = QuantActivations::floating;

  friend bool operator==(const QuantScheme&, const QuantScheme&) = default;
};

// How the parts of a quantized tensor of some shape are laid out.
struct QuantLayout {
  QuantLayout(const Shape& shape, const QuantScheme& scheme);

  int64_t rows;
  int64_t cols;
  int64_t block;          // values in a row that share a scale
  int64_t blocks;         // of a row
  int64_t limit;          // the largest |q|
  int64_t bytes_per_row;  // of packed values
  // 8 bits: i8, the tensor's shape. 4 bits: u8 [rows, bytes_per_row], the earlier value in the low
  // half, in two's complement; an odd row ends in a half of 0.
  Shape values_shape;
  DType values_dtype;
  // level tensor: f64 []; channel: f32 [rows]; block: f32 [rows, blocks].
  Shape scales_shape;
  DType scales_dtype;

  // The number of the scale of an element.
  int64_t scale_of(int64_t row, int64_t col) const {
    return one_scale ? 0 : row * blocks + col / block;
  }
  bool one_scale;
};

}  // namespace kiln
