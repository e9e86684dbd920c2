// Softmax, dropout, embedding, prelu, threshold. Literals are PyTorch's.
#include <cmath>
#include <limits>

#include "kiln/core/random.h"
#include "kiln/tensor/nn/embedding.h"
#include "tests/support/tensor_check.h"

using namespace kiln;
using namespace kiln::test;

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
const double kNotANumber = std::numeric_limits<double>::quiet_NaN();

// Softmax over `dim` of row-major values, and its logarithm, as plain loops.
Doubles softmax_of(const Doubles& v, const Shape& shape, int dim, bool log) {
  int64_t inner = 1;
  for (int d = dim + 1; d < shape.rank(); ++d) inner *= shape[d];
  const int64_t n = shape[dim];
  Doubles out(v.size());
  for (int64_t start = 0; start < static_cast<int64_t>(v.size()); start += n * inner) {
    for (int64_t i = 0; i < inner; ++i) {
      const auto at = [&](int64_t k) { return static_cast<size_t>(start + k * inner + i); };
      double sum = 0;
      for (int64_t k = 0; k < n; ++k) sum += std::exp(v[at(k)]);
      for (int64_t k = 0; k < n; ++k) {
        out[at(k)] = log ? v[at(k)] - std::log(sum) : std::exp(v[at(k)]) / sum;
      }
    }
  }
  return out;
}

}  // namespace

TEST_CASE("softmax and log_softmax, for every float dtype, dim and layout") {
  const Shape shape{2, 3, 4};
  Doubles v;
  for (int i = 0; i < 24; ++i) v.push_back((i * 7 % 11) * 0.5 - 2);
  on_devices(kFloatTypes, [&](Device device, DType dtype) {
    const Tensor flat = from_vector(v, shape, {dtype, device});
    for (int d = 0; d < 3; ++d) {
      INFO("dim ", d);
      for (const Tensor& x : {flat, scattered(flat)}) {
        CHECK(mismatch(x.softmax(d), shape, softmax_of(v, shape, d, false)) == "");
        CHECK(mismatch(x.log_softmax(d - 3), shape, softmax_of(v, shape, d, true)) == "");
      }
    }
    CHECK(flat.softmax(0).dtype() == dtype);
    CHECK(zeros({2, 0}, {dtype, device}).softmax(1).shape() == Shape{2, 0});
    CHECK(zeros({0, 2}, {dtype, device}).log_softmax(1).shape() == Shape{0, 2});
    CHECK(mismatch(tensor(3.0, {dtype, device}).softmax(0), {}, {1}) == "");
    CHECK(mismatch(tensor(3.0, {dtype, device}).log_softmax(-1), {}, {0}) == "");
  });
  CHECK_THROWS_AS(zeros({2}).softmax(1), IndexError);
  CHECK_THROWS_AS(zeros({2}, {i64}).softmax(0), DTypeError);
  CHECK_THROWS_AS(zeros({2}, {bool_}).log_softmax(0), DTypeError);
}

TEST_CASE("softmax of large, infinite and undefined values") {
  on_devices([](Device device) {
    for (const DType dtype : {f64, f32}) {
      const TensorOptions on{dtype, device};
      CHECK(mismatch(tensor({1000.0, 1000.0}, on).softmax(0), {2}, {0.5, 0.5}) == "");
      CHECK(mismatch(tensor({-1000.0, 0.0}, on).log_softmax(0), {2}, {-1000, 0}) == "");
      CHECK(mismatch(tensor({-kInf, 0.0}, on).softmax(0), {2}, {0, 1}) == "");
      CHECK(mismatch(tensor({-kInf, 0.0}, on).log_softmax(0), {2}, {-kInf, 0}) == "");
      CHECK(mismatch(tensor({-kInf, -kInf}, on).softmax(0), {2}, {kNotANumber, kNotANumber}) == "");
      CHECK(mismatch(tensor({kNotANumber, 0.0}, on).softmax(0), {2}, {kNotANumber, kNotANumber}) ==
            "");
    }
    // A row longer than a kernel's block.
    const int64_t n = 1031;
    const Tensor x = (arange(3 * n, {f32, device}) % 17 * 0.25).reshape({3, n});
    CHECK(x.softmax(1).sum(1).allclose(ones({3}, {f32, device})));
    CHECK(x.log_softmax(1).exp().allclose(x.softmax(1), 1e-4, 1e-9));
    CHECK(x.t().softmax(0).t().allclose(x.softmax(1), 1e-5, 1e-9));
  });
}

