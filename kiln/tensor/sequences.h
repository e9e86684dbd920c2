// Tensors of regular numbers: sequences, triangles, grids, combinations.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "kiln/tensor/creation.h"

namespace kiln {

// A 0-d tensor, of default_dtype() whatever the number's kind (tensor() follows the kind).
Tensor scalar_tensor(Scalar value, TensorOptions options = {});
// Memory that is not initialized, laid out by strides in elements. Throws ShapeError when there is
// not one stride for each size, ValueError for negative ones.
Tensor empty_strided(const Shape& shape, const Strides& stride, TensorOptions options = {});
// Ones on the diagonal of an n x m matrix.
Tensor eye(int64_t n, int64_t m, TensorOptions options = {});
// start, start + step, ... up to and including end (arange stops before it). default_dtype().
Tensor range(double start, double end, double step = 1.0, TensorOptions options = {});
// base^x for the x of linspace(start, end, steps).
Tensor logspace(double start, double end, int64_t steps, double base = 10.0,
                TensorOptions options = {});

// x [.., n, m] with zeros above (tril) or below (triu) the given diagonal: 0 the main one, positive
// to the right. Throws ShapeError for fewer than two dims.
Tensor tril(const Tensor& x, int64_t diagonal = 0);
Tensor triu(const Tensor& x, int64_t diagonal = 0);
// The rows and columns of that part of a row x col matrix, in row-major order: [2, n], i64.
Tensor tril_indices(int64_t row, int64_t col, int64_t offset = 0, TensorOptions options = {});
Tensor triu_indices(int64_t row, int64_t col, int64_t offset = 0, TensorOptions options = {});

// Vectors (or 0-d tensors) as grids of one common shape, the i-th of which varies along dim i; with
// indexing "xy" the first two dims trade places. Views. Throws ValueError for an empty list,
// another indexing, or dtypes that differ, ShapeError for more than one dim.
std::vector<Tensor> meshgrid(std::span<const Tensor> tensors, std::string_view indexing = "ij");
// Every combination of one value of each vector: [n1 n2 .., k]; for one vector, itself.
Tensor cartesian_prod(std::span<const Tensor> tensors);
// Every choice of r values of a vector, in its order: [count, r].
Tensor combinations(const Tensor& x, int64_t r = 2, bool with_replacement = false);
// Powers of a vector as columns: x^(n-1), .., x, 1, or 1, x, .., x^(n-1) when increasing. n: the
// length of x unless given.
Tensor vander(const Tensor& x, std::optional<int64_t> n = {}, bool increasing = false);

}  // namespace kiln
