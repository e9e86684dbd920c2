// sort, argsort, topk, kthvalue, median. The literals are PyTorch's.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "tests/support/tensor_check.h"

using namespace kiln;
using namespace kiln::test;

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
const double kNan = std::numeric_limits<double>::quiet_NaN();

Tensor odd(TensorOptions options) {
  return tensor({{3.0, kNan, -1.0, 3.0, 0.0}, {-0.0, 0.0, kInf, -kInf, kNan}}, options);
}

}  // namespace

TEST_CASE("sort: ties keep their order, NaN is the largest, zeros are equal") {
  on_devices(kFloatTypes, [](Device device, DType dtype) {
    const Tensor flat = odd({dtype, device});
    for (const Tensor& x : {flat, scattered(flat)}) {
      auto [up, up_index] = x.sort();
      CHECK(mismatch(up, {2, 5}, {-1, 0, 3, 3, kNan, -kInf, 0, 0, kInf, kNan}) == "");
      CHECK(mismatch(up_index, {2, 5}, {2, 4, 0, 3, 1, 3, 0, 1, 2, 4}) == "");
      auto [down, down_index] = x.sort(1, true);
      CHECK(mismatch(down, {2, 5}, {kNan, 3, 3, 0, -1, kNan, kInf, 0, 0, -kInf}) == "");
      CHECK(mismatch(down_index, {2, 5}, {1, 0, 3, 4, 2, 4, 2, 0, 1, 3}) == "");
      CHECK(mismatch(x.argsort(0), {2, 5}, {1, 1, 0, 1, 0, 0, 0, 1, 0, 1}) == "");
      CHECK(mismatch(x.argsort(0, true), {2, 5}, {0, 0, 1, 0, 1, 1, 1, 0, 1, 0}) == "");
      CHECK(up.dtype() == dtype);
      CHECK(up_index.dtype() == i64);
    }
    // The sign of a zero stays with it.
    CHECK(std::signbit(flat.sort().first.to_vector<double>()[6]));
  });
}

TEST_CASE("sort: integers and bools, for every dtype and layout") {
  on_devices(kNumberTypes, [](Device device, DType dtype) {
    const Tensor flat = tensor({{4, 1, 3, 1}, {2, 2, 9, 5}}, {dtype, device});
    for (const Tensor& x : {flat, scattered(flat)}) {
      auto [values, index] = x.sort(1);
      CHECK(mismatch(values, {2, 4}, {1, 1, 3, 4, 2, 2, 5, 9}) == "");
      CHECK(mismatch(index, {2, 4}, {1, 3, 2, 0, 0, 1, 3, 2}) == "");
      CHECK(mismatch(x.sort(0, true).first, {2, 4}, {4, 2, 9, 5, 2, 1, 3, 1}) == "");
      CHECK(values.dtype() == dtype);
    }
  });
  on_devices([](Device device) {
    auto [values, index] = tensor({true, false, true}, {bool_, device}).sort();
    CHECK(mismatch(values, {3}, {0, 1, 1}) == "");
    CHECK(mismatch(index, {3}, {1, 0, 2}) == "");
    CHECK(values.dtype() == bool_);
    const Tensor ends = tensor({std::numeric_limits<int64_t>::max(), int64_t{0},
                                std::numeric_limits<int64_t>::min(), int64_t{-1}},
                               {i64, device});
    CHECK(mismatch(ends.argsort(), {4}, {2, 3, 1, 0}) == "");
  });
}

TEST_CASE("sort: long rows are permutations in order") {
  on_devices([](Device device) {
    if (device.type != kCpu) return;
    for (int64_t n : {1023, 1025, 65536, 65537, 300001}) {
      CAPTURE(n);
      const Tensor x = randn({n}, {f32, device}).mul(1000.0).round();  // many ties
      auto [values, index] = x.sort();
      const auto before = x.to_vector<float>();
      const auto after = values.to_vector<float>();
      const auto from = index.to_vector<int64_t>();
      std::vector<int64_t> expected(before.size());
      std::iota(expected.begin(), expected.end(), int64_t{0});
      std::stable_sort(expected.begin(), expected.end(), [&](int64_t a, int64_t b) {
        return before[static_cast<size_t>(a)] < before[static_cast<size_t>(b)];
      });
      CHECK(from == expected);
      CHECK(std::is_sorted(after.begin(), after.end()));
      CHECK(after.front() == *std::min_element(before.begin(), before.end()));
    }
  });
}

