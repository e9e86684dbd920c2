// Ops that read or write at indices and masks, beyond Tensor's methods. Indices are integers in
// [0, size) unless said otherwise; IndexError for others. Names that end in _ write into their
// tensor's memory, and touch only what the index names.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kiln/tensor/tensor.h"

namespace kiln {

// ---- Reading

// Elements of the flattened x, in the shape of the index. Negative indices count from the end.
Tensor take(const Tensor& x, const Tensor& index);
// gather() with x and the indices broadcast against each other but in dim; over the flattened
// tensor without one. For what argmax, argsort and the like give.
Tensor take_along_dim(const Tensor& x, const Tensor& indices, std::optional<int64_t> dim = {});
// Slices x[i0, .., ik] for each row i0 .. ik of the indices [.., k + 1].
Tensor gather_nd(const Tensor& x, const Tensor& indices);
// The positions of the nonzero elements as rows [n, rank], or as one tensor for each dim.
Tensor argwhere(const Tensor& x);
std::vector<Tensor> where(const Tensor& condition);

// ---- Writing elements

// x with out[index[i][j]][j] = value (for dim 0), or combined by `reduce`: "add" or "multiply".
Tensor scatter(const Tensor& x, int64_t dim, const Tensor& index, Scalar value,
               const std::string& reduce = "");
Tensor scatter(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& src,
               const std::string& reduce);
Tensor& scatter_(Tensor& x, int64_t dim, const Tensor& index, Scalar value,
                 const std::string& reduce = "");
Tensor& scatter_(Tensor& x, int64_t dim, const Tensor& index, const Tensor& src,
                 const std::string& reduce = "");
Tensor& scatter_add_(Tensor& x, int64_t dim, const Tensor& index, const Tensor& src);
// x where all elements of src that the index sends to one place are reduced to one: "sum", "prod",
// "mean", "amax" or "amin", with x's own element among them unless include_self is false. Places
// that none is sent to keep x's element. Gradients as in PyTorch: exact at zeros for "prod", shared
// evenly among equal extrema.
Tensor scatter_reduce(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& src,
                      const std::string& reduce, bool include_self = true);
Tensor& scatter_reduce_(Tensor& x, int64_t dim, const Tensor& index, const Tensor& src,
                        const std::string& reduce, bool include_self = true);
// Elements of the flattened x replaced, or added to with `accumulate`. Negative indices count from
// the end; the source has as many elements as the index.
Tensor put(const Tensor& x, const Tensor& index, const Tensor& source, bool accumulate = false);
Tensor& put_(Tensor& x, const Tensor& index, const Tensor& source, bool accumulate = false);

// ---- Writing slices: a 1-d index names slices of dim

// The slices replaced by those of source (the last of several stays), by a value, or reduced with
// them ("prod", "mean", "amax", "amin").
Tensor index_copy(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source);
Tensor& index_copy_(Tensor& x, int64_t dim, const Tensor& index, const Tensor& source);
Tensor index_fill(const Tensor& x, int64_t dim, const Tensor& index, Scalar value);
Tensor index_fill(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& value);
Tensor& index_fill_(Tensor& x, int64_t dim, const Tensor& index, Scalar value);
Tensor& index_fill_(Tensor& x, int64_t dim, const Tensor& index, const Tensor& value);
Tensor& index_add_(Tensor& x, int64_t dim, const Tensor& index, const Tensor& source,
                   Scalar alpha = 1);
Tensor index_reduce(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source,
                    const std::string& reduce, bool include_self = true);
Tensor& index_reduce_(Tensor& x, int64_t dim, const Tensor& index, const Tensor& source,
                      const std::string& reduce, bool include_self = true);
// x with the slices x[i0, .., ik] for each row of the indices [.., k + 1] replaced by those of
// values, or combined with them: "sum", "prod", "amax", "amin".
Tensor scatter_nd(const Tensor& x, const Tensor& indices, const Tensor& values,
                  const std::string& reduce = "");

// ---- Masks, which broadcast against x

// A 0-d value where the mask holds; differentiable in both.
Tensor masked_fill(const Tensor& x, const Tensor& mask, const Tensor& value);
// Elements of source, in order, where the mask holds. Throws ShapeError when there are too few.
Tensor masked_scatter(const Tensor& x, const Tensor& mask, const Tensor& source);
Tensor& masked_scatter_(Tensor& x, const Tensor& mask, const Tensor& source);

}  // namespace kiln
