// Reductions. The literals are PyTorch's; what runs over every dtype is compared with plain loops.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "tests/support/tensor_check.h"

using namespace kiln;
using namespace kiln::test;

namespace {

constexpr double kReduceInf = std::numeric_limits<double>::infinity();
const double kReduceNan = std::numeric_limits<double>::quiet_NaN();

const Doubles kValues{-1, 6, 2,  -2, 5, 1,  -3, 4, 0,  -4, 3,  -1,
                      6,  2, -2, 5,  1, -3, 4,  0, -4, 3,  -1, 6};

Tensor sample(DType dtype, Device device) {
  return from_vector(kValues, {2, 3, 4}, {dtype, device});
}

// The groups of row-major elements that a reduction of `shape` over `dims` brings together.
std::vector<Doubles> groups(const Doubles& values, const Shape& shape, const Dims& dims) {
  const Shape kept = reduced_shape(shape, dims, true);
  std::vector<Doubles> out(static_cast<size_t>(kept.numel()));
  for (size_t i = 0; i < values.size(); ++i) {
    int64_t rest = static_cast<int64_t>(i);
    int64_t to = 0;
    int64_t weight = 1;
    for (int d = shape.rank() - 1; d >= 0; --d) {
      if (kept[d] != 1 || shape[d] == 1) to += (rest % shape[d]) * weight;
      weight *= kept[d];
      rest /= shape[d];
    }
    out[static_cast<size_t>(to)].push_back(values[i]);
  }
  return out;
}

Doubles reduced(const Doubles& values, const Shape& shape, const Dims& dims,
                const std::function<double(const Doubles&)>& f) {
  Doubles out;
  for (const Doubles& group : groups(values, shape, dims)) out.push_back(f(group));
  return out;
}

double plain_sum(const Doubles& v) {
  double s = 0;
  for (double x : v) s += x;
  return s;
}
double mean_of(const Doubles& v) { return plain_sum(v) / static_cast<double>(v.size()); }
double plain_product(const Doubles& v) {
  double s = 1;
  for (double x : v) s *= x;
  return s;
}
double largest(const Doubles& v) { return *std::max_element(v.begin(), v.end()); }
double smallest(const Doubles& v) { return *std::min_element(v.begin(), v.end()); }
double variance(const Doubles& v, double correction) {
  const double m = mean_of(v);
  double s = 0;
  for (double x : v) s += (x - m) * (x - m);
  return s / (static_cast<double>(v.size()) - correction);
}

}  // namespace

TEST_CASE("over any dims, for every dtype and layout") {
  const Shape shape{2, 3, 4};
  const Dims cases[] = {{0}, {1}, {2}, {0, 1}, {0, 2}, {1, 2}, {2, 0}, {0, 1, 2}};
  on_devices(kNumberTypes, [&](Device device, DType dtype) {
    Doubles v = kValues;
    if (dtype == u8) {
      for (double& x : v) x += 4;
    }
    const Tensor flat = from_vector(v, shape, {dtype, device});
    for (const Dims& dims : cases) {
      INFO("dims ", to_string(dims));
      const Shape kept = reduced_shape(shape, dims, true);
      const Shape dropped = reduced_shape(shape, dims, false);
      Dims negative = dims;
      for (int64_t& d : negative) d -= 3;
      for (const Tensor& x : {flat, scattered(flat)}) {
        const Doubles sums = reduced(v, shape, dims, plain_sum);
        CHECK(mismatch(x.sum(dims), dropped, sums) == "");
        CHECK(mismatch(x.sum(negative, true), kept, sums) == "");
        CHECK(x.sum(dims).dtype() == (is_floating_point(dtype) ? dtype : i64));
        CHECK(mismatch(x.amax(dims), dropped, reduced(v, shape, dims, largest)) == "");
        CHECK(mismatch(x.amin(negative, true), kept, reduced(v, shape, dims, smallest)) == "");
        CHECK(x.amax(dims).dtype() == dtype);
        if (!is_floating_point(dtype)) continue;
        CHECK(mismatch(x.mean(dims), dropped, reduced(v, shape, dims, mean_of)) == "");
        CHECK(mismatch(x.mean(negative, true), kept, reduced(v, shape, dims, mean_of)) == "");
        for (const double correction : {0.0, 1.0}) {
          CHECK(mismatch(x.var(dims, correction), dropped, reduced(v, shape, dims, [&](auto& g) {
                           return variance(g, correction);
                         })) == "");
          CHECK(mismatch(x.std(dims, correction, true), kept, reduced(v, shape, dims, [&](auto& g) {
                           return std::sqrt(variance(g, correction));
                         })) == "");
        }
        CHECK(mismatch(x.logsumexp(dims, true), kept, reduced(v, shape, dims, [](auto& g) {
                         double s = 0;
                         for (double a : g) s += std::exp(a);
                         return std::log(s);
                       })) == "");
      }
    }
    for (int d = 0; d < 3; ++d) {
      if (dtype == u8 || dtype == i8)
        break;  // products leave their range only as i64: tested below
      for (const Tensor& x : {flat, scattered(flat)}) {
        CHECK(mismatch(x.prod(d), reduced_shape(shape, {d}, false),
                       reduced(v, shape, {d}, plain_product)) == "");
        CHECK(mismatch(x.prod(d - 3, true), reduced_shape(shape, {d}, true),
                       reduced(v, shape, {d}, plain_product)) == "");
      }
    }
  });
}

