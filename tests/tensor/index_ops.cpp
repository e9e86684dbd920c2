// Ops that take tensors of indices.
#include <algorithm>
#include <cmath>

#include "kiln/core/random.h"
#include "tests/support/tensor_check.h"

using namespace kiln;
using namespace kiln::test;

namespace {

// Values that every dtype holds, bools included.
Tensor bits(const std::initializer_list<NestedList>& values, DType dtype, Device device) {
  return tensor(values, {dtype, device});
}
Doubles as(DType dtype, Doubles values) {
  if (dtype == bool_) {
    for (double& v : values) v = v != 0;
  }
  return values;
}

}  // namespace

TEST_CASE("index_select, for every dtype and layout") {
  on_devices(kAllTypes, [](Device device, DType dtype) {
    const Tensor flat = bits({{0, 1, 2}, {3, 0, 5}}, dtype, device);
    for (const DType index_type : kIntTypes) {
      const Tensor i = tensor({2, 0, 0}, {index_type, device});
      for (const Tensor& x : {flat, scattered(flat)}) {
        CHECK(mismatch(x.index_select(1, i), {2, 3}, as(dtype, {2, 0, 0, 5, 3, 3})) == "");
        CHECK(mismatch(x.index_select(-1, scattered(i)), {2, 3}, as(dtype, {2, 0, 0, 5, 3, 3})) ==
              "");
      }
    }
    const auto at = [&](std::initializer_list<NestedList> v) { return tensor(v, {i64, device}); };
    CHECK(mismatch(flat.index_select(0, at({1, 1})), {2, 3}, as(dtype, {3, 0, 5, 3, 0, 5})) == "");
    CHECK(mismatch(flat.index_select(0, tensor(1, {i64, device})), {1, 3}, as(dtype, {3, 0, 5})) ==
          "");
    CHECK(flat.index_select(0, zeros({0}, {i64, device})).shape() == Shape{0, 3});
    CHECK(zeros({0, 3}, {dtype, device}).index_select(1, at({1})).shape() == Shape{0, 1});
    CHECK(mismatch(flat[0][1].index_select(0, at({0})), {}, {1}) == "");
    CHECK_THROWS_AS(flat.index_select(0, at({2})), IndexError);
    CHECK_THROWS_AS(flat.index_select(0, at({-1})), IndexError);
    CHECK_THROWS_AS(flat.index_select(2, at({0})), IndexError);
    CHECK_THROWS_AS(flat.index_select(0, at({{0}})), ShapeError);
    CHECK_THROWS_AS(flat.index_select(0, tensor({0.0}, {f32, device})), DTypeError);
    CHECK_THROWS_AS(zeros({0}, {dtype, device}).index_select(0, at({0})), IndexError);
  });
}

TEST_CASE("gather") {
  on_devices(kAllTypes, [](Device device, DType dtype) {
    const Tensor flat = bits({{0, 1, 2}, {3, 0, 5}}, dtype, device);
    const auto at = [&](std::initializer_list<NestedList> v) { return tensor(v, {i64, device}); };
    for (const Tensor& x : {flat, scattered(flat)}) {
      CHECK(mismatch(x.gather(1, at({{2, 2, 0, 1}, {0, 1, 2, 2}})), {2, 4},
                     as(dtype, {2, 2, 0, 1, 3, 0, 5, 5})) == "");
      CHECK(mismatch(x.gather(0, scattered(at({{1, 0, 1}}))), {1, 3}, as(dtype, {3, 1, 5})) == "");
      CHECK(mismatch(x.gather(0, at({{1, 0}, {0, 1}, {1, 1}})), {3, 2},
                     as(dtype, {3, 1, 0, 0, 3, 0})) == "");
      CHECK(mismatch(x.gather(-1, at({{1}})), {1, 1}, as(dtype, {1})) == "");
    }
    CHECK(flat.gather(1, zeros({2, 0}, {i64, device})).shape() == Shape{2, 0});
    CHECK(mismatch(flat[1][0].gather(0, tensor(0, {i64, device})), {}, as(dtype, {3})) == "");
    CHECK_THROWS_AS(flat.gather(1, at({{3}, {0}})), IndexError);
    CHECK_THROWS_AS(flat.gather(1, at({{-1}, {0}})), IndexError);
    CHECK_THROWS_AS(flat.gather(1, at({0})), ShapeError);
    CHECK_THROWS_AS(flat.gather(1, at({{0}, {0}, {0}})), ShapeError);
    CHECK_THROWS_AS(flat.gather(0, tensor({{0.0}}, {f32, device})), DTypeError);
  });
}