TEST_CASE("gradients of softmax") {
  on_devices([](Device device) {
    const TensorOptions on{f64, device};
    const Doubles v{0.5, -1, 2, 0, 1, 0.25};
    const Doubles g{1, 2, -1, 3, 0.5, 2};
    const Shape shape{2, 3};
    for (int d = 0; d < 2; ++d) {
      for (const bool gaps : {false, true}) {
        Tensor x = from_vector(v, shape, on);
        if (gaps) x = scattered(x);
        x.requires_grad_();
        const Tensor seed = from_vector(g, shape, on);
        const Doubles p = softmax_of(v, shape, d, false);
        Doubles by_softmax(6), by_log(6);
        for (size_t i = 0; i < 6; ++i) {
          double weighted = 0, total = 0;
          for (size_t j = 0; j < 6; ++j) {
            if (d == 0 ? i % 3 != j % 3 : i / 3 != j / 3) continue;
            weighted += g[j] * p[j];
            total += g[j];
          }
          by_softmax[i] = p[i] * (g[i] - weighted);
          by_log[i] = g[i] - p[i] * total;
        }
        CHECK(mismatch(*x.grad(x.softmax(d).backward(seed)), shape, by_softmax) == "");
        CHECK(mismatch(*x.grad(x.log_softmax(d).backward(seed)), shape, by_log) == "");
      }
    }
  });
}

TEST_CASE("dropout") {
  on_devices(kFloatTypes, [](Device device, DType dtype) {
    manual_seed(4);
    Tensor x = ones({200, 100}, {.dtype = dtype, .device = device, .requires_grad = true});
    const Tensor y = functional::dropout(x, 0.25);
    const Doubles v = y.to_data().to_doubles();
    int64_t zeroed = 0;
    bool two_values = true;
    const double kept = full({1}, 1.0 / 0.75, {dtype}).item();
    for (double a : v) {
      zeroed += a == 0;
      two_values = two_values && (a == 0 || std::abs(a - kept) <= 0.01 * kept);
    }
    CHECK(two_values);
    CHECK(std::abs(static_cast<double>(zeroed) / 20000 - 0.25) < 0.016);
    // The gradient falls through the same mask.
    const Tensor g = *x.grad(y.backward(ones_like(y)));
    CHECK(g.equal(y.detach()));
    CHECK(functional::dropout(x, 0.5, false).is_same(x));
    CHECK(functional::dropout(x, 0.0).is_same(x));
    CHECK(mismatch(functional::dropout(x[0].slice(0, 0, 2), 1.0), {2}, {0, 0}) == "");
    CHECK(functional::dropout(zeros({0, 3}, {dtype, device})).shape() == Shape{0, 3});
    CHECK(functional::dropout(scattered(x.detach()), 0.5).shape() == x.shape());
  });
  CHECK_THROWS_AS(functional::dropout(ones({2}), -0.1), ValueError);
  CHECK_THROWS_AS(functional::dropout(ones({2}), 1.1), ValueError);
  CHECK_THROWS_AS(functional::dropout(ones({2}), kNotANumber), ValueError);
  CHECK_THROWS_AS(functional::dropout(ones({2}, {i64}), 0.5), DTypeError);
}

TEST_CASE("embedding") {
  on_devices(kFloatTypes, [](Device device, DType dtype) {
    Tensor w = tensor({{1, 2}, {3, 4}, {5, 6}}, {dtype, device});
    for (const DType index_type : {i64, i32, u8}) {
      const Tensor i = tensor({{2, 0}, {2, 1}}, {index_type, device});
      CHECK(mismatch(functional::embedding(i, w), {2, 2, 2}, {5, 6, 1, 2, 5, 6, 3, 4}) == "");
      CHECK(mismatch(functional::embedding(scattered(i), scattered(w)), {2, 2, 2},
                     {5, 6, 1, 2, 5, 6, 3, 4}) == "");
    }
    const Tensor i = tensor({{2, 0}, {2, 1}}, {i64, device});
    CHECK(mismatch(functional::embedding(tensor(1, {i64, device}), w), {2}, {3, 4}) == "");
    CHECK(functional::embedding(zeros({0}, {i64, device}), w).shape() == Shape{0, 2});
    w.requires_grad_();
    const Tensor y = functional::embedding(i, w);
    const Tensor seed = arange(8, {dtype, device}).reshape({2, 2, 2});
    CHECK(mismatch(*w.grad(y.backward(seed)), {3, 2}, {2, 3, 6, 7, 4, 6}) == "");
  });
  const Tensor w = ones({3, 2});
  CHECK_THROWS_AS(functional::embedding(tensor({3}), w), IndexError);
  CHECK_THROWS_AS(functional::embedding(tensor({-1}), w), IndexError);
  CHECK_THROWS_AS(functional::embedding(tensor({0.5}), w), DTypeError);
  CHECK_THROWS_AS(functional::embedding(tensor({0}), w[0]), ShapeError);
  // A table of integers, as PyTorch has it.
  const Tensor table = tensor({{1, 2}, {3, 4}}, {i64});
  CHECK(functional::embedding(tensor({1, 0}), table).equal(tensor({{3, 4}, {1, 2}}, {i64})));
}