TEST_CASE("everything at once, and dims as plain numbers") {
  on_devices([](Device device) {
    const Tensor x = sample(f64, device);
    CHECK(mismatch(x.sum(), {}, {27}) == "");
    CHECK(mismatch(x.mean(), {}, {27.0 / 24}) == "");
    CHECK(mismatch(x.var(), {}, {10.809782608695652}) == "");
    CHECK(mismatch(x.std(), {}, {std::sqrt(10.809782608695652)}) == "");
    CHECK(mismatch(x.max(), {}, {6}) == "");
    CHECK(mismatch(x.min(), {}, {-4}) == "");
    CHECK(mismatch(x.norm(), {}, {16.703293088490067}) == "");
    CHECK(mismatch(x.prod(), {}, {0}) == "");
    // An empty list of dims means all of them, as in PyTorch.
    CHECK(mismatch(x.sum(Dims{}), {}, {27}) == "");
    CHECK(mismatch(x.mean(Dims{}, true), {1, 1, 1}, {27.0 / 24}) == "");
    CHECK(mismatch(x.amax(), {}, {6}) == "");
    CHECK(mismatch(x.var(Dims{}, 0), {}, {10.809782608695652 * 23 / 24}) == "");
    // x.sum(1) is x.sum({1}).
    CHECK(mismatch(x.sum(1), {2, 4}, {4, 3, 2, 1, 3, 2, 1, 11}) == "");
    CHECK(mismatch(x.mean(-1), {2, 3}, {1.25, 1.75, -0.5, 2.75, 0.5, 1}) == "");
    CHECK(mismatch(x.sum(-1, true), {2, 3, 1}, {5, 7, -2, 11, 2, 4}) == "");
    CHECK(mismatch(x.amin(2), {2, 3}, {-2, -3, -4, -2, -3, -4}) == "");
    CHECK(mismatch(x.amax({0, 1}), {4}, {6, 6, 4, 6}) == "");
    CHECK(x.var(0).shape() == Shape{3, 4});
    CHECK(x.var({0}).shape() == Shape{3, 4});
    CHECK(x.std({-1}).shape() == Shape{2, 3});
    CHECK(mismatch(x.logsumexp({0, 2}), {3},
                   {6.878004488854457, 5.576500454769977, 6.098910466173066}) == "");
    CHECK(x.logsumexp(1).shape() == Shape{2, 4});
  });
}

