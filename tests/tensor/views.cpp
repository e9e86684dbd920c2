// as_strided, diagonal, unfold and the ops that write into parts: what they share and refuse. Their
// values and gradients stand in the op cases.
#include "kiln/tensor/shape/views.h"

#include "kiln/tensor/nn/padding.h"
#include "tests/support/tensor_check.h"
#include "tests/support/throws.h"

using namespace kiln;
using namespace kiln::test;

TEST_CASE("views: what is written through them arrives, also in views of views") {
  on_devices([](Device device) {
    const Tensor x = zeros({3, 4}, {f32, device});
    diagonal(x).fill_(1);
    unfold(x, 1, 2, 2).select(1, 1).select(0, 2).fill_(2);
    as_strided(x.select(0, 2), {1}, {1}, 11).fill_(3);
    CHECK(mismatch(x, {3, 4}, {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 2, 3}) == "");
    const Tensor t = x.transpose(0, 1);
    CHECK(mismatch(diagonal(t, -1), {3}, {0, 0, 3}) == "");
  });
}

TEST_CASE("as_strided: stays within the memory, and knows which of it has a gradient") {
  const Tensor x = arange(6, {f32});
  CHECK_THROWS_AS(as_strided(x, {4}, {2}), ValueError);
  CHECK_THROWS_AS(as_strided(x, {2}, {-1}), ValueError);
  CHECK_THROWS_AS(as_strided(x, {2}, {1}, -1), ValueError);
  CHECK_THROWS_AS(as_strided(x, {INT64_MAX / 2, 3}, {1, 1}), Error);
  CHECK_THROWS_AS(as_strided(x, {2}, {INT64_MAX}), ValueError);
  CHECK_THROWS_AS(as_strided(x, {2}, {1, 1}), ShapeError);
  CHECK(as_strided(x, {0, 2}, {1, 1}, 6).numel() == 0);
  Tensor leaf = arange(6, {f32}).requires_grad_();
  const Tensor part = leaf.narrow(0, 2, 2);
  CHECK_THROWS_AS(as_strided(part, {2}, {1}, 0), AutodiffError);
  const auto grads = as_strided(part, {2, 2}, {0, 1}, 2).sum().backward();
  CHECK(mismatch(*leaf.grad(grads), {6}, {0, 0, 2, 2, 0, 0}) == "");
}

TEST_CASE("diagonal, unfold, diag, parts: errors") {
  const Tensor x = zeros({3, 4});
  CHECK_THROWS_AS(diagonal(x, 0, 1, 1), ShapeError);
  CHECK_THROWS_AS(diagonal(zeros({3})), Error);
  CHECK_THROWS_AS(unfold(x, 1, 5, 1), ValueError);
  CHECK_THROWS_AS(unfold(x, 1, 2, 0), ValueError);
  CHECK_THROWS_AS(diag(zeros({2, 2, 2})), ShapeError);
  CHECK_THROWS_AS(select_scatter(x, zeros({3}), 0, 0), ShapeError);
  CHECK_THROWS_AS(slice_scatter(x, zeros({3, 4}), 1, 0, 2), ShapeError);
  CHECK(message_of<ShapeError>([&] { diagonal_scatter(x, zeros({4})); }) ==
        "diagonal_scatter: the source does not fit; got [4]; expected [3]");
}

TEST_CASE("pad: widths and modes that make no sense") {
  using functional::pad;
  const Tensor x = zeros({2, 3});
  CHECK_THROWS_AS(pad(x, {1}), ShapeError);
  CHECK_THROWS_AS(pad(x, {1, 1, 1, 1, 1, 1}), ShapeError);
  CHECK_THROWS_AS(pad(x, {1, 1}, "mirror"), ValueError);
  CHECK_THROWS_AS(pad(x, {3, 0}, "reflect"), ValueError);
  CHECK_THROWS_AS(pad(x, {4, 0}, "circular"), ValueError);
  CHECK_THROWS_AS(pad(zeros({2, 0}), {1, 0}, "replicate"), ValueError);
  CHECK_THROWS_AS(pad(x, {-2, -2}), ShapeError);
  CHECK_THROWS_AS(pad(x, {INT64_MAX - 2, 0}), ShapeError);
}
