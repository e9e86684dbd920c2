// Writing through indices: x[0] = y, x.index({...}) = y, x.index_put_({...}, y).
#include <concepts>
#include <sstream>

#include <doctest/doctest.h>

#include "kiln/kiln.h"
#include "tests/support/near.h"
#include "tests/support/throws.h"

using namespace kiln;
using kiln::test::message_of;
using kiln::test::near;

namespace {

template <class T, class I>
concept Indexes = requires(const T& x, const I& i) { x[i]; };

}  // namespace

TEST_CASE("assignment to a view writes into its tensor") {
  Tensor x = zeros({2, 3});
  x[0] = ones({3});
  x[1][2] = 5;
  CHECK(near(x, {1, 1, 1, 0, 0, 5}));
  x.index({Slice(), 1}) = tensor({7.0, 8.0});
  x.index({Slice(1, None), Slice(None, None, 2)}) = -1;
  CHECK(near(x, {1, 7, 1, -1, 8, -1}));
  x.select(1, 0) = 0.5;
  x.t()[1] = arange(2);  // converted to f32
  CHECK(near(x, {0.5, 0, 1, 0.5, 1, -1}));
  x[0] = x[1] = 2;
  CHECK(near(x, {2, 2, 2, 2, 2, 2}));
  CHECK_THROWS_AS(x[0] = ones({4}), ShapeError);
}

TEST_CASE("assignment to a name gives it another tensor") {
  Tensor x = zeros({2});
  const Tensor before = x;
  x = ones({2});
  CHECK(near(before, {0, 0}));
  Tensor row = before[0];
  row = ones({});  // a name, though of a view
  CHECK(near(before, {0, 0}));
  static_assert(!std::is_assignable_v<Tensor&, int>);
  x = {};
  CHECK_FALSE(x.defined());
}

TEST_CASE("assignment to a temporary that nobody else sees is refused") {
  const Tensor x = tensor({1.0, 2.0, 3.0});
  const Tensor mask = x.gt(1.5);
  CHECK(message_of<ValueError>([&] { x[mask] = 0; }).find("index_put_") != std::string::npos);
  CHECK(message_of<ValueError>([&] { x.index({tensor({0})}) = ones({1}); }).find("index_put_") !=
        std::string::npos);
  CHECK_THROWS_AS((x + 1) = x, ValueError);
  CHECK(near(x, {1, 2, 3}));
}

TEST_CASE("assignment through a view is recorded") {
  const Tensor w = tensor({2.0, 3.0}, {.requires_grad = true});
  Tensor x = zeros({2, 2});
  x[0] = w * w;
  x[1][1] = 4;
  const Gradients g = (x * tensor({{1.0, 10.0}, {100.0, 1000.0}})).sum().backward();
  CHECK(near(g[w], {4, 60}));
  Tensor leaf = zeros({2}, {.requires_grad = true});
  CHECK_THROWS_AS(leaf[0] = 1, AutodiffError);
}

TEST_CASE("index: tensors, masks and bools among braces") {
  Tensor x = arange(12.0).reshape({3, 4});
  CHECK(near(x.index({tensor({2, 0}), -1}), {11, 3}));
  CHECK(x.index({Slice(), None, Ellipsis}).shape() == Shape{3, 1, 4});
  CHECK(x.index({true}).shape() == Shape{1, 3, 4});
  CHECK(x.index({false}).shape() == Shape{0, 3, 4});
  CHECK(near(x[x.gt(9.5)], {10, 11}));
  CHECK(near(x[Slice(2, None)], {8, 9, 10, 11}));
  CHECK(x[None].shape() == Shape{1, 3, 4});
  x.index_put_({x.gt(9.5)}, -1);
  x.index_put_({0, tensor({1, 1})}, ones({2}), true);
  x.index_put_({Slice(), 0}, tensor({5, 6, 7}));
  CHECK(near(x, {5, 3, 2, 3, 6, 5, 6, 7, 7, 9, -1, -1}));
  Tensor whole = arange(3);
  whole.index_put_({whole.eq(1)}, 9);
  CHECK(whole.dtype() == i64);
  CHECK(near(whole, {0, 9, 2}));
  CHECK_THROWS_AS(x.index({5, 0}), IndexError);
  static_assert(!Indexes<Tensor, bool> && Indexes<Tensor, int> && Indexes<Tensor, Tensor>);
}

TEST_CASE("accessor: elements of a view") {
  Tensor x = arange(6.0).reshape({2, 3});
  auto a = x.t().accessor<float, 2>();
  CHECK(a.size(0) == 3);
  CHECK(a[2][1] == 5);
  a[2][1] = 50;
  CHECK(near(x[1], {3, 4, 50}));
  CHECK_THROWS_AS((x.accessor<float, 1>()), ShapeError);
  CHECK_THROWS_AS((x.accessor<double, 2>()), DTypeError);
}

TEST_CASE("shapes, dtypes and devices print") {
  std::ostringstream out;
  const Tensor x = zeros({2, 3}, i64);
  out << x.sizes() << ' ' << x.dtype() << ' ' << x.device();
  CHECK(out.str() == "[2, 3] int64 cpu");
}

TEST_CASE("item: an integer type that cannot hold the number is an error") {
  CHECK(tensor(2.7).item<int>() == 2);
  CHECK(tensor(-2.7).item<int>() == -2);
  CHECK(tensor(255).item<uint8_t>() == 255);
  CHECK(tensor(-128.5).item<int8_t>() == -128);
  CHECK(tensor(INT64_MIN).item<int64_t>() == INT64_MIN);
  CHECK_THROWS_AS(tensor(256).item<uint8_t>(), ValueError);
  CHECK_THROWS_AS(tensor(-1).item<unsigned>(), ValueError);
  CHECK_THROWS_AS(tensor(-129.0).item<int8_t>(), ValueError);
  CHECK_THROWS_AS(tensor(NAN).item<int64_t>(), ValueError);
  CHECK_THROWS_AS(tensor(0x1p63, f64).item<int64_t>(), ValueError);
  CHECK(message_of<ValueError>([] {
          tensor(1e30).item<int>();
        }).find("-2147483648 to 2147483647") != std::string::npos);
}

TEST_CASE("tensor: a number that the dtype cannot hold is an error") {
  CHECK_THROWS_AS(tensor({300}, u8), ValueError);
  CHECK_THROWS_AS(tensor({1e10}, i32), ValueError);
  CHECK(near(tensor({2.5, 255}, u8), {2, 255}));
}