TEST_CASE("integers and bools sum and multiply as int64") {
  on_devices([](Device device) {
    CHECK(tensor({200, 100}, {u8, device}).sum().item<int64_t>() == 300);
    CHECK(tensor({100, 100}, {i8, device}).prod().item<int64_t>() == 10000);
    CHECK(mismatch(tensor({{100, 2}, {100, 3}}, {i8, device}).prod(0), {2}, {10000, 6}) == "");
    const int64_t big = (int64_t{1} << 60) + 1;
    CHECK(tensor({big, 1}, {.device = device}).sum().item<int64_t>() == big + 1);
    const Tensor mask = tensor({{true, false}, {true, true}}, {.device = device});
    CHECK(mask.sum().dtype() == i64);
    CHECK(mismatch(mask.sum(0), {2}, {2, 1}) == "");
    CHECK(mismatch(mask.prod(1), {2}, {0, 1}) == "");
    CHECK(mismatch(mask.cumsum(0), {2, 2}, {1, 0, 2, 1}) == "");
    CHECK(mismatch(mask.max(), {}, {1}) == "");
    CHECK(mask.amin(0).dtype() == bool_);
    CHECK(mismatch(mask.amin(0), {2}, {1, 0}) == "");
    CHECK(mismatch(mask.argmin(1), {2}, {1, 0}) == "");
    CHECK(mismatch(mask.max(0).first, {2}, {1, 1}) == "");
    CHECK_THROWS_AS(mask.mean(), DTypeError);
    CHECK_THROWS_AS(tensor({1, 2}, {.device = device}).mean(), DTypeError);
    CHECK_THROWS_AS(tensor({1, 2}, {.device = device}).var(), DTypeError);
    CHECK_THROWS_AS(tensor({1, 2}, {.device = device}).norm(), DTypeError);
  });
}

TEST_CASE("positions of extrema, for every dtype and layout") {
  on_devices(kNumberTypes, [](Device device, DType dtype) {
    const double up = dtype == u8 ? 4 : 0;
    Doubles v = kValues;
    for (double& a : v) a += up;
    const Tensor flat = from_vector(v, {2, 3, 4}, {dtype, device});
    for (const Tensor& x : {flat, scattered(flat)}) {
      CHECK(mismatch(x.argmax(1), {2, 4}, {1, 0, 2, 1, 0, 2, 1, 2}) == "");
      CHECK(mismatch(x.argmin(-1), {2, 3}, {3, 2, 1, 2, 1, 0}) == "");
      CHECK(mismatch(x.argmin(2, true), {2, 3, 1}, {3, 2, 1, 2, 1, 0}) == "");
      CHECK(mismatch(x.argmax(), {}, {1}) == "");
      CHECK(mismatch(x.argmin(), {}, {9}) == "");
      CHECK(x.argmax(1).dtype() == i64);
      const auto [most, at] = x.max(2);
      CHECK(mismatch(most, {2, 3}, {6 + up, 5 + up, 3 + up, 6 + up, 4 + up, 6 + up}) == "");
      CHECK(mismatch(at, {2, 3}, {1, 0, 2, 0, 2, 3}) == "");
      CHECK(most.dtype() == dtype);
      const auto [least, where_least] = x.min(0, true);
      CHECK(mismatch(where_least, {1, 3, 4}, {0, 1, 1, 0, 1, 1, 0, 1, 1, 0, 1, 0}) == "");
      CHECK(least.shape() == Shape{1, 3, 4});
      CHECK(least[0][0][2].item() == -2 + up);
    }
    CHECK(mismatch(tensor({2, 3, 3}, {dtype, device}).argmax(), {}, {1}) == "");  // the first
    CHECK(mismatch(tensor({2, 2, 3}, {dtype, device}).min(0).second, {}, {0}) == "");
  });
}

TEST_CASE("any and all") {
  on_devices(kAllTypes, [](Device device, DType dtype) {
    const Tensor x = tensor({{0, 1, 0}, {0, 1, 1}}, {dtype, device});
    CHECK(x.any().item<bool>());
    CHECK_FALSE(x.all().item<bool>());
    CHECK(x.any().dtype() == bool_);
    CHECK(mismatch(x.any(0), {3}, {0, 1, 1}) == "");
    CHECK(mismatch(x.all(0), {3}, {0, 1, 0}) == "");
    CHECK(mismatch(x.any(-1, true), {2, 1}, {1, 1}) == "");
    CHECK(mismatch(x.t().all(1), {3}, {0, 1, 0}) == "");
    CHECK_FALSE(zeros({0}, {dtype, device}).any().item<bool>());
    CHECK(zeros({0}, {dtype, device}).all().item<bool>());
  });
  on_devices([](Device device) {
    const Tensor x = tensor({kReduceNan, 0.0}, {.device = device});
    CHECK(x.any().item<bool>());
    CHECK_FALSE(x.all().item<bool>());
  });
}