TEST_CASE("topk and kthvalue") {
  on_devices([](Device device) {
    const Tensor x = odd({f32, device});
    CHECK(mismatch(x.topk(2).first, {2, 2}, {kNan, 3, kNan, kInf}) == "");
    CHECK(mismatch(x.topk(2, 1, false).first, {2, 2}, {-1, 0, -kInf, 0}) == "");
    CHECK(mismatch(x.topk(1, 0, false).second, {1, 5}, {1, 1, 0, 1, 0}) == "");
    CHECK(x.topk(0).first.shape() == Shape{2, 0});
    CHECK(mismatch(x.kthvalue(2).first, {2}, {0, 0}) == "");
    CHECK(mismatch(x.kthvalue(2, 1, true).second, {2, 1}, {4, 0}) == "");
    CHECK_THROWS_AS(x.topk(6), IndexError);
    CHECK_THROWS_AS(x.topk(-1), IndexError);
    CHECK_THROWS_AS(x.kthvalue(0), IndexError);
    CHECK_THROWS_AS(x.kthvalue(6), IndexError);
    CHECK_THROWS_AS(x.sort(2), IndexError);
  });
}

TEST_CASE("median takes the lower middle, and NaN where there is one") {
  on_devices([](Device device) {
    const Tensor x = odd({f32, device});
    CHECK(mismatch(x.median(1).first, {2}, {kNan, kNan}) == "");
    CHECK(mismatch(x.median(1).second, {2}, {1, 4}) == "");
    CHECK(mismatch(x.nanmedian(1).first, {2}, {0, 0}) == "");
    CHECK(mismatch(x.nanmedian(1, true).second, {2, 1}, {4, 0}) == "");
    CHECK(std::isnan(x.median().item()));
    CHECK(x.nanmedian().item() == 0.0);
    const Tensor y = tensor({{4, 1, 3, 1}, {2, 2, 9, -5}}, {i64, device});
    CHECK(mismatch(y.median(1).first, {2}, {1, 2}) == "");
    CHECK(y.median().item() == 2);
    CHECK(y.median().dtype() == i64);
    CHECK(std::isnan(full({2}, kNan, {f32, device}).nanmedian().item()));
    CHECK(std::isnan(zeros({0}, {f32, device}).median().item()));
    CHECK_THROWS_AS(zeros({2, 0}, {f32, device}).median(1), IndexError);
    CHECK_THROWS_AS(zeros({0}, {i64, device}).median(), IndexError);
  });
}

TEST_CASE("sort: 0-d and empty tensors") {
  on_devices([](Device device) {
    const Tensor x = tensor(5.0, {f32, device});
    CHECK(mismatch(x.sort().first, {}, {5}) == "");
    CHECK(mismatch(x.sort().second, {}, {0}) == "");
    CHECK(mismatch(x.topk(1).first, {}, {5}) == "");
    CHECK(mismatch(x.median(0).first, {}, {5}) == "");
    CHECK(zeros({3, 0}, {f32, device}).sort().second.shape() == Shape{3, 0});
    CHECK(zeros({0, 3}, {f32, device}).sort(0).first.shape() == Shape{0, 3});
  });
}

TEST_CASE("sort: gradients go where the values came from") {
  on_devices([](Device device) {
    const TensorOptions on{.dtype = f64, .device = device, .requires_grad = true};
    const Tensor weights = tensor({{1.0, 2.0}, {3.0, 4.0}}, {f64, device});
    Tensor x = tensor({{1.0, 5.0, 2.0}, {9.0, 7.0, 8.0}}, on);
    CHECK(mismatch(*x.grad((x.topk(2).first * weights).sum().backward()), {2, 3},
                   {0, 1, 2, 3, 0, 4}) == "");
    CHECK(
        mismatch(*x.grad((x.median(1).first * tensor({3.0, 4.0}, {f64, device})).sum().backward()),
                 {2, 3}, {0, 0, 3, 0, 0, 4}) == "");
  });
}
