// Functions that make tensors from values, and conversion between dtypes. Values from PyTorch or by
// hand.
#include <cmath>
#include <limits>

#include "tests/support/tensor_check.h"
#include "tests/support/throws.h"

using namespace kiln;
using namespace kiln::test;

TEST_CASE("tensor() takes nested braces and finds shape and dtype") {
  const Tensor ints = tensor({{1, 2, 3}, {4, 5, 6}});
  CHECK(ints.dtype() == i64);
  CHECK(mismatch(ints, {2, 3}, {1, 2, 3, 4, 5, 6}) == "");
  const Tensor mixed = tensor({{1, 2.5}, {3, 4}});
  CHECK(mixed.dtype() == f32);
  CHECK(mismatch(mixed, {2, 2}, {1, 2.5, 3, 4}) == "");
  CHECK(tensor({true, false}).dtype() == bool_);
  CHECK(tensor({true, 2}).dtype() == i64);
  CHECK(mismatch(tensor({true, 2}), {2}, {1, 2}) == "");
  CHECK(mismatch(tensor({{{1}}, {{2}}}), {2, 1, 1}, {1, 2}) == "");
  CHECK(tensor({}).shape() == Shape{0});
  CHECK(tensor({}).dtype() == f32);
  CHECK(tensor({{}, {}}).shape() == Shape{2, 0});
  CHECK(mismatch(tensor({7}), {1}, {7}) == "");
  CHECK(tensor({std::numeric_limits<int64_t>::max()}).item<int64_t>() ==
        std::numeric_limits<int64_t>::max());
  CHECK(tensor({1, 2}, {f16}).dtype() == f16);
  CHECK(tensor({1, 2}, {.dtype = f64, .requires_grad = true}).requires_grad());
}

TEST_CASE("tensor() of one number is 0-d") {
  CHECK(tensor(3).dtype() == i64);
  CHECK(tensor(3.0).dtype() == f32);
  CHECK(tensor(true).dtype() == bool_);
  CHECK(tensor(3.0).shape() == Shape{});
  CHECK(tensor(3, {f64}).item() == 3.0);
}

TEST_CASE("uneven braces are refused") {
  CHECK_THROWS_AS(tensor({{1, 2}, {3}}), ShapeError);
  CHECK_THROWS_AS(tensor({{1}, 2}), ShapeError);
  CHECK_THROWS_AS(tensor({1, {2}}), ShapeError);
  CHECK_THROWS_AS(tensor({{{1}}, {2}}), ShapeError);
  CHECK_THROWS_AS(tensor({{}, {1}}), ShapeError);
}

TEST_CASE("vectors and host data") {
  on_devices([](Device device) {
    CHECK(tensor(std::vector<float>{1, 2}, {.device = device}).dtype() == f32);
    CHECK(tensor(std::vector<int64_t>{1, 2}, {.device = device}).dtype() == i64);
    CHECK(tensor(std::vector<uint8_t>{1, 2}, {.device = device}).dtype() == u8);
    const Tensor x = from_vector(std::vector<double>{1, 2, 3, 4, 5, 6}, {2, 3}, {.device = device});
    CHECK(x.dtype() == f64);
    CHECK(x.device() == device);
    CHECK(mismatch(x, {2, 3}, {1, 2, 3, 4, 5, 6}) == "");
    CHECK(tensor(std::vector<float>{}, {.device = device}).shape() == Shape{0});
    TensorData data(std::vector<int32_t>{4, 5}, Shape{2});
    const Tensor y = from_data(data, {.device = device});
    data.as_mutable<int32_t>()[0] = 9;
    CHECK(mismatch(y, {2}, {4, 5}) == "");  // a copy
    CHECK(y.dtype() == i32);
    CHECK(from_data(data, {f16, device}).dtype() == f16);
  });
  CHECK_THROWS_AS(from_vector(std::vector<float>{1, 2, 3}, {2, 2}), ShapeError);
  CHECK_THROWS_AS(from_vector(std::vector<float>{1}, {-1}), ShapeError);
}