TEST_CASE("NaN wins") {
  on_devices(kFloatTypes, [](Device device, DType dtype) {
    const Tensor x = tensor({{1.0, kReduceNan, 3.0}, {4.0, -kReduceInf, 2.0}}, {dtype, device});
    CHECK(mismatch(x.max(), {}, {kReduceNan}) == "");
    CHECK(mismatch(x.min(), {}, {kReduceNan}) == "");
    CHECK(mismatch(x.amax(1), {2}, {kReduceNan, 4}) == "");
    CHECK(mismatch(x.amin(1), {2}, {kReduceNan, -kReduceInf}) == "");
    CHECK(mismatch(x.max(1).second, {2}, {1, 0}) == "");
    CHECK(mismatch(x.argmin(1), {2}, {1, 1}) == "");
    CHECK(mismatch(x.argmax(), {}, {1}) == "");
    CHECK(mismatch(x.sum(0), {3}, {5, kReduceNan, 5}) == "");
    CHECK(mismatch(x.mean(1), {2}, {kReduceNan, -kReduceInf}) == "");
    CHECK(mismatch(x.logsumexp(1)[0], {}, {kReduceNan}) == "");
  });
}

TEST_CASE("logsumexp stays finite, and knows infinities") {
  on_devices([](Device device) {
    const TensorOptions on{f64, device};
    CHECK(mismatch(tensor({1000.0, 1000.0}, on).logsumexp(0), {}, {1000 + std::log(2.0)}) == "");
    CHECK(mismatch(tensor({-1000.0, -1000.0}, on).logsumexp(0), {}, {-1000 + std::log(2.0)}) == "");
    CHECK(mismatch(tensor({-kReduceInf, -kReduceInf}, on).logsumexp(0), {}, {-kReduceInf}) == "");
    CHECK(mismatch(tensor({kReduceInf, 1.0}, on).logsumexp(0), {}, {kReduceInf}) == "");
    CHECK(mismatch(tensor({-kReduceInf, 1.0}, on).logsumexp(0), {}, {1}) == "");
    CHECK(mismatch(zeros({2, 0}, on).logsumexp(1), {2}, {-kReduceInf, -kReduceInf}) == "");
  });
}

TEST_CASE("nothing to reduce") {
  on_devices(kFloatTypes, [](Device device, DType dtype) {
    const TensorOptions on{dtype, device};
    const Tensor x = zeros({2, 0, 3}, on);
    CHECK(mismatch(x.sum(), {}, {0}) == "");
    CHECK(mismatch(x.sum(1), {2, 3}, {0, 0, 0, 0, 0, 0}) == "");
    CHECK(mismatch(x.sum(0), {0, 3}, {}) == "");
    CHECK(mismatch(x.sum(1, true), {2, 1, 3}, {0, 0, 0, 0, 0, 0}) == "");
    CHECK(mismatch(x.prod(1)[0], {3}, {1, 1, 1}) == "");
    CHECK(mismatch(x.mean(), {}, {kReduceNan}) == "");
    CHECK(mismatch(x.mean(1)[0], {3}, {kReduceNan, kReduceNan, kReduceNan}) == "");
    CHECK(mismatch(x.var(), {}, {kReduceNan}) == "");
    CHECK(mismatch(x.norm(), {}, {0}) == "");
    CHECK(mismatch(x.amax(0), {0, 3}, {}) == "");
    CHECK(mismatch(x.argmax(2), {2, 0}, {}) == "");
    CHECK(x.max(2).first.shape() == Shape{2, 0});
    CHECK(x.cumsum(1).shape() == Shape{2, 0, 3});
    CHECK_THROWS_AS(x.max(), ShapeError);
    CHECK_THROWS_AS(x.amin(1), ShapeError);
    CHECK_THROWS_AS(x.argmax(), ShapeError);
    CHECK_THROWS_AS(x.argmin(1), ShapeError);
    CHECK_THROWS_AS(x.max(1), ShapeError);
    // One value has no spread to estimate.
    CHECK(mismatch(ones({1}, on).var(), {}, {kReduceNan}) == "");
    CHECK(mismatch(ones({1}, on).var({0}, 0), {}, {0}) == "");
    CHECK(mismatch(ones({3}, on).var({0}, 5), {}, {kReduceNan}) == "");
  });
}