TEST_CASE("scatter and scatter_add") {
  on_devices(kAllTypes, [](Device device, DType dtype) {
    const Tensor flat = bits({{1, 1, 0}, {0, 1, 1}}, dtype, device);
    const Tensor src = bits({{0, 0, 1}, {1, 0, 0}}, dtype, device);
    const auto at = [&](std::initializer_list<NestedList> v) { return tensor(v, {i64, device}); };
    const Tensor rows = at({{2, 0, 1}, {2, 1, 0}});
    for (const Tensor& x : {flat, scattered(flat)}) {
      CHECK(mismatch(x.scatter(1, rows, src), {2, 3}, {0, 1, 0, 0, 0, 1}) == "");
      CHECK(mismatch(x.scatter(1, scattered(rows), scattered(src)), {2, 3}, {0, 1, 0, 0, 0, 1}) ==
            "");
      // A smaller index takes the first part of the source.
      CHECK(mismatch(x.scatter(0, at({{1, 0}}), src), {2, 3}, {1, 0, 0, 0, 1, 1}) == "");
      CHECK(mismatch(x, {2, 3}, {1, 1, 0, 0, 1, 1}) == "");  // the operand is as it was
      if (dtype == bool_) {                                  // true where any is
        CHECK(mismatch(x.scatter_add(1, rows, src), {2, 3}, {1, 1, 0, 0, 1, 1}) == "");
        CHECK(mismatch(x.scatter_add(0, at({{1, 1, 1}, {1, 0, 1}}), src), {2, 3},
                       {1, 1, 0, 1, 1, 1}) == "");
        continue;
      }
      CHECK(mismatch(x.scatter_add(1, rows, src), {2, 3}, {1, 2, 0, 0, 1, 2}) == "");
      CHECK(mismatch(x.scatter_add(0, at({{1, 1, 1}, {1, 0, 1}}), src), {2, 3},
                     {1, 1, 0, 1, 1, 2}) == "");  // several adds to one place
    }
    const Tensor scalar = flat[0][0];
    CHECK(mismatch(scalar.scatter(0, tensor(0, {i64, device}), src[0][0]), {}, {0}) == "");
    CHECK(flat.scatter(0, zeros({0, 3}, {i64, device}), src).shape() == Shape{2, 3});
    CHECK_THROWS_AS(flat.scatter(1, at({{3}, {0}}), src), IndexError);
    CHECK_THROWS_AS(flat.scatter(0, at({{0, 0, 0, 0}}), src), ShapeError);
    CHECK_THROWS_AS(flat.scatter(1, at({{0, 1, 2}}), src[0]), ShapeError);
    CHECK_THROWS_AS(flat.scatter(0, at({{0, 0}, {1, 1}, {0, 0}}), src), ShapeError);
    CHECK_THROWS_AS(flat.scatter(1, rows, src.to(dtype == f64 ? f32 : f64)), DTypeError);
  });
}

TEST_CASE("index_add") {
  on_devices(kNumberTypes, [](Device device, DType dtype) {
    const Tensor x = tensor({{1, 2, 3}, {4, 5, 6}}, {dtype, device});
    const Tensor src = tensor({{10, 20}, {30, 40}}, {dtype, device});
    const auto at = [&](std::initializer_list<NestedList> v) { return tensor(v, {i64, device}); };
    CHECK(mismatch(x.index_add(1, at({2, 0}), src), {2, 3}, {21, 2, 13, 44, 5, 36}) == "");
    CHECK(mismatch(x.index_add(-1, at({1, 1}), scattered(src)), {2, 3}, {1, 32, 3, 4, 75, 6}) ==
          "");
    CHECK(mismatch(
              scattered(x).index_add(0, at({1}), src.slice(0, 0, 1).index_select(1, at({0, 1, 0}))),
              {2, 3}, {1, 2, 3, 14, 25, 16}) == "");
    CHECK(mismatch(x[0][0].index_add(0, at({0}), src[0][0]), {}, {11}) == "");
    CHECK(mismatch(x.index_add(0, zeros({0}, {i64, device}), zeros({0, 3}, {dtype, device})),
                   {2, 3}, {1, 2, 3, 4, 5, 6}) == "");
    CHECK_THROWS_AS(x.index_add(1, at({0, 3}), src), IndexError);
    CHECK_THROWS_AS(x.index_add(1, at({0}), src), ShapeError);
    CHECK_THROWS_AS(x.index_add(1, at({0, 1}), src.to(dtype == f64 ? f32 : f64)), DTypeError);
  });
}

