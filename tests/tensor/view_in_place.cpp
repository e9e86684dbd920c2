#include "kiln/tensor/shape/view_in_place.h"

#include <doctest/doctest.h>

#include "kiln/kiln.h"
#include "kiln/tensor/interop.h"

namespace kiln {
namespace {

Tensor leaf(const Shape& shape) {
  Tensor x = arange(static_cast<double>(shape.numel()), {f64}).reshape(shape).clone();
  x.requires_grad_();
  return x;
}

TEST_CASE("views in place: every name sees the new shape, and the memory stays") {
  Tensor x = arange(6).reshape({2, 3}).clone();
  const Tensor other_name = x;
  const Tensor row = x.select(0, 1);
  const void* memory = interop::data(x);
  CHECK(t_(x).is_same(x));
  CHECK(other_name.shape() == Shape{3, 2});
  CHECK(interop::data(x) == memory);
  x.index({0, 1}).fill_(9);
  CHECK(row.to_vector<int64_t>() == std::vector<int64_t>{9, 4, 5});
  unsqueeze_(x, 0);
  CHECK(x.shape() == Shape{1, 3, 2});
  transpose_(x, 0, 2);
  CHECK(x.shape() == Shape{2, 3, 1});
  squeeze_(x, {-1});
  squeeze_(x);
  CHECK(x.to_vector<int64_t>() == std::vector<int64_t>{0, 1, 2, 9, 4, 5});
}

TEST_CASE("views in place: a history goes with them, also under no_grad") {
  const Tensor w = leaf({2, 3});
  Tensor y = w * w;
  t_(y);
  {
    NoGradGuard guard;
    unsqueeze_(y, 0);
  }
  const Tensor weight = arange(6, {f64}).reshape({1, 3, 2});
  const Tensor g = *w.grad((y * weight).sum().backward());
  CHECK(g.equal(w.detach() * 2 * weight.squeeze(0).t()));
}

TEST_CASE("views in place: writes through other views still reach the history") {
  const Tensor w = leaf({2, 3});
  const Tensor v = leaf({3});
  Tensor y = w * 2;
  Tensor row = y.select(0, 0);
  t_(y);
  row.copy_(v * 3);
  const Tensor weight = arange(6, {f64}).reshape({3, 2});
  const Gradients grads = (y * weight).sum().backward();
  CHECK(w.grad(grads)->to_vector<double>() == std::vector<double>{0, 0, 0, 2, 6, 10});
  CHECK(v.grad(grads)->to_vector<double>() == std::vector<double>{0, 6, 12});
  // And a view that becomes another one of the same tensor.
  Tensor z = w * 2;
  Tensor part = z.slice(0, 1, 2);
  squeeze_(part);
  part.mul_(v);
  const Gradients of_z = z.sum().backward();
  CHECK(v.grad(of_z)->to_vector<double>() == std::vector<double>{6, 8, 10});
  CHECK(w.grad(of_z)->to_vector<double>() == std::vector<double>{2, 2, 2, 0, 2, 4});
}

TEST_CASE("views in place: what a leaf may do") {
  Tensor w = leaf({2, 3});
  CHECK_THROWS_AS(t_(w), AutodiffError);
  {
    NoGradGuard guard;
    t_(w);
  }
  CHECK(w.is_leaf());
  CHECK(w.requires_grad());
  CHECK(w.grad((w * 2).sum().backward())->shape() == Shape{3, 2});
  Tensor plain = ones({2, 3});
  CHECK_THROWS_AS(transpose_(plain, 0, 2), IndexError);
  CHECK(plain.shape() == Shape{2, 3});
}

TEST_CASE("detach_: forgets its history; a view cannot") {
  const Tensor w = leaf({3});
  Tensor y = w * 2;
  CHECK(detach_(y).is_leaf());
  CHECK_FALSE(y.requires_grad());
  CHECK((y * w).sum().requires_grad());
  Tensor z = w * 2;
  Tensor part = z.narrow(0, 0, 1);
  CHECK_THROWS_AS(detach_(part), AutodiffError);
  Tensor v = leaf({3});
  detach_(v);
  CHECK_FALSE(v.requires_grad());
}

TEST_CASE("gradient and renorm refuse what does not fit") {
  const Tensor x = ones({3, 4});
  CHECK_THROWS_AS(gradient(x, 1.0, {}, 3), ValueError);
  CHECK_THROWS_AS(gradient(ones({1, 4})), ShapeError);
  CHECK_THROWS_AS(gradient(x, std::vector<double>{1, 2, 3}), ValueError);
  CHECK_THROWS_AS(gradient(x, std::vector<Tensor>{ones({3})}, {1}), ShapeError);
  CHECK_THROWS_AS(gradient(tensor(1.0)), ShapeError);
  CHECK_THROWS_AS(renorm(x, 0, 0, 1), ValueError);
  CHECK_THROWS_AS(renorm(x, 2, 0, -1), ValueError);
  CHECK_THROWS_AS(renorm(ones({3}), 2, 0, 1), ShapeError);
  CHECK_THROWS_AS(renorm(x.to(i64), 2, 0, 1), DTypeError);
  CHECK(renorm(zeros({2, 3}), 2, 0, 0).equal(zeros({2, 3})));
  CHECK_THROWS_AS(special::legendre_polynomial_p(x, 1e9), ValueError);
  CHECK(special::hermite_polynomial_h(zeros({0}), 3).shape() == Shape{0});
}

}  // namespace
}  // namespace kiln
