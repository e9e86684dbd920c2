// Sparse tensors: their parts, conversions and checks.
#include <functional>

#include "kiln/kiln.h"
#include "kiln/tensor/linalg/csr.h"
#include "tests/support/tensor_check.h"
#include "tests/support/throws.h"

namespace kiln::test {
namespace {

// [[0, 0, 3], [9, 0, 5]] with the 9 in two parts.
SparseTensor sparse_sample(Device device, DType dtype = f64) {
  const Tensor at = tensor({{0, 1, 1, 1}, {2, 0, 2, 0}}, {i64, device});
  return sparse_coo_tensor(at, tensor({3.0, 4.0, 5.0, 5.0}, {dtype, device}), Shape{2, 3});
}

TEST_CASE("sparse: parts of a COO tensor, and what coalesce makes of them") {
  on_devices([](Device device) {
    const SparseTensor x = sparse_sample(device);
    CHECK(x.layout() == SparseLayout::coo);
    CHECK(x.shape() == Shape{2, 3});
    CHECK(x.sparse_dim() == 2);
    CHECK(x.dense_dim() == 0);
    CHECK(x.nnz() == 4);
    CHECK_FALSE(x.is_coalesced());
    CHECK_THROWS_AS(x.indices(), ValueError);
    CHECK_THROWS_AS(x.values(), ValueError);
    CHECK_THROWS_AS(x.crow_indices(), TypeError);
    CHECK(mismatch(x.to_dense(), {2, 3}, {0, 0, 3, 9, 0, 5}) == "");
    const SparseTensor y = x.coalesce();
    CHECK(y.is_coalesced());
    CHECK(mismatch(y.indices(), {2, 3}, {0, 1, 1, 2, 0, 2}) == "");
    CHECK(mismatch(y.values(), {3}, {3, 9, 5}) == "");
    CHECK(mismatch(y.to_dense(), {2, 3}, {0, 0, 3, 9, 0, 5}) == "");
    CHECK(mismatch(x.t().to_dense(), {3, 2}, {0, 9, 0, 0, 3, 5}) == "");
  });
}

TEST_CASE("sparse: rows of a CSR tensor") {
  on_devices([](Device device) {
    const SparseTensor x = sparse_sample(device).to_sparse_csr();
    CHECK(x.layout() == SparseLayout::csr);
    CHECK(mismatch(x.crow_indices(), {3}, {0, 1, 3}) == "");
    CHECK(mismatch(x.col_indices(), {3}, {2, 0, 2}) == "");
    CHECK(mismatch(x.values(), {3}, {3, 9, 5}) == "");
    CHECK(mismatch(x.to_dense(), {2, 3}, {0, 0, 3, 9, 0, 5}) == "");
    CHECK(mismatch(x.t().to_dense(), {3, 2}, {0, 9, 0, 0, 3, 5}) == "");
    CHECK(x.t().layout() == SparseLayout::csr);
    CHECK_THROWS_AS(x.indices(), TypeError);
    const SparseTensor again = x.to_sparse_coo();
    CHECK(again.is_coalesced());
    CHECK(mismatch(again.indices(), {2, 3}, {0, 1, 1, 2, 0, 2}) == "");
  });
}

TEST_CASE("sparse: of dense tensors of every dtype, and back") {
  on_devices(kAllTypes, [](Device device, DType dtype) {
    const Tensor x = tensor({{0, 1, 0}, {0, 0, 0}, {1, 0, 1}}, {dtype, device});
    const SparseTensor all = to_sparse(x);
    CHECK(all.nnz() == 3);
    CHECK(all.is_coalesced());
    CHECK(all.dtype() == dtype);
    CHECK(all.to_dense().equal(x));
    const SparseTensor rows = to_sparse(x, 1);
    CHECK(rows.nnz() == 2);
    CHECK(rows.dense_dim() == 1);
    CHECK(rows.values().shape() == Shape{2, 3});
    CHECK(rows.to_dense().equal(x));
    CHECK(to_sparse_csr(x).to_dense().equal(x));
    CHECK(all.to(f64).to_dense().equal(x.to(f64)));
  });
}

TEST_CASE("sparse: no entries, no dims, empty shapes") {
  const SparseTensor none = sparse_coo_tensor(Shape{2, 0, 3});
  CHECK(none.nnz() == 0);
  CHECK(none.to_dense().shape() == Shape{2, 0, 3});
  CHECK(sparse_coo_tensor(Shape{2, 3}).to_sparse_csr().to_dense().equal(zeros({2, 3})));
  CHECK(to_sparse(zeros({0, 4})).to_sparse_csr().crow_indices().shape() == Shape{1});
  const SparseTensor scalar = sparse_coo_tensor(zeros({0, 2}, i64), tensor({1.0, 2.0}));
  CHECK(scalar.shape() == Shape{});
  CHECK(scalar.to_dense().item() == 3.0);
  CHECK(to_sparse(tensor(5.0)).to_dense().item() == 5.0);
}

TEST_CASE("sparse: sizes that indices need, dense dims, transposes") {
  const SparseTensor x = sparse_coo_tensor(tensor({{0, 2}}), tensor({{{1.0, 2.0}}, {{3.0, 4.0}}}));
  CHECK(x.shape() == Shape{3, 1, 2});
  CHECK(x.dense_dim() == 2);
  CHECK(x.transpose(1, 2).to_dense().equal(x.to_dense().transpose(1, 2)));
  CHECK_THROWS_AS(x.transpose(0, 1), ValueError);
  CHECK_THROWS_AS(x.t(), ShapeError);
  const SparseTensor y = to_sparse(tensor({{{1.0, 0.0}, {0.0, 2.0}}, {{0.0, 3.0}, {4.0, 0.0}}}), 2);
  CHECK(y.permute({1, 0, 2}).to_dense().equal(y.to_dense().permute({1, 0, 2})));
  CHECK_THROWS_AS(y.permute({2, 0, 1}), ValueError);
  CHECK_THROWS_AS(y.permute({0, 1}), ShapeError);
  for (const int dim : {0, 1, 2, 3, -1}) {
    CHECK(y.unsqueeze(dim).to_dense().equal(y.to_dense().unsqueeze(dim)));
  }
  CHECK_THROWS_AS(y.unsqueeze(4), IndexError);
  CHECK(x.transpose(0, 0).to_dense().equal(x.to_dense()));
}

TEST_CASE("sparse: what is wrong with parts is said") {
  const Tensor at = tensor({{0, 1}, {2, 0}});
  const Tensor v = tensor({3.0, 4.0});
  CHECK_THROWS_AS(sparse_coo_tensor(at, tensor({1.0})), ShapeError);
  CHECK_THROWS_AS(sparse_coo_tensor(tensor({0, 1}), v), ShapeError);
  CHECK_THROWS_AS(sparse_coo_tensor(at.to(f32), v), DTypeError);
  CHECK_THROWS_AS(sparse_coo_tensor(at, v, Shape{2, 2}), IndexError);
  CHECK_THROWS_AS(sparse_coo_tensor(tensor({{-1, 0}}), v, Shape{2}), IndexError);
  CHECK_THROWS_AS(sparse_coo_tensor(at, v, Shape{2, 3, 1}), ShapeError);
  CHECK_THROWS_AS(sparse_coo_tensor(at, v, Shape{-2, 3}), ShapeError);
  CHECK_THROWS_AS(sparse_coo_tensor(at.flip({1}), v, Shape{2, 3}, true), ValueError);
  CHECK_THROWS_AS(sparse_coo_tensor(Tensor(), v), ValueError);
  const int64_t huge = int64_t{1} << 40;
  CHECK_THROWS_AS(sparse_coo_tensor(at, v, Shape{huge, huge}), ShapeError);
  CHECK_THROWS_AS(sparse_coo_tensor(tensor({{std::numeric_limits<int64_t>::max()}}), tensor({1.0})),
                  IndexError);
  CHECK_THROWS_AS(SparseTensor().to_dense(), ValueError);
  const auto csr = [](const Tensor& crow, const Tensor& col, const Tensor& values,
                      std::optional<Shape> shape = {}) {
    return sparse_csr_tensor(crow, col, values, shape);
  };
  CHECK(csr(tensor({0, 1, 2}), tensor({2, 0}), v).shape() == Shape{2, 3});
  CHECK_THROWS_AS(csr(tensor({0, 2, 1}), tensor({2, 0}), v), IndexError);
  CHECK_THROWS_AS(csr(tensor({0, 3, 2}), tensor({2, 0}), v), IndexError);
  CHECK_THROWS_AS(csr(tensor({1, 1, 2}), tensor({2, 0}), v), IndexError);
  CHECK_THROWS_AS(csr(tensor({0, 1, 2}), tensor({2, 0}), v, Shape{2, 2}), IndexError);
  CHECK_THROWS_AS(csr(tensor({0, 1, 2}), tensor({-1, 0}), v), IndexError);
  CHECK_THROWS_AS(csr(tensor({0, 1, 2}), tensor({2}), v), ShapeError);
  CHECK_THROWS_AS(csr(tensor({0, 1, 2}), tensor({2, 0}), v, Shape{3, 3}), ShapeError);
  CHECK_THROWS_AS(csr(zeros({0}, i64), zeros({0}, i64), zeros({0})), ShapeError);
  CHECK_THROWS_AS(to_sparse_csr(ones({2})), ShapeError);
  CHECK_THROWS_AS(to_sparse(ones({2}), 2), ValueError);
}

TEST_CASE("sparse: text") {
  const SparseTensor x = sparse_sample({}, f32);
  CHECK(to_string(x) ==
        "tensor(indices=tensor([[0, 1, 1, 1],\n"
        "                       [2, 0, 2, 0]]),\n"
        "       values=tensor([3., 4., 5., 5.]),\n"
        "       size=(2, 3), nnz=4, layout=kiln.sparse_coo)");
  CHECK(to_string(x.to_sparse_csr()) ==
        "tensor(crow_indices=tensor([0, 1, 3]),\n"
        "       col_indices=tensor([2, 0, 2]),\n"
        "       values=tensor([3., 9., 5.]), size=(2, 3), nnz=3, layout=kiln.sparse_csr)");
}

}  // namespace
}  // namespace kiln::test