TEST_CASE("large indices, compared with plain loops") {
  on_devices([](Device device) {
    manual_seed(2);
    const Tensor x = randn({40, 33}, {f32, device});
    const Tensor i = randint(0, 40, {70}, {i64, device});
    const Tensor g = randint(0, 40, {50, 33}, {i64, device});
    const auto v = x.to_vector<float>();
    const auto rows = i.to_vector<int64_t>();
    const auto places = g.to_vector<int64_t>();
    const auto picked = x.index_select(0, i).to_vector<float>();
    const auto gathered = x.gather(0, g).to_vector<float>();
    const auto summed = zeros({40, 33}, {f64, device})
                            .scatter_add(0, g.slice(0, 0, 40), x.to(f64))
                            .to_vector<double>();
    Doubles expected(40 * 33, 0.0);
    bool right = true;
    for (size_t r = 0; r < 70; ++r) {
      for (size_t c = 0; c < 33; ++c) {
        right = right && picked[r * 33 + c] == v[static_cast<size_t>(rows[r]) * 33 + c];
      }
    }
    for (size_t r = 0; r < 50; ++r) {
      for (size_t c = 0; c < 33; ++c) {
        const size_t at = static_cast<size_t>(places[r * 33 + c]) * 33 + c;
        right = right && gathered[r * 33 + c] == v[at];
        if (r < 40) expected[at] += static_cast<double>(v[r * 33 + c]);
      }
    }
    CHECK(right);
    double worst = 0;
    for (size_t k = 0; k < expected.size(); ++k) {
      worst = std::max(worst, std::abs(expected[k] - summed[k]));
    }
    CHECK(worst < 1e-12);
  });
}

TEST_CASE("gradients") {
  on_devices([](Device device) {
    const TensorOptions on{f64, device};
    const auto at = [&](std::initializer_list<NestedList> v) { return tensor(v, {i64, device}); };
    Tensor x = tensor({{1.0, 2.0, 3.0}, {4.0, 5.0, 6.0}}, on).requires_grad_();
    Tensor s = tensor({{10.0, 20.0}, {30.0, 40.0}}, on).requires_grad_();
    const auto seed = [&](const Tensor& y) {
      return arange(y.numel(), on).reshape(y.shape()) + 1.0;
    };
    {
      const Tensor y = x.index_select(1, at({2, 0, 2}));
      CHECK(mismatch(*x.grad(y.backward(seed(y))), {2, 3}, {2, 0, 4, 5, 0, 10}) == "");
    }
    {
      const Tensor y = x.gather(1, at({{0, 0}, {2, 1}}));
      CHECK(mismatch(*x.grad(y.backward(seed(y))), {2, 3}, {3, 0, 0, 0, 4, 3}) == "");
    }
    {
      const Tensor y = x.scatter(1, at({{2, 0}, {1, 0}}), s);
      CHECK(mismatch(y, {2, 3}, {20, 2, 10, 40, 30, 6}) == "");
      const Gradients grads = y.backward(seed(y));
      CHECK(mismatch(*x.grad(grads), {2, 3}, {0, 2, 0, 0, 0, 6}) == "");
      CHECK(mismatch(*s.grad(grads), {2, 2}, {3, 1, 5, 4}) == "");
    }
    {
      const Tensor y = x.scatter_add(1, at({{2, 2}, {1, 0}}), s);
      CHECK(mismatch(y, {2, 3}, {1, 2, 33, 44, 35, 6}) == "");
      const Gradients grads = y.backward(seed(y));
      CHECK(mismatch(*x.grad(grads), {2, 3}, {1, 2, 3, 4, 5, 6}) == "");
      CHECK(mismatch(*s.grad(grads), {2, 2}, {3, 3, 5, 4}) == "");
    }
    {  // only part of the source is used
      const Tensor y = x.scatter_add(0, at({{1}}), s);
      const Gradients grads = y.backward(seed(y));
      CHECK(mismatch(*s.grad(grads), {2, 2}, {4, 0, 0, 0}) == "");
    }
    {
      const Tensor y = x.index_add(1, at({1, 1}), s);
      const Gradients grads = y.backward(seed(y));
      CHECK(mismatch(*x.grad(grads), {2, 3}, {1, 2, 3, 4, 5, 6}) == "");
      CHECK(mismatch(*s.grad(grads), {2, 2}, {2, 2, 5, 5}) == "");
    }
  });
}
