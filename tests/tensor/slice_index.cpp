// Basic indexing: select, slice, narrow, index, split, chunk, unbind. All of it views.
#include <limits>

#include "tests/support/tensor_check.h"

using namespace kiln;
using namespace kiln::test;

namespace {

Tensor counted_up(const Shape& shape, DType dtype, Device device) {
  const Tensor x = arange(shape.numel(), {i64, device}).reshape(shape);
  return dtype == bool_ ? (x % 2).to(bool_) : x.to(dtype);
}

Doubles cast_to(DType dtype, Doubles values) {
  if (dtype == bool_) {
    for (double& v : values) v = static_cast<int>(v) % 2;
  }
  return values;
}

}  // namespace

TEST_CASE("select, for every dtype") {
  on_devices(kAllTypes, [](Device device, DType dtype) {
    const Tensor x = counted_up({2, 3, 2}, dtype, device);
    CHECK(mismatch(x[1], {3, 2}, cast_to(dtype, {6, 7, 8, 9, 10, 11})) == "");
    CHECK(mismatch(x[-2], {3, 2}, cast_to(dtype, {0, 1, 2, 3, 4, 5})) == "");
    CHECK(mismatch(x.select(1, 2), {2, 2}, cast_to(dtype, {4, 5, 10, 11})) == "");
    CHECK(mismatch(x.select(-1, -1), {2, 3}, cast_to(dtype, {1, 3, 5, 7, 9, 11})) == "");
    CHECK(mismatch(x[1][2][0], {}, cast_to(dtype, {10})) == "");
    CHECK(mismatch(scattered(x).select(1, 1), {2, 2}, cast_to(dtype, {2, 3, 8, 9})) == "");
    CHECK(zeros({3, 0}, {dtype, device})[1].shape() == Shape{0});
  });
  const Tensor x = zeros({2, 3});
  CHECK_THROWS_AS(x[2], IndexError);
  CHECK_THROWS_AS(x[-3], IndexError);
  CHECK_THROWS_AS(x.select(2, 0), IndexError);
  CHECK_THROWS_AS(x[std::numeric_limits<int64_t>::min()], IndexError);
  CHECK_THROWS_AS(tensor(1.0)[0], IndexError);
  CHECK_THROWS_AS(zeros({0})[0], IndexError);
}

TEST_CASE("slice") {
  on_devices(kAllTypes, [](Device device, DType dtype) {
    const Tensor x = counted_up({7}, dtype, device);
    const auto none = std::nullopt;
    CHECK(mismatch(x.slice(0, 2, 5), {3}, cast_to(dtype, {2, 3, 4})) == "");
    CHECK(mismatch(x.slice(0), {7}, cast_to(dtype, {0, 1, 2, 3, 4, 5, 6})) == "");
    CHECK(mismatch(x.slice(0, -3), {3}, cast_to(dtype, {4, 5, 6})) == "");
    CHECK(mismatch(x.slice(0, none, -5), {2}, cast_to(dtype, {0, 1})) == "");
    CHECK(mismatch(x.slice(0, 1, none, 3), {2}, cast_to(dtype, {1, 4})) == "");
    CHECK(mismatch(x.slice(0, none, none, 2).slice(0, 1, none, 2), {2}, cast_to(dtype, {2, 6})) ==
          "");
    CHECK(mismatch(x.slice(0, 5, 2), {0}, {}) == "");
    CHECK(mismatch(x.slice(0, -100, 100), {7}, cast_to(dtype, {0, 1, 2, 3, 4, 5, 6})) == "");
    CHECK(mismatch(x.slice(0, 3, 4, std::numeric_limits<int64_t>::max()), {1},
                   cast_to(dtype, {3})) == "");
    CHECK(mismatch(x.slice(0, 9), {0}, {}) == "");
    const Tensor m = counted_up({3, 4}, dtype, device);
    CHECK(mismatch(m.slice(1, 1, 3), {3, 2}, cast_to(dtype, {1, 2, 5, 6, 9, 10})) == "");
    CHECK(mismatch(m.slice(-2, 1), {2, 4}, cast_to(dtype, {4, 5, 6, 7, 8, 9, 10, 11})) == "");
    CHECK(mismatch(scattered(m).slice(1, 0, none, 3), {3, 2},
                   cast_to(dtype, {0, 3, 4, 7, 8, 11})) == "");
    CHECK(mismatch(m.narrow(1, 2, 2), {3, 2}, cast_to(dtype, {2, 3, 6, 7, 10, 11})) == "");
    CHECK(mismatch(m.narrow(0, -1, 1), {1, 4}, cast_to(dtype, {8, 9, 10, 11})) == "");
    CHECK(m.narrow(0, 3, 0).shape() == Shape{0, 4});
  });
  const Tensor x = zeros({4});
  CHECK_THROWS_AS(x.slice(0, 0, 4, 0), ValueError);
  CHECK_THROWS_AS(x.slice(0, 0, 4, -1), ValueError);
  CHECK_THROWS_AS(x.slice(1), IndexError);
  CHECK_THROWS_AS(tensor(1.0).slice(0), IndexError);
  CHECK_THROWS_AS(x.narrow(0, 2, 3), IndexError);
  CHECK_THROWS_AS(x.narrow(0, 5, 0), IndexError);
  CHECK_THROWS_AS(x.narrow(0, -5, 1), IndexError);
  CHECK_THROWS_AS(x.narrow(0, 0, -1), IndexError);
  CHECK_THROWS_AS(x.narrow(0, 1, std::numeric_limits<int64_t>::max()), IndexError);
}

