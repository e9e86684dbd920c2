// The shapes of results from those of operands, for ops whose result has neither the shape of an
// operand, nor that of a broadcast, nor that of a reduction. Operands have been validated.
#pragma once

#include <span>

#include "kiln/backend/line_map.h"
#include "kiln/backend/meta/meta_tensor.h"

namespace kiln::infer {

// x with size n in a dim.
Shape resized(Shape x, int dim, int64_t n);
// The shape of the parts of complex numbers, and back.
Shape with_parts(Shape x);
Shape without_parts(Shape x);

// Products (infer_products.cpp). matmul: [.., n, k] x [.., k, m]; linear: [.., in] x [out, in].
Shape matmul(const Shape& a, const Shape& b);
Shape linear(Shape x, int64_t out);

// Windows over planes (infer_windows.cpp).
Shape conv2d(const Shape& x, const Shape& weight, const ConvOptions& options);
Shape conv3d(const Shape& x, const Shape& weight, const Conv3dOptions& options);
Shape pool2d(const Shape& x, const PoolOptions& options);
// With `sign` times so many elements more in each dim; with mapped dims.
Shape padded(Shape x, const Shape& before, const Shape& behind, int64_t sign);
Shape resampled(Shape x, const DimMaps& maps);
// The channels of [N, C, ..], and what layer_norm keeps of each row and of all rows.
Shape channels(const Shape& x);
Shape without_last(const Shape& x, int n);  // the last n dims with size 1
Shape last(const Shape& x, int n);          // the last n dims alone

// Indexing (infer_index.cpp).
Shape cat(std::span<const MetaHandle> parts, int dim);

// The dtype of statistics of values of a float dtype: f32 for 16-bit floats.
DType statistics(DType dtype);

}  // namespace kiln::infer
