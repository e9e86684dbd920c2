// Shapes of the rows of layers, which their gradients have too.
#pragma once

#include "kiln/graph/file/rules.h"

namespace kiln::graph {

// The greatest kernel, stride, padding or dilation of a file.
inline constexpr int64_t kMostOption = int64_t{1} << 30;

// Of what the layer results in. Each throws ValueError for operands that do not fit.
Shape conv2d_shape(const RowCheck& row, const Shape& x, const Shape& weight,
                   const ConvOptions& options);
Shape conv3d_shape(const RowCheck& row, const Shape& x, const Shape& weight,
                   const Conv3dOptions& options);
Shape pool2d_shape(const RowCheck& row, const Shape& x, const PoolOptions& options, bool is_max);
Shape grid_sample_shape(const RowCheck& row, const Shape& x, const Shape& points,
                        const GridOptions& options);
// Queries, keys, values and a mask, which stand at `first` and behind it. Returns the shape of the
// scores.
Shape check_attention(const RowCheck& row, size_t first);
// Log probabilities [T, N, C], targets, lengths and a blank, which stand at `first` and behind it.
void check_ctc(const RowCheck& row, size_t first);
// Scores [N, T, U + 1, C], targets, lengths and a blank, likewise.
void check_rnnt(const RowCheck& row, size_t first);

}  // namespace kiln::graph