TEST_CASE("index with integers, slices, None and Ellipsis") {
  on_devices(kAllTypes, [](Device device, DType dtype) {
    const Tensor x = counted_up({2, 3, 4}, dtype, device);
    CHECK(mismatch(x.index({1, 2, 3}), {}, cast_to(dtype, {23})) == "");
    CHECK(mismatch(x.index({0, Slice(1, 3), -1}), {2}, cast_to(dtype, {7, 11})) == "");
    CHECK(mismatch(x.index({Ellipsis, 0}), {2, 3}, cast_to(dtype, {0, 4, 8, 12, 16, 20})) == "");
    CHECK(mismatch(x.index({Ellipsis, 1, Slice()}), {2, 4},
                   cast_to(dtype, {4, 5, 6, 7, 16, 17, 18, 19})) == "");
    CHECK(x.index({None, 0, None, Slice(), Ellipsis, None}).shape() == Shape{1, 1, 3, 4, 1});
    CHECK(x.index({}).shape() == x.shape());
    CHECK(x.index({Ellipsis}).shape() == x.shape());
    CHECK(x.index({0, 0, 0, Ellipsis}).shape() == Shape{});
    CHECK(mismatch(x.index({Slice(), Slice({}, {}, 2), Slice(3, {})}), {2, 2, 1},
                   cast_to(dtype, {3, 11, 15, 23})) == "");
    CHECK(x[0][0][0].index({None}).shape() == Shape{1});
  });
  const Tensor x = zeros({2, 3});
  CHECK_THROWS_AS(x.index({0, 0, 0}), IndexError);
  CHECK_THROWS_AS(x.index({Ellipsis, Ellipsis}), IndexError);
  CHECK_THROWS_AS(x.index({2}), IndexError);
}