TEST_CASE("prelu") {
  on_devices(kFloatTypes, [](Device device, DType dtype) {
    const TensorOptions on{dtype, device};
    const Tensor flat = tensor({{-2, 4, -1}, {0, -4, 8}}, on);
    const Tensor one = tensor({0.25}, on);
    const Tensor each = tensor({0.5, 0.25, 2}, on);
    for (const Tensor& x : {flat, scattered(flat)}) {
      CHECK(mismatch(functional::prelu(x, one), {2, 3}, {-0.5, 4, -0.25, 0, -1, 8}) == "");
      CHECK(mismatch(functional::prelu(x, each), {2, 3}, {-1, 4, -2, 0, -1, 8}) == "");
    }
    CHECK(mismatch(functional::prelu(flat[0], one), {3}, {-0.5, 4, -0.25}) == "");
    CHECK(mismatch(functional::prelu(flat[0][0], one), {}, {-0.5}) == "");
    CHECK(mismatch(functional::prelu(flat[0][0], one[0]), {}, {-0.5}) == "");
    CHECK(mismatch(functional::prelu(flat.unsqueeze(2), each), {2, 3, 1}, {-1, 4, -2, 0, -1, 8}) ==
          "");
    CHECK(functional::prelu(zeros({0, 3}, on), each).shape() == Shape{0, 3});
    CHECK(mismatch(functional::prelu(tensor({kInf, -kInf, kNotANumber}, on), one), {3},
                   {kInf, -kInf, kNotANumber}) == "");
  });
  on_devices([](Device device) {
    const TensorOptions on{f64, device};
    Tensor x = tensor({{-2, 4, -1}, {0, -4, 8}}, on).requires_grad_();
    Tensor w = tensor({0.5, 0.25, 2}, on).requires_grad_();
    const Gradients grads = functional::prelu(x, w).backward(tensor({{1, 2, 3}, {4, 5, 6}}, on));
    CHECK(mismatch(*x.grad(grads), {2, 3}, {0.5, 2, 6, 2, 1.25, 6}) == "");  // at 0: the slope
    CHECK(mismatch(*w.grad(grads), {3}, {-2, -20, -3}) == "");
    Tensor one = tensor({0.25}, on).requires_grad_();
    CHECK(mismatch(*one.grad(functional::prelu(x, one).sum().backward()), {1}, {-7}) == "");
    CHECK(mismatch(*one.grad(functional::prelu(tensor({kInf}, on), one).backward()), {1}, {0}) ==
          "");
  });
  CHECK_THROWS_AS(functional::prelu(ones({2, 3}), ones({2})), ValueError);
  CHECK_THROWS_AS(functional::prelu(ones({3}), ones({3})), ValueError);
  CHECK_THROWS_AS(functional::prelu(ones({2, 3}), ones({1, 3})), ValueError);
  CHECK_THROWS_AS(functional::prelu(ones({2, 3}), ones({3}, {f64})), DTypeError);
  CHECK_THROWS_AS(functional::prelu(ones({2, 3}, {i64}), ones({3}, {i64})), DTypeError);
}

TEST_CASE("threshold") {
  on_devices(kFloatTypes, [](Device device, DType dtype) {
    Tensor x = tensor({-1.0, 0.5, 1.0, 2.0, kNotANumber, kInf, -kInf}, {dtype, device});
    CHECK(mismatch(functional::threshold(x, 0.5, 9.0), {7}, {9, 9, 1, 2, kNotANumber, kInf, 9}) ==
          "");
    CHECK(mismatch(functional::threshold(scattered(x), 1.0, -3.5), {7},
                   {-3.5, -3.5, -3.5, 2, kNotANumber, kInf, -3.5}) == "");
    x.requires_grad_();
    const Tensor y = functional::threshold(x, 0.5, 9.0);
    CHECK(mismatch(*x.grad(y.backward(ones({7}, {dtype, device}))), {7}, {0, 0, 1, 1, 1, 1, 0}) ==
          "");
  });
  on_devices([](Device device) {
    for (const DType dtype : {i64, i32, i16, i8}) {
      const Tensor x = tensor({0, 1, -1, 2}, {dtype, device});
      // Both numbers are truncated to integers.
      CHECK(mismatch(functional::threshold(x, -0.5, 9), {4}, {9, 1, 9, 2}) == "");
      CHECK(mismatch(functional::threshold(x, 0.5, 9), {4}, {9, 1, 9, 2}) == "");
      CHECK(mismatch(functional::threshold(x, 1.5, 9.7), {4}, {9, 9, 9, 2}) == "");
      CHECK(functional::threshold(x, 1.5, 9.7).dtype() == dtype);
    }
    const int64_t big = (int64_t{1} << 24) + 1;  // no float32
    CHECK(functional::threshold(tensor({big}, {.device = device}), 16777216.0, 0).item<int64_t>() ==
          big);
  });
}