TEST_CASE("zeros, ones, full, empty for every dtype") {
  on_devices(kAllTypes, [](Device device, DType dtype) {
    CHECK(mismatch(zeros({2, 2}, {dtype, device}), {2, 2}, {0, 0, 0, 0}) == "");
    CHECK(mismatch(ones({3}, {dtype, device}), {3}, {1, 1, 1}) == "");
    CHECK(mismatch(full({2}, 1, {dtype, device}), {2}, {1, 1}) == "");
    CHECK(mismatch(full({}, 1, {dtype, device}), {}, {1}) == "");
    CHECK(mismatch(zeros({0, 3}, {dtype, device}), {0, 3}, {}) == "");
    const Tensor x = empty({2, 5}, {dtype, device});
    CHECK(x.shape() == Shape{2, 5});
    CHECK(x.dtype() == dtype);
    CHECK(x.device() == device);
    CHECK(x.is_contiguous());
    for (const Tensor& like : {zeros_like(x), ones_like(x), full_like(x, 1), empty_like(x)}) {
      CHECK(like.shape() == x.shape());
      CHECK(like.dtype() == dtype);
      CHECK(like.device() == device);
    }
    CHECK(mismatch(full_like(zeros({2}, {dtype, device}), 1), {2}, {1, 1}) == "");
    CHECK(mismatch(eye(2, {dtype, device}), {2, 2}, {1, 0, 0, 1}) == "");
  });
  CHECK(zeros({2}).dtype() == f32);
  CHECK(full({2}, 3).dtype() == i64);
  CHECK(full({2}, true).dtype() == bool_);
  CHECK(full({2}, 0.5).dtype() == f32);
  CHECK(mismatch(full({1}, 1.7, {i64}), {1}, {1}) == "");  // truncated
  CHECK(mismatch(full({1}, -1.9, {i32}), {1}, {-1}) == "");
  CHECK(eye(0).shape() == Shape{0, 0});
  CHECK_THROWS_AS(eye(-1), ValueError);
  CHECK_THROWS_AS(zeros({2, -1}), ShapeError);
}

TEST_CASE("the default dtype") {
  set_default_dtype(f64);
  CHECK(zeros({1}).dtype() == f64);
  CHECK(tensor({0.5}).dtype() == f64);
  CHECK((tensor({1}) * 0.5).dtype() == f64);
  set_default_dtype(f32);
  CHECK(zeros({1}).dtype() == f32);
  CHECK_THROWS_AS(set_default_dtype(i64), DTypeError);
}

TEST_CASE("arange") {
  on_devices([](Device device) {
    const auto on = [&](std::optional<DType> dtype = {}) { return TensorOptions{dtype, device}; };
    CHECK(mismatch(arange(5, on()), {5}, {0, 1, 2, 3, 4}) == "");
    CHECK(arange(5, on()).dtype() == i64);
    CHECK(mismatch(arange(5, 0, -2, on()), {3}, {5, 3, 1}) == "");
    CHECK(mismatch(arange(1, 2.5, 0.5, on()), {3}, {1, 1.5, 2}) == "");
    CHECK(arange(1, 2.5, 0.5, on()).dtype() == f32);
    CHECK(mismatch(arange(0.5, 3, 1, on(i64)), {3}, {0, 1, 2}) == "");
    CHECK(mismatch(arange(3, 3, 1, on()), {0}, {}) == "");
    CHECK(mismatch(arange(0, 0, -1, on()), {0}, {}) == "");
    const int64_t big = int64_t{1} << 62;
    CHECK(arange(big, big + 3, 1, on())[2].item<int64_t>() == big + 2);
    const int64_t low = std::numeric_limits<int64_t>::min();
    CHECK(arange(low, low + 2, 1, on())[1].item<int64_t>() == low + 1);
  });
  on_devices(kNumberTypes, [](Device device, DType dtype) {
    CHECK(mismatch(arange(1, 6, 2, {dtype, device}), {3}, {1, 3, 5}) == "");
    CHECK(arange(1, 6, 2, {dtype, device}).dtype() == dtype);
  });
  CHECK_THROWS_AS(arange(0, 1, 0), ValueError);
  CHECK_THROWS_AS(arange(0.0, 1.0, 0.0), ValueError);
  CHECK(message_of<ValueError>([] { arange(5, 0); }) ==
        "arange: the step leads away from the end; got 5, 0, 1");
  CHECK_THROWS_AS(arange(0.0, 1.0, -0.5), ValueError);
  CHECK_THROWS_AS(arange(std::nan("")), ValueError);
  CHECK_THROWS_AS(arange(0, std::numeric_limits<double>::infinity()), ValueError);
  CHECK_THROWS_AS(arange(3, {bool_}), DTypeError);
}

