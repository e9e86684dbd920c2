// Random numbers: which are drawn depends on the seed alone, and they are distributed as they
// should be.
#include "kiln/core/random.h"

#include <algorithm>
#include <cmath>

#include "kiln/core/parallel.h"
#include "tests/support/tensor_check.h"

using namespace kiln;
using namespace kiln::test;

namespace {

struct Moments {
  double mean, variance, low, high;
};

Moments moments(const Tensor& x) {
  const Doubles v = x.to_data().to_doubles();
  const auto n = static_cast<double>(v.size());
  double sum = 0;
  for (double a : v) sum += a;
  double squares = 0;
  for (double a : v) squares += (a - sum / n) * (a - sum / n);
  const auto [low, high] = std::minmax_element(v.begin(), v.end());
  return {sum / n, squares / n, *low, *high};
}

// Several draws of each kind, one after another.
Doubles draws(Device device) {
  const TensorOptions on{.device = device};
  Doubles out;
  const auto take = [&](const Tensor& x) {
    const Doubles v = x.to_data().to_doubles();
    out.insert(out.end(), v.begin(), v.end());
  };
  take(rand({100001}, on));
  take(randn({70000}, {f64, device}));
  take(randint(-5, 1000, {50001}, on));
  take(randperm(1001, on));
  take(bernoulli(full({40000}, 0.3, on)));
  take(functional::dropout(ones({90000}, on), 0.4));
  Tensor x = empty({3, 7}, on);
  take(x.normal_(2.0, 3.0));
  take(x.uniform_(-1.0, 1.0));
  take(x.bernoulli_(0.5));
  return out;
}

}  // namespace

TEST_CASE("one seed gives one stream, on any number of threads and on both devices") {
  const int before = num_threads();
  manual_seed(42);
  set_num_threads(1);
  const Doubles one = draws(kCpu);
  manual_seed(42);
  set_num_threads(max_num_threads());
  CHECK(draws(kCpu) == one);
  set_num_threads(before);
  manual_seed(42);
  CHECK(draws(kReference) == one);
  manual_seed(43);
  CHECK(draws(kCpu) != one);
  CHECK(draws(kCpu) != one);  // the stream goes on
}

TEST_CASE("a generator of one's own leaves the default one alone") {
  manual_seed(1);
  const Doubles first = rand({4}).to_data().to_doubles();
  Generator mine(9);
  manual_seed(1);
  const Doubles own = rand({4}, {}, &mine).to_data().to_doubles();
  CHECK(rand({4}).to_data().to_doubles() == first);
  mine.manual_seed(9);
  CHECK(rand({4}, {}, &mine).to_data().to_doubles() == own);
  CHECK(own != first);
  CHECK(randint(0, 100, {3}, {}, &mine).to_data().to_doubles() !=
        randint(0, 100, {3}, {}, &mine).to_data().to_doubles());
}

TEST_CASE("moments") {
  manual_seed(7);
  // Bounds are about five standard errors.
  on_devices(kFloatTypes, [](Device device, DType dtype) {
    const int64_t n = device.type == kCpu ? 100000 : 20000;
    const double slack = device.type == kCpu ? 1.0 : 2.3;
    const double coarse = dtype == bf16 ? 2e-3 : 0.0;  // rounding to 8 bits shifts the variance
    const Moments u = moments(rand({n}, {dtype, device}));
    CHECK(std::abs(u.mean - 0.5) < 0.005 * slack + coarse);
    CHECK(std::abs(u.variance - 1.0 / 12) < 0.0012 * slack + coarse);
    CHECK(u.low >= 0.0);
    CHECK((dtype == f32 || dtype == f64 ? u.high < 1.0 : u.high <= 1.0));
    const Moments g = moments(randn({n}, {dtype, device}));
    CHECK(std::abs(g.mean) < 0.016 * slack + coarse);
    CHECK(std::abs(g.variance - 1.0) < 0.023 * slack + coarse);
    CHECK(g.high < 6.0);
    CHECK(g.high > 3.0);
    const Moments b = moments(bernoulli(full({n}, 0.25, {dtype, device})));
    CHECK(std::abs(b.mean - 0.25) < 0.007 * slack);
    CHECK(rand({n}, {dtype, device}).dtype() == dtype);
  });
}