TEST_CASE("a 0-d tensor may be reduced over dim 0 or -1") {
  on_devices(kNumberTypes, [](Device device, DType dtype) {
    const Tensor x = tensor(5, {dtype, device});
    CHECK(mismatch(x.sum(0), {}, {5}) == "");
    CHECK(mismatch(x.sum(-1, true), {}, {5}) == "");
    CHECK(mismatch(x.prod(0), {}, {5}) == "");
    CHECK(mismatch(x.amax(0), {}, {5}) == "");
    CHECK(mismatch(x.max(0).first, {}, {5}) == "");
    CHECK(mismatch(x.max(-1, true).second, {}, {0}) == "");
    CHECK(mismatch(x.argmin(), {}, {0}) == "");
    CHECK(mismatch(x.argmax(-1, true), {}, {0}) == "");
    CHECK(mismatch(x.cumsum(0), {}, {5}) == "");
    CHECK(x.any(0).item<bool>());
    if (is_floating_point(dtype)) {
      CHECK(mismatch(x.mean(0), {}, {5}) == "");
      CHECK(mismatch(x.logsumexp(0), {}, {5}) == "");
      CHECK(mismatch(x.norm(), {}, {5}) == "");
    }
    CHECK_THROWS_AS(x.sum(1), IndexError);
  });
}

TEST_CASE("cumsum, for every dtype and layout") {
  on_devices(kNumberTypes, [](Device device, DType dtype) {
    const Tensor flat = tensor({{1, 2, 3}, {4, 5, 6}}, {dtype, device});
    for (const Tensor& x : {flat, scattered(flat)}) {
      CHECK(mismatch(x.cumsum(0), {2, 3}, {1, 2, 3, 5, 7, 9}) == "");
      CHECK(mismatch(x.cumsum(-1), {2, 3}, {1, 3, 6, 4, 9, 15}) == "");
    }
    CHECK(flat.cumsum(0).dtype() == (is_floating_point(dtype) ? dtype : i64));
  });
}

TEST_CASE("long reductions keep their accuracy") {
  on_devices([](Device device) {
    const int64_t n = device.type == kCpu ? 3000001 : 300001;
    CHECK(std::abs(full({n}, 0.1, {f32, device}).sum().item() / (0.1 * static_cast<double>(n)) -
                   1) < 1e-6);
    CHECK(ones({100000}, {f16, device}).mean().item() == 1.0);
    CHECK(ones({3000}, {bf16, device}).sum().item() == 3008.0);  // 3000 rounded to 8 bits
    // A variance small beside the mean.
    const Tensor x = arange(100000, {f32, device}) % 2 + 10000.0;
    CHECK(std::abs(x.var().item() - 0.25) < 1e-4);
    // Squares beyond the range of f16.
    CHECK(tensor({300.0, 400.0}, {f16, device}).norm().item() == 500.0);
    CHECK(std::abs(tensor({-400.0, 400.0}, {f16, device}).std().item() - 565.5) < 0.5);
  });
}