TEST_CASE("linspace") {
  CHECK(mismatch(linspace(0, 1, 5), {5}, {0, 0.25, 0.5, 0.75, 1}) == "");
  CHECK(mismatch(linspace(1, -1, 3, {f64}), {3}, {1, 0, -1}) == "");
  CHECK(mismatch(linspace(0, 10, 1), {1}, {0}) == "");
  CHECK(mismatch(linspace(0, 1, 0), {0}, {}) == "");
  CHECK(mismatch(linspace(0, 10, 5, {i64}), {5}, {0, 2, 5, 7, 10}) == "");
  CHECK(linspace(0.1, 0.3, 3, {f64})[2].item() == 0.3);  // the end is exact
  // Longer than one piece of a parallel loop, and symmetric.
  const Tensor line = linspace(-0.7, 0.7, 70001, {f64});
  CHECK(line.eq(line.flip({0}).neg()).all().item<bool>());
  CHECK(line[60000].item() == 0.7 - 1.4 / 70000 * 10000);
  CHECK_THROWS_AS(linspace(0, 1, -1), ValueError);
}

TEST_CASE("conversion between all dtypes") {
  // 0 and 1 mean the same everywhere.
  on_devices(kAllTypes, [](Device device, DType from) {
    const Tensor x = tensor({0, 1, 1}, {from, device});
    for (const DType to : kAllTypes) {
      INFO("to ", to_string(to));
      CHECK(x.to(to).dtype() == to);
      CHECK(mismatch(x.to(to), {3}, {0, 1, 1}) == "");
      CHECK(mismatch(scattered(x).to(to), {3}, {0, 1, 1}) == "");
      CHECK(zeros({0}, {from, device}).to(to).shape() == Shape{0});
    }
    CHECK(x.to(from).is_same(x));
  });
}

TEST_CASE("what conversion does at the edges") {
  const double inf = std::numeric_limits<double>::infinity();
  on_devices([&](Device device) {
    const auto make = [&](std::initializer_list<NestedList> values) {
      return tensor(values, {.device = device});
    };
    CHECK(mismatch(make({300, -1, 255}).to(u8), {3}, {44, 255, 255}) == "");  // wraps
    CHECK(mismatch(make({-1.7, 2.9}).to(i32), {2}, {-1, 2}) == "");           // truncates
    CHECK(mismatch(make({0.5, 0.0, std::nan("")}).to(bool_), {3}, {1, 0, 1}) == "");
    CHECK(mismatch(make({65519.0, 65520.0, 1e-8}).to(f16), {3}, {65504, inf, 0}) == "");
    // Halves round to even.
    CHECK(mismatch(tensor({1.00390625, 1.01171875}, {f32, device}).to(bf16), {2}, {1, 1.015625},
                   0) == "");
    const int64_t odd = (int64_t{1} << 53) + 1;
    CHECK(make({odd}).to(f64).item() == 9007199254740992.0);
    CHECK(make({1e30, -1e30, inf}).to(i64)[0].item<int64_t>() ==
          std::numeric_limits<int64_t>::max());  // saturates
    CHECK(make({std::nan("")}).to(i64).item<int64_t>() == 0);
  });
}

TEST_CASE("values out") {
  on_devices([](Device device) {
    const Tensor x = tensor({{1, 2}, {3, 4}}, {.device = device});
    CHECK(x.t().to_vector<float>() == std::vector<float>{1, 3, 2, 4});
    CHECK(x[1][0].item<int>() == 3);
    CHECK(tensor({2.75}, {.device = device}).item<int64_t>() == 2);
    CHECK(tensor({2.75}, {.device = device}).item<bool>());
    CHECK(tensor({true}, {.device = device}).item() == 1.0);
    CHECK(x.data_ptr<int64_t>()[3] == 4);
    CHECK_THROWS_AS(x.data_ptr<float>(), DTypeError);
    CHECK_THROWS_AS(x.item(), ValueError);
    CHECK_THROWS_AS(zeros({0}, {.device = device}).item(), ValueError);
    // What was taken out does not change when the tensor does.
    Tensor y = tensor({1.0, 2.0}, {.device = device});
    const TensorData data = y.to_data();
    y.fill_(7);
    CHECK(data.to_doubles() == Doubles{1, 2});
  });
  CHECK(tensor({1, 2}).to_data().dtype() == i64);
  const Tensor x = zeros({2, 3});
  CHECK(x.size(-1) == 3);
  CHECK(x.size(0) == 2);
  CHECK(x.dim() == 2);
  CHECK(x.numel() == 6);
  CHECK(x.stride() == Strides{3, 1});
  CHECK(x.t().stride() == Strides{1, 3});
  CHECK_THROWS_AS(x.size(2), IndexError);
}

