// Rearrangements: views where the memory allows, copies otherwise.
#pragma once

#include <vector>

#include "kiln/tensor/tensor.h"

namespace kiln {

// Dims moved from the positions in `source` to those in `destination`; the others keep their order.
Tensor movedim(const Tensor& x, const Dims& source, const Dims& destination);
inline Tensor moveaxis(const Tensor& x, const Dims& source, const Dims& destination) {
  return movedim(x, source, destination);
}
inline Tensor swapaxes(const Tensor& x, int64_t dim0, int64_t dim1) {
  return x.transpose(dim0, dim1);
}
inline Tensor swapdims(const Tensor& x, int64_t dim0, int64_t dim1) {
  return x.transpose(dim0, dim1);
}

// One dim as several; one of the sizes may be -1.
Tensor unflatten(const Tensor& x, int64_t dim, const Shape& sizes);
Tensor ravel(const Tensor& x);
// Without those of the dims that have size 1.
Tensor squeeze(const Tensor& x, const Dims& dims);
inline Tensor view_as(const Tensor& x, const Tensor& other) { return x.view(other.shape()); }
inline Tensor reshape_as(const Tensor& x, const Tensor& other) { return x.reshape(other.shape()); }
inline Tensor expand_as(const Tensor& x, const Tensor& other) { return x.expand(other.shape()); }
// At least this many dims, with new ones of size 1 where NumPy puts them.
Tensor atleast_1d(const Tensor& x);
Tensor atleast_2d(const Tensor& x);
Tensor atleast_3d(const Tensor& x);
// Views of one shape.
std::vector<Tensor> broadcast_tensors(const std::vector<Tensor>& tensors);

// Copies of x side by side: times[i] along dim i. There may be more numbers than dims, not fewer;
// tile takes missing ones as 1.
Tensor repeat(const Tensor& x, const Shape& times);
Tensor tile(const Tensor& x, const Shape& times);
// Each slice of dim `times` times, or times[i] times for slice i; over the flattened tensor without
// a dim.
Tensor repeat_interleave(const Tensor& x, int64_t times, std::optional<int64_t> dim = {});
Tensor repeat_interleave(const Tensor& x, const Tensor& times, std::optional<int64_t> dim = {});
// i, times[i] times, for every i.
Tensor repeat_interleave(const Tensor& times);

// Elements moved by `shifts` along `dims`, those that leave at one end coming in at the other; over
// the flattened tensor without dims.
Tensor roll(const Tensor& x, const Shape& shifts, const Dims& dims = {});
Tensor fliplr(const Tensor& x);
Tensor flipud(const Tensor& x);
// Turned by 90 degrees k times, from the first of the two dims towards the second.
Tensor rot90(const Tensor& x, int64_t k = 1, const Dims& dims = {0, 1});

}  // namespace kiln