TEST_CASE("gradients") {
  on_devices([](Device device) {
    const TensorOptions on{f64, device};
    const auto slope = [&](const Tensor& x, const std::function<Tensor(const Tensor&)>& f) {
      Tensor leaf = x.clone().requires_grad_();
      const Tensor out = f(leaf);
      const Tensor seed = arange(out.numel(), on).reshape(out.shape()) + 1.0;
      return *leaf.grad(out.backward(seed));
    };
    const Tensor x = tensor({{1.0, 2.0, 4.0}, {3.0, 3.0, 0.5}}, on);
    for (const Tensor& v : {x, scattered(x)}) {
      CHECK(mismatch(slope(v, [](auto& t) { return t.sum(); }), {2, 3}, {1, 1, 1, 1, 1, 1}) == "");
      CHECK(mismatch(slope(v, [](auto& t) { return t.sum(0); }), {2, 3}, {1, 2, 3, 1, 2, 3}) == "");
      CHECK(mismatch(slope(v, [](auto& t) { return t.sum(1, true); }), {2, 3},
                     {1, 1, 1, 2, 2, 2}) == "");
      CHECK(mismatch(slope(v, [](auto& t) { return t.mean(1); }), {2, 3},
                     {1. / 3, 1. / 3, 1. / 3, 2. / 3, 2. / 3, 2. / 3}) == "");
      CHECK(mismatch(slope(v, [](auto& t) { return t.prod(1); }), {2, 3}, {8, 4, 2, 3, 3, 18}) ==
            "");
      // Equal extrema share the gradient (amax), or the first takes it (max over a dim).
      CHECK(mismatch(slope(v, [](auto& t) { return t.amax(1); }), {2, 3}, {0, 0, 1, 1, 1, 0}) ==
            "");
      CHECK(mismatch(slope(v, [](auto& t) { return t.max(1).first; }), {2, 3},
                     {0, 0, 1, 2, 0, 0}) == "");
      CHECK(mismatch(slope(v, [](auto& t) { return t.max(); }), {2, 3}, {0, 0, 1, 0, 0, 0}) == "");
      CHECK(mismatch(slope(v, [](auto& t) { return t.amin(0); }), {2, 3}, {1, 2, 0, 0, 0, 3}) ==
            "");
      CHECK(mismatch(slope(v, [](auto& t) { return t.cumsum(1); }), {2, 3}, {6, 5, 3, 15, 11, 6}) ==
            "");
      CHECK(mismatch(slope(v, [](auto& t) { return t.norm(); }), {2, 3},
                     {1 / 6.264982043070834, 2 / 6.264982043070834, 4 / 6.264982043070834,
                      3 / 6.264982043070834, 3 / 6.264982043070834, 0.5 / 6.264982043070834}) ==
            "");
      const double m = 7.0 / 3;
      CHECK(mismatch(slope(v[0], [](auto& t) { return t.var(0); }), {3}, {1 - m, 2 - m, 4 - m}) ==
            "");
      CHECK(mismatch(slope(v[0], [](auto& t) { return t.var({0}, 0); }), {3},
                     {(1 - m) * 2 / 3, (2 - m) * 2 / 3, (4 - m) * 2 / 3}) == "");
      const double total = std::exp(1.0) + std::exp(2.0) + std::exp(4.0);
      CHECK(mismatch(slope(v[0], [](auto& t) { return t.logsumexp(0); }), {3},
                     {std::exp(1.0) / total, std::exp(2.0) / total, std::exp(4.0) / total}) == "");
    }
    // Products around a zero, and two of them.
    CHECK(mismatch(slope(tensor({2.0, 0.0, 5.0}, on), [](auto& t) { return t.prod(); }), {3},
                   {0, 10, 0}) == "");
    CHECK(mismatch(slope(tensor({0.0, 0.0, 5.0}, on), [](auto& t) { return t.prod(0); }), {3},
                   {0, 0, 0}) == "");
    // Nothing flows where there was nothing.
    CHECK(slope(zeros({0, 2}, on), [](auto& t) { return t.sum(); }).shape() == Shape{0, 2});
  });
}

TEST_CASE("norm and std have gradient 0 where they are 0") {
  on_devices(kFloatTypes, [](Device device, DType dtype) {
    Tensor x = zeros({3}, {.dtype = dtype, .device = device, .requires_grad = true});
    CHECK(mismatch(*x.grad(x.norm().backward()), {3}, {0, 0, 0}) == "");
    Tensor y = ones({2, 3}, {.dtype = dtype, .device = device, .requires_grad = true});
    CHECK(mismatch(*y.grad(y.std().backward()), {2, 3}, {0, 0, 0, 0, 0, 0}) == "");
    CHECK(x.norm().dtype() == dtype);
    CHECK(mismatch(x.norm(), {}, {0}) == "");
  });
}

TEST_CASE("dims that are wrong") {
  const Tensor x = zeros({2, 3});
  CHECK_THROWS_AS(x.sum(2), IndexError);
  CHECK_THROWS_AS(x.sum(-3), IndexError);
  CHECK_THROWS_AS(x.mean({0, 0}), ValueError);
  CHECK_THROWS_AS(x.sum({0, -2}), ValueError);
  CHECK_THROWS_AS(x.argmax(5), IndexError);
  CHECK_THROWS_AS(x.cumsum(2), IndexError);
  CHECK_THROWS_AS(x.any(2), IndexError);
}
