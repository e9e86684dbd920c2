// The ops that write at indices: in place, in memory that others see, and what they refuse. Values
// and gradients stand in the op cases.
#include "kiln/tensor/index/scatter.h"

#include "kiln/tensor/index/advanced_index.h"
#include "tests/support/tensor_check.h"
#include "tests/support/throws.h"

using namespace kiln;
using namespace kiln::test;

TEST_CASE("scatter_, index_add_, index_copy_, ..: write into the tensor's own memory") {
  on_devices([](Device device) {
    Tensor x = zeros({2, 3}, {f32, device});
    const Tensor row = x.select(0, 1);
    const Tensor index = tensor({1, 1}, {{}, device});
    index_add_(x, 0, index, ones({2, 3}, {f32, device}), 2);
    CHECK(mismatch(row, {3}, {4, 4, 4}) == "");
    Tensor view = x.select(1, 2);
    index_fill_(view, 0, tensor({0}, {{}, device}), 7);
    scatter_add_(view, 0, index, ones({2}, {f32, device}));
    CHECK(mismatch(x, {2, 3}, {0, 0, 7, 4, 4, 6}) == "");
    scatter_reduce_(x, 1, tensor({{0, 0}, {2, 2}}, {{}, device}),
                    tensor({{3.0, 5.0}, {1.0, 2.0}}, {f32, device}), "amax", false);
    CHECK(mismatch(x, {2, 3}, {5, 0, 7, 4, 4, 2}) == "");
    Tensor counts = zeros({3}, {bool_, device});
    index_add_(counts, 0, index, ones({2}, {bool_, device}));
    CHECK(mismatch(counts, {3}, {0, 1, 0}) == "");
  });
}

TEST_CASE("scatter and the like: errors leave the tensor as it was") {
  Tensor x = ones({2, 3});
  const Tensor index = tensor({{0, 3, 0}});
  CHECK_THROWS_AS(scatter_add_(x, 1, index, ones({1, 3})), IndexError);
  CHECK_THROWS_AS(scatter_reduce_(x, 1, index, ones({1, 3}), "prod"), IndexError);
  CHECK_THROWS_AS(index_copy_(x, 1, tensor({0, -1}), ones({2, 2})), IndexError);
  CHECK_THROWS_AS(put_(x, tensor({-7}), ones({1})), IndexError);
  CHECK(mismatch(x, {2, 3}, Doubles(6, 1.0)) == "");
  CHECK_THROWS_AS(scatter_reduce(x, 1, index, ones({1, 3}), "max"), ValueError);
  CHECK_THROWS_AS(scatter(x, 1, index, ones({1, 3}), "sum"), ValueError);
  CHECK_THROWS_AS(index_reduce(x, 1, tensor({0}), ones({2, 1}), "sum"), ValueError);
  CHECK_THROWS_AS(index_copy(x, 1, tensor({0, 1}), ones({2, 3})), ShapeError);
  CHECK_THROWS_AS(index_copy(x, 1, tensor({0.5}), ones({2, 1})), DTypeError);
  CHECK_THROWS_AS(scatter_add_(x, 1, tensor({{0}}), ones({1, 1}, {f64})), DTypeError);
  CHECK_THROWS_AS(masked_scatter(x, ones({3}, {bool_}), ones({5})), ShapeError);
  CHECK_THROWS_AS(take(x, tensor({6})), IndexError);
  CHECK_THROWS_AS(gather_nd(x, tensor({{0, 0, 0}})), ShapeError);
  CHECK(message_of<ShapeError>([&] {
          put(x, tensor({0, 1}), ones({3}));
        }) == "put: expected an element for each index; got [3] for index [2]");
  Tensor leaf = ones({3}).requires_grad_();
  CHECK_THROWS_AS(index_add_(leaf, 0, tensor({0}), ones({1})), AutodiffError);
}

TEST_CASE("in place on a tracked tensor: the write is recorded") {
  Tensor leaf = ones({3}).requires_grad_();
  Tensor src = full({2}, 3.0).requires_grad_();
  Tensor x = leaf * 2.0;
  index_copy_(x, 0, tensor({2, 0}), src);
  const auto grads = (x * x).sum().backward();
  CHECK(mismatch(*leaf.grad(grads), {3}, {0, 8, 0}) == "");
  CHECK(mismatch(*src.grad(grads), {2}, {6, 6}) == "");
}

TEST_CASE("nonzero, where, masked_select: empty and 0-d") {
  on_devices([](Device device) {
    CHECK(nonzero(zeros({2, 3}, {f32, device})).shape() == Shape{0, 2});
    CHECK(nonzero(ones({}, {f32, device})).shape() == Shape{1, 0});
    CHECK(nonzero(ones({0, 3}, {f32, device})).shape() == Shape{0, 2});
    CHECK(where(ones({}, {bool_, device})).size() == 1);
    CHECK(masked_select(ones({0}, {f32, device}), ones({0}, {bool_, device})).numel() == 0);
  });
}