TEST_CASE("integers cover their range evenly") {
  manual_seed(3);
  on_devices(kNumberTypes, [](Device device, DType dtype) {
    const Tensor x = randint(2, 7, {20000}, {dtype, device});
    CHECK(x.dtype() == dtype);
    for (int v = 2; v < 7; ++v) {
      const auto count = x.eq(v).sum().item<int64_t>();
      CHECK(std::abs(static_cast<double>(count) - 4000.0) < 300.0);
    }
    const Moments m = moments(x);
    CHECK(m.low == 2);
    CHECK(m.high == 6);
  });
  CHECK(randint(0, 2, {3}).dtype() == i64);
  CHECK(mismatch(randint(5, 6, {2, 2}), {2, 2}, {5, 5, 5, 5}) == "");
  CHECK_THROWS_AS(randint(3, 3, {2}), ValueError);
  CHECK_THROWS_AS(randint(0, 257, {2}, {u8}), ValueError);
  CHECK_THROWS_AS(randint(-1, 10, {2}, {u8}), ValueError);
  CHECK(randint(-128, 128, {2}, {i8}).dtype() == i8);
  CHECK_THROWS_AS(randint(0, int64_t{1} << 60, {2}), ValueError);
}

TEST_CASE("randperm is a permutation, and not the identity") {
  manual_seed(11);
  on_devices([](Device device) {
    const Tensor p = randperm(1000, {.device = device});
    CHECK(p.dtype() == i64);
    std::vector<int64_t> v = p.to_vector<int64_t>();
    CHECK_FALSE(std::is_sorted(v.begin(), v.end()));
    std::sort(v.begin(), v.end());
    for (size_t i = 0; i < v.size(); ++i) REQUIRE(v[i] == static_cast<int64_t>(i));
    CHECK(randperm(0, {.device = device}).shape() == Shape{0});
    CHECK(mismatch(randperm(1, {.device = device}), {1}, {0}) == "");
  });
  // Each of the 6 orders of 3 is as likely: 600 each of 3600, standard deviation 22.
  int counts[27] = {};
  for (int i = 0; i < 3600; ++i) {
    const auto v = randperm(3).to_vector<int64_t>();
    ++counts[v[0] * 9 + v[1] * 3 + v[2]];
  }
  int seen = 0;
  for (int c : counts) {
    if (c == 0) continue;
    ++seen;
    CHECK(std::abs(c - 600) < 115);
  }
  CHECK(seen == 6);
  CHECK_THROWS_AS(randperm(-1), ValueError);
}

TEST_CASE("bernoulli takes a probability for each element") {
  on_devices([](Device device) {
    CHECK(mismatch(bernoulli(tensor({0.0, 1.0, 0.0, 1.0}, {.device = device})), {4},
                   {0, 1, 0, 1}) == "");
    CHECK(bernoulli(zeros({0}, {.device = device})).shape() == Shape{0});
    CHECK_THROWS_AS(bernoulli(tensor({1.5}, {.device = device})), ValueError);
    CHECK_THROWS_AS(bernoulli(tensor({-0.1}, {.device = device})), ValueError);
    CHECK_THROWS_AS(bernoulli(tensor({std::nan("")}, {.device = device})), ValueError);
    CHECK_THROWS_AS(bernoulli(tensor({1}, {.device = device})), DTypeError);
  });
}

TEST_CASE("random writes go through views and keep requires_grad under no_grad") {
  manual_seed(5);
  on_devices([](Device device) {
    Tensor x = zeros({2, 4}, {.device = device});
    x.slice(1, 0, std::nullopt, 2).uniform_(1.0, 2.0);
    const Doubles v = x.to_data().to_doubles();
    for (size_t i = 0; i < v.size(); ++i)
      CHECK((i % 2 == 0 ? v[i] >= 1.0 && v[i] < 2.0 : v[i] == 0.0));
    Tensor leaf = zeros({3}, {.device = device, .requires_grad = true});
    CHECK_THROWS_AS(leaf.normal_(), AutodiffError);
    no_grad([&] { leaf.normal_(); });
    CHECK(leaf.requires_grad());
    CHECK(leaf.is_leaf());
    CHECK(rand({0, 3}, {.device = device}).shape() == Shape{0, 3});
    CHECK(rand({}, {.device = device}).shape() == Shape{});
  });
  CHECK_THROWS_AS(zeros({2}).uniform_(1.0, 0.0), ValueError);
  CHECK_THROWS_AS(zeros({2}).normal_(0.0, -1.0), ValueError);
  CHECK_THROWS_AS(zeros({2}).bernoulli_(1.5), ValueError);
  CHECK_THROWS_AS(zeros({2}, {i64}).uniform_(), DTypeError);
  CHECK_THROWS_AS(zeros({2}, {i64}).normal_(), DTypeError);
  CHECK(zeros({2}, {i64}).bernoulli_(1.0).sum().item() == 2.0);
  CHECK_THROWS_AS(rand({2}, {i64}), DTypeError);
  const Tensor x = zeros({2, 3}, {f64});
  CHECK(rand_like(x).dtype() == f64);
  CHECK(randn_like(x).shape() == Shape{2, 3});
  CHECK(randn({2}, {.requires_grad = true}).requires_grad());
}