TEST_CASE("split, chunk, unbind") {
  on_devices(kAllTypes, [](Device device, DType dtype) {
    const Tensor x = counted_up({5, 2}, dtype, device);
    const std::vector<Tensor> parts = x.split(2);
    REQUIRE(parts.size() == 3);
    CHECK(mismatch(parts[1], {2, 2}, cast_to(dtype, {4, 5, 6, 7})) == "");
    CHECK(mismatch(parts[2], {1, 2}, cast_to(dtype, {8, 9})) == "");
    CHECK(x.split(10).size() == 1);
    CHECK(x.split(std::numeric_limits<int64_t>::max()).size() == 1);
    CHECK(x.split(1, -1).size() == 2);
    const std::vector<Tensor> chunks = x.chunk(3);
    REQUIRE(chunks.size() == 3);
    CHECK(chunks[2].shape() == Shape{1, 2});
    CHECK(x.chunk(4).size() == 3);  // of 2, 2 and 1 rows, as in PyTorch
    CHECK(x.chunk(std::numeric_limits<int64_t>::max()).size() == 5);
    const std::vector<Tensor> rows = x.unbind();
    REQUIRE(rows.size() == 5);
    CHECK(mismatch(rows[3], {2}, cast_to(dtype, {6, 7})) == "");
    CHECK(mismatch(x.unbind(-1)[1], {5}, cast_to(dtype, {1, 3, 5, 7, 9})) == "");
    const Tensor nothing = zeros({0, 2}, {dtype, device});
    CHECK(nothing.split(3).size() == 1);
    CHECK(nothing.chunk(2)[0].shape() == Shape{0, 2});
    CHECK(nothing.unbind().empty());
  });
  const Tensor x = zeros({4});
  CHECK_THROWS_AS(x.split(0), ValueError);
  CHECK_THROWS_AS(x.split(-1), ValueError);
  CHECK_THROWS_AS(x.chunk(0), ValueError);
  CHECK_THROWS_AS(x.split(1, 1), IndexError);
  CHECK_THROWS_AS(tensor(1.0).split(1), ShapeError);
  CHECK_THROWS_AS(tensor(1.0).unbind(), ShapeError);
}

TEST_CASE("all of it shares memory") {
  on_devices(kAllTypes, [](Device device, DType dtype) {
    Tensor x = zeros({3, 4}, {dtype, device});
    x[0].fill_(1);
    x.slice(1, 3).fill_(1);
    x.index({2, Slice({}, {}, 2)}).fill_(1);
    x.narrow(0, 1, 1).narrow(1, 1, 1).fill_(1);
    CHECK(mismatch(x, {3, 4}, {1, 1, 1, 1, 0, 1, 0, 1, 1, 0, 1, 1}) == "");
    x.fill_(0);
    x.split(2)[1].fill_(1);
    x.unbind(1)[0].fill_(1);
    CHECK(mismatch(x, {3, 4}, {1, 0, 0, 0, 1, 0, 0, 0, 1, 1, 1, 1}) == "");
  });
}

TEST_CASE("gradients") {
  on_devices([](Device device) {
    const TensorOptions on{f64, device};
    const auto slope = [&](auto f) {
      Tensor x = arange(6, on).reshape({2, 3}).requires_grad_();
      const Tensor out = f(x);
      const Tensor seed = arange(out.numel(), on).reshape(out.shape()) + 1.0;
      return *x.grad(out.backward(seed));
    };
    CHECK(mismatch(slope([](auto& x) { return x[1]; }), {2, 3}, {0, 0, 0, 1, 2, 3}) == "");
    CHECK(mismatch(slope([](auto& x) { return x.select(1, -1); }), {2, 3}, {0, 0, 1, 0, 0, 2}) ==
          "");
    CHECK(mismatch(slope([](auto& x) { return x.slice(1, 0, std::nullopt, 2); }), {2, 3},
                   {1, 0, 2, 3, 0, 4}) == "");
    CHECK(mismatch(slope([](auto& x) {
                     return x.index({Ellipsis, Slice(1, {}), None});
                   }),
                   {2, 3}, {0, 1, 2, 0, 3, 4}) == "");
    CHECK(mismatch(slope([](auto& x) { return x[0] * x[1]; }), {2, 3}, {3, 8, 15, 0, 2, 6}) == "");
    CHECK(mismatch(slope([](auto& x) { return x.slice(0, 1, 1).sum() + x[0].sum(); }), {2, 3},
                   {1, 1, 1, 0, 0, 0}) == "");
    CHECK(mismatch(slope([](auto& x) { return x.split(2, 1)[1] * 10.0; }), {2, 3},
                   {0, 0, 10, 0, 0, 20}) == "");
    CHECK(mismatch(slope([](auto& x) { return x.unbind()[0] - x.unbind()[1]; }), {2, 3},
                   {1, 2, 3, -1, -2, -3}) == "");
  });
}