TEST_CASE("clone and contiguous") {
  on_devices(kAllTypes, [](Device device, DType dtype) {
    Tensor x = tensor({{0, 1, 1}, {1, 0, 1}}, {dtype, device});
    Tensor copy = x.clone();
    copy.fill_(1);
    CHECK(mismatch(x, {2, 3}, {0, 1, 1, 1, 0, 1}) == "");
    CHECK(x.contiguous().is_same(x));
    const Tensor turned = x.t();
    CHECK_FALSE(turned.is_contiguous());
    CHECK(turned.contiguous().is_contiguous());
    CHECK(mismatch(turned.contiguous(), {3, 2}, {0, 1, 1, 0, 1, 1}) == "");
    CHECK(mismatch(turned.clone(), {3, 2}, {0, 1, 1, 0, 1, 1}) == "");
    CHECK(mismatch(x.expand({2, 2, 3}).clone(), {2, 2, 3}, {0, 1, 1, 1, 0, 1, 0, 1, 1, 1, 0, 1}) ==
          "");
  });
}

TEST_CASE("sizes that no memory holds are errors") {
  on_devices([](Device device) {
    const TensorOptions on{.device = device};
    const int64_t huge = int64_t{1} << 40;
    CHECK_THROWS_AS(zeros({int64_t{1} << 62}, on), Error);  // bytes overflow
    CHECK_THROWS_AS(empty({huge, huge}, on), ShapeError);   // elements overflow
    CHECK_THROWS_AS(zeros({0, int64_t{1} << 61, 8}, on), ShapeError);
    CHECK_THROWS_AS(arange(0, std::numeric_limits<int64_t>::max(), 1, on), Error);
    CHECK_THROWS_AS(rand({huge, huge}, on), ShapeError);
    CHECK_THROWS_AS(randperm(int64_t{1} << 61, on), Error);
    CHECK_THROWS_AS(one_hot(tensor({1}, on), int64_t{1} << 61), Error);
    CHECK_THROWS_AS(one_hot(tensor({1, 1, 1, 1}, on), int64_t{1} << 62), ShapeError);
    // Expanded views are as large as they say.
    const Tensor column = zeros({1, 1}, on).expand({huge, 1});
    const Tensor row = zeros({1, 1}, on).expand({1, huge});
    CHECK_THROWS_AS(column + row, ShapeError);
    CHECK_THROWS_AS(column.eq(row), ShapeError);
    CHECK_THROWS_AS(column.matmul(row), ShapeError);
    CHECK_THROWS_AS(column.expand({huge, huge}), ShapeError);
    CHECK_THROWS_AS(zeros({1}, on).expand({int64_t{1} << 62}).clone(), Error);
    const Tensor part = zeros({1}, on).expand({int64_t{1} << 62});
    CHECK_THROWS_AS(cat({part, part}), ShapeError);
  });
}

TEST_CASE("one_hot") {
  on_devices([](Device device) {
    const TensorOptions on{.device = device};
    CHECK(mismatch(one_hot(tensor({0, 2, 1}, on)), {3, 3}, {1, 0, 0, 0, 0, 1, 0, 1, 0}) == "");
    CHECK(one_hot(tensor({0, 2, 1}, on)).dtype() == i64);
    CHECK(mismatch(one_hot(tensor(1, on), 3), {3}, {0, 1, 0}) == "");
    CHECK(mismatch(one_hot(tensor({{1}, {0}}, {u8, device}), 2), {2, 1, 2}, {0, 1, 1, 0}) == "");
    CHECK(one_hot(zeros({0}, {i64, device}), 3).shape() == Shape{0, 3});
    CHECK_THROWS_AS(one_hot(zeros({0}, {i64, device})), ValueError);
    CHECK_THROWS_AS(one_hot(tensor({3}, on), 3), IndexError);
    CHECK_THROWS_AS(one_hot(tensor({-1}, on), 3), IndexError);
    CHECK_THROWS_AS(one_hot(tensor({0.5}, on)), DTypeError);
  });
}
