// SparseTensor: a tensor of which only some elements are stored.
//
//   SparseTensor a = sparse_coo_tensor(tensor({{0, 1, 1}, {2, 0, 2}}), tensor({3., 4., 5.}),
//   Shape{2, 3}); Tensor y = sparse::mm(a, x);      // [2, n] for x [3, n]
//
// Two layouts. COO holds the indices of each stored element: indices [sparse_dim, nnz] (i64) and
// values [nnz, ...]. The dims of values behind the first are the dense dims: shape is
// sparse_dim sizes, and then those of the values. An index may occur several times. Its values then
// add up; coalesce() does it. CSR is for matrices. It holds where each row begins: crow_indices
// [rows + 1], col_indices [nnz] and values [nnz].
//
// A handle, as Tensor is: a copy is another name for the same parts. What it holds does not change.
// Gradients go to the values, and through them to what the values were made of.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "kiln/tensor/creation.h"
#include "kiln/tensor/tensor.h"

namespace kiln {

enum class SparseLayout : uint8_t { coo, csr };

// Where the elements of a sparse tensor stand, apart from their values.
struct SparsePattern {
  SparseLayout layout = SparseLayout::coo;
  Shape shape;
  // coo: [sparse_dim, nnz], in crow nothing. csr: the columns [nnz], and where rows begin [m + 1].
  Tensor indices;
  Tensor crow;
  // coo: whether indices are distinct and in the order of a row-major tensor. csr: true.
  bool coalesced = false;
};

class SparseTensor {
 public:
  // Undefined: every function throws ValueError.
  SparseTensor() = default;
  // Trusts its arguments. The functions below check theirs.
  SparseTensor(SparsePattern pattern, Tensor values)
      : pattern_(std::move(pattern)), values_(std::move(values)) {}

  bool defined() const { return values_.defined(); }
  SparseLayout layout() const { return pattern_.layout; }
  const SparsePattern& pattern() const { return pattern_; }
  const Shape& shape() const { return pattern_.shape; }
  int64_t size(int64_t dim) const;
  int dim() const { return pattern_.shape.rank(); }
  int64_t numel() const { return pattern_.shape.numel(); }
  DType dtype() const { return values_.dtype(); }
  Device device() const { return values_.device(); }
  // How many dims the indices name, and how many the values have behind the first.
  int sparse_dim() const;
  int dense_dim() const { return dim() - sparse_dim(); }
  // How many elements (or slices of dense dims) are stored.
  int64_t nnz() const { return values_.size(0); }
  bool is_coalesced() const { return pattern_.coalesced; }

  // The parts. indices() and values() of COO need a coalesced tensor: ValueError otherwise.
  // _indices() and _values() give them as they are. The others throw TypeError for another layout.
  const Tensor& indices() const;
  const Tensor& values() const;
  const Tensor& _indices() const;
  const Tensor& _values() const { return values_; }
  const Tensor& crow_indices() const;
  const Tensor& col_indices() const;

  bool requires_grad() const { return values_.requires_grad(); }
  SparseTensor& requires_grad_(bool value = true);
  // The accumulated gradient, with the same pattern; undefined where there is none.
  SparseTensor grad() const;
  SparseTensor detach() const { return with_values(values_.detach()); }
  SparseTensor clone() const;
  // Other values [nnz, ...] at the same places. Throws ShapeError unless there is one for each.
  SparseTensor with_values(Tensor values) const;

  SparseTensor to(DType dtype) const;
  SparseTensor to(Device device) const;
  // Every element. Differentiable.
  Tensor to_dense() const;
  // The other layout; CSR is for matrices without dense dims (ShapeError otherwise).
  SparseTensor to_sparse_coo() const;
  SparseTensor to_sparse_csr() const;
  // COO with distinct indices in row-major order: values of one index are added up. CSR as it is.
  SparseTensor coalesce() const;

  // Two dims trade places: both sparse or both dense (ValueError otherwise). Of CSR the result is
  // CSR. The same for the two dims of a matrix.
  SparseTensor transpose(int64_t dim0, int64_t dim1) const;
  SparseTensor t() const;
  // Dims in another order: sparse ones among themselves, dense ones among themselves (ValueError
  // otherwise).
  SparseTensor permute(const Dims& dims) const;
  // With a new dim of size 1: sparse before the last sparse dim or behind it, dense behind others.
  // Gives COO.
  SparseTensor unsqueeze(int64_t dim) const;

 private:
  SparsePattern pattern_;
  Tensor values_;
};

// Values at indices: indices [sparse_dim, nnz] of integers, values [nnz, ...]. Without a shape it
// is the smallest that holds all. Throws ShapeError, DTypeError, DeviceError, and IndexError for an
// index outside of the shape. `is_coalesced` says that the indices are distinct and in row-major
// order; ValueError when they are not.
SparseTensor sparse_coo_tensor(const Tensor& indices, const Tensor& values,
                               std::optional<Shape> shape = {}, bool is_coalesced = false);
// No stored elements.
SparseTensor sparse_coo_tensor(const Shape& shape, TensorOptions options = {});
// A matrix in compressed rows. Without a shape it has as many columns as the largest index needs.
// Throws ShapeError, DTypeError, DeviceError, and IndexError where crow does not rise from 0 to nnz
// or a column is outside of the shape.
SparseTensor sparse_csr_tensor(const Tensor& crow_indices, const Tensor& col_indices,
                               const Tensor& values, std::optional<Shape> shape = {});

// What is not zero in x, coalesced. sparse_dim: how many of the first dims are sparse, all by
// default; a slice of the others is stored where any of it is not zero. Differentiable.
SparseTensor to_sparse(const Tensor& x, std::optional<int64_t> sparse_dim = {});
// Of a matrix.
SparseTensor to_sparse_csr(const Tensor& x);
// The elements of x at the places of a sparse tensor, with its pattern. Differentiable.
SparseTensor sparse_mask(const Tensor& x, const SparseTensor& mask);

// Text like PyTorch's.
std::string to_string(const SparseTensor& x);
std::ostream& operator<<(std::ostream& out, const SparseTensor& x);

}  // namespace kiln
