// Products of tensors beside matmul, with PyTorch's names. All are differentiable to any order;
// operands of one product have one dtype.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kiln/tensor/tensor.h"

namespace kiln {

Tensor mm(const Tensor& x, const Tensor& y);    // [n, k] x [k, m]
Tensor bmm(const Tensor& x, const Tensor& y);   // [b, n, k] x [b, k, m]
Tensor mv(const Tensor& x, const Tensor& y);    // [n, k] x [k]
Tensor dot(const Tensor& x, const Tensor& y);   // two vectors of one length
Tensor vdot(const Tensor& x, const Tensor& y);  // of conj(x) and y
// The dot products of all vectors along the last dims: [.., k] x [.., k] -> [.., ..].
Tensor inner(const Tensor& x, const Tensor& y);
Tensor outer(const Tensor& x, const Tensor& y);  // [n], [m] -> [n, m]
inline Tensor ger(const Tensor& x, const Tensor& y) { return outer(x, y); }

// beta * input + alpha * (x @ y), input broadcast to the product. With beta 0 the input is not
// read, so that NaN in it does no harm.
Tensor addmm(const Tensor& input, const Tensor& x, const Tensor& y, Scalar beta = 1,
             Scalar alpha = 1);
Tensor addmv(const Tensor& input, const Tensor& x, const Tensor& y, Scalar beta = 1,
             Scalar alpha = 1);
Tensor addr(const Tensor& input, const Tensor& x, const Tensor& y, Scalar beta = 1,
            Scalar alpha = 1);  // the outer product
Tensor baddbmm(const Tensor& input, const Tensor& x, const Tensor& y, Scalar beta = 1,
               Scalar alpha = 1);
Tensor addbmm(const Tensor& input, const Tensor& x, const Tensor& y, Scalar beta = 1,
              Scalar alpha = 1);  // the sum of the batch's products
Tensor chain_matmul(std::span<const Tensor> tensors);

// Einstein's summation: "bij,bjk->bik"; "..." stands for the dims that no letter names, a repeated
// letter takes a diagonal, and without "->" the letters that stand once are the output, in
// alphabetical order. Sizes of 1 broadcast. More than two operands are contracted in the order that
// a greedy search finds cheapest.
Tensor einsum(const std::string& equation, std::span<const Tensor> operands);
inline Tensor einsum(const std::string& equation, std::initializer_list<Tensor> operands) {
  return einsum(equation, std::span<const Tensor>(operands.begin(), operands.size()));
}
// Sums over the last `dims` dims of x with the first of y; or over pairs of dims.
Tensor tensordot(const Tensor& x, const Tensor& y, int64_t dims = 2);
Tensor tensordot(const Tensor& x, const Tensor& y, const Dims& x_dims, const Dims& y_dims);
Tensor kron(const Tensor& x, const Tensor& y);
// The vector product along a dim of size 3 (torch.cross's default is the first such).
Tensor cross(const Tensor& x, const Tensor& y, std::optional<int64_t> dim = {});
Tensor trace(const Tensor& x);  // of a matrix

// Distances between rows, [.., p, m] and [.., r, m] -> [.., p, r], in the p-norm. The gradient of a
// distance of zero is zero. For p = 2 by way of a matrix product where there are more than 25 rows
// (compute_mode "use_mm_for_euclid_dist" and "donot_use_mm_for_euclid_dist" decide otherwise).
Tensor cdist(const Tensor& x, const Tensor& y, double p = 2,
             const std::string& compute_mode = "use_mm_for_euclid_dist_if_necessary");

}  // namespace kiln
