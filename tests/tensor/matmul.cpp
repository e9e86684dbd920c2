// Products of vectors, matrices and batches of them, compared with plain loops.
#include <array>
#include <cmath>
#include <limits>

#include "kiln/tensor/complex/complex.h"
#include "tests/support/tensor_check.h"

using namespace kiln;
using namespace kiln::test;

namespace {

// Small integers that every dtype holds and whose products it sums exactly.
Doubles numbers(int64_t n, int start) {
  Doubles out;
  for (int64_t i = 0; i < n; ++i) out.push_back(static_cast<double>((i * 7 + start) % 4));
  return out;
}

// x [.., n, k] times y [.., k, m] with batch dims broadcast; vectors as PyTorch treats them.
struct Product {
  Shape shape;
  Doubles values;
};
Product product(const Shape& xs, const Doubles& x, const Shape& ys, const Doubles& y) {
  Shape a = xs;
  Shape b = ys;
  if (a.rank() == 1) a.insert(0, 1);
  if (b.rank() == 1) b.push_back(1);
  const int64_t n = a[a.rank() - 2], k = a.back(), m = b.back();
  Shape a_batch, b_batch;
  for (int i = 0; i + 2 < a.rank(); ++i) a_batch.push_back(a[i]);
  for (int i = 0; i + 2 < b.rank(); ++i) b_batch.push_back(b[i]);
  const Shape batch = broadcast_shapes("test", a_batch, b_batch);
  // The batch of an operand that result batch `at` reads.
  const auto source = [&](const Shape& s, int64_t at) {
    int64_t out = 0, weight = 1;
    for (int d = batch.rank() - 1; d >= 0; --d) {
      const int own = d - (batch.rank() - s.rank());
      if (own >= 0) {
        out += (s[own] == 1 ? 0 : at % batch[d]) * weight;
        weight *= s[own];
      }
      at /= batch[d];
    }
    return out;
  };
  Product out;
  for (int64_t at = 0; at < batch.numel(); ++at) {
    const int64_t ao = source(a_batch, at) * n * k, bo = source(b_batch, at) * k * m;
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = 0; j < m; ++j) {
        double sum = 0;
        for (int64_t p = 0; p < k; ++p) {
          sum += x[static_cast<size_t>(ao + i * k + p)] * y[static_cast<size_t>(bo + p * m + j)];
        }
        out.values.push_back(sum);
      }
    }
  }
  out.shape = batch;
  if (xs.rank() > 1) out.shape.push_back(n);
  if (ys.rank() > 1) out.shape.push_back(m);
  return out;
}

const std::pair<Shape, Shape> kProductShapes[] = {
    {{3}, {3}},
    {{2, 3}, {3}},
    {{3}, {3, 4}},
    {{2, 3}, {3, 4}},
    {{5, 2, 3}, {3}},
    {{3}, {5, 3, 4}},
    {{5, 2, 3}, {3, 4}},
    {{2, 3}, {5, 3, 4}},
    {{5, 2, 3}, {5, 3, 4}},
    {{1, 2, 3}, {5, 3, 4}},
    {{5, 2, 3}, {1, 3, 4}},
    {{2, 1, 2, 3}, {3, 3, 4}},
    {{2, 1, 2, 3}, {1, 3, 3, 2}},
    {{1, 1}, {1, 1}},
    {{1}, {1}},
    {{3, 1}, {1, 3}},
    {{2, 2, 2, 3}, {3}},
};

}  // namespace

TEST_CASE("every combination of ranks, for every dtype and layout") {
  on_devices(kNumberTypes, [](Device device, DType dtype) {
    for (const auto& [xs, ys] : kProductShapes) {
      INFO(to_string(xs), " x ", to_string(ys));
      const Doubles xv = numbers(xs.numel(), 1), yv = numbers(ys.numel(), 2);
      const Tensor x = from_vector(xv, xs, {dtype, device});
      const Tensor y = from_vector(yv, ys, {dtype, device});
      const Product expected = product(xs, xv, ys, yv);
      CHECK(mismatch(x.matmul(y), expected.shape, expected.values) == "");
      CHECK(x.matmul(y).dtype() == dtype);
      CHECK(mismatch(scattered(x).matmul(y), expected.shape, expected.values) == "");
      CHECK(mismatch(x.matmul(scattered(y)), expected.shape, expected.values) == "");
      if (ys.rank() >= 2) {
        CHECK(mismatch(x.matmul(y.transpose(-1, -2).contiguous().transpose(-1, -2)), expected.shape,
                       expected.values) == "");
      }
      if (xs.rank() >= 2) {
        CHECK(mismatch(x.transpose(-1, -2).contiguous().transpose(-1, -2).matmul(y), expected.shape,
                       expected.values) == "");
      }
    }
  });
}

TEST_CASE("gradients of both operands") {
  on_devices([](Device device) {
    for (const auto& [xs, ys] : kProductShapes) {
      INFO(to_string(xs), " x ", to_string(ys));
      const Doubles xv = numbers(xs.numel(), 1), yv = numbers(ys.numel(), 2);
      Tensor x = from_vector(xv, xs, {f64, device}).requires_grad_();
      Tensor y = from_vector(yv, ys, {f64, device}).requires_grad_();
      const Tensor out = x.matmul(y);
      const Doubles seed = numbers(out.numel(), 3);
      const Gradients grads = out.backward(from_vector(seed, out.shape(), {f64, device}));
      // The result is linear in each element: its slope is the change of the weighted sum by one.
      const auto weighted = [&](const Doubles& a, const Doubles& b) {
        const Product p = product(xs, a, ys, b);
        double sum = 0;
        for (size_t i = 0; i < seed.size(); ++i) sum += seed[i] * p.values[i];
        return sum;
      };
      const double base = weighted(xv, yv);
      Doubles gx, gy;
      for (size_t i = 0; i < xv.size(); ++i) {
        Doubles moved = xv;
        moved[i] += 1;
        gx.push_back(weighted(moved, yv) - base);
      }
      for (size_t i = 0; i < yv.size(); ++i) {
        Doubles moved = yv;
        moved[i] += 1;
        gy.push_back(weighted(xv, moved) - base);
      }
      CHECK(mismatch(*x.grad(grads), xs, gx) == "");
      CHECK(mismatch(*y.grad(grads), ys, gy) == "");
    }
  });
}

TEST_CASE("empty sizes") {
  on_devices(kNumberTypes, [](Device device, DType dtype) {
    const auto empty_of = [&](const Shape& s) { return zeros(s, {dtype, device}); };
    CHECK(mismatch(empty_of({2, 0}).matmul(empty_of({0, 3})), {2, 3}, {0, 0, 0, 0, 0, 0}) == "");
    CHECK(mismatch(empty_of({0}).matmul(empty_of({0})), {}, {0}) == "");
    CHECK(mismatch(empty_of({2, 0}).matmul(empty_of({0})), {2}, {0, 0}) == "");
    CHECK(empty_of({0, 3}).matmul(empty_of({3, 2})).shape() == Shape{0, 2});
    CHECK(empty_of({2, 3}).matmul(empty_of({3, 0})).shape() == Shape{2, 0});
    CHECK(empty_of({0, 2, 3}).matmul(empty_of({3, 4})).shape() == Shape{0, 2, 4});
    CHECK(empty_of({0, 2, 3}).matmul(empty_of({1, 3, 4})).shape() == Shape{0, 2, 4});
    CHECK(mismatch(empty_of({2, 1, 0}).matmul(empty_of({0, 2})), {2, 1, 2}, {0, 0, 0, 0}) == "");
    CHECK(empty_of({2, 3, 0}).matmul(empty_of({0, 0})).shape() == Shape{2, 3, 0});
    // A sum of nothing is 0, whichever kernel would sum it: rows, columns and tiles.
    for (const int64_t m : {1, 3, 70}) {
      for (const int64_t n : {1, 3, 70}) {
        const Doubles none(static_cast<size_t>(m * n), 0);
        CHECK(mismatch(empty_of({m, 0}).matmul(empty_of({0, n})), {m, n}, none) == "");
        CHECK(mismatch(empty_of({0, m}).t().matmul(empty_of({n, 0}).t()), {m, n}, none) == "");
      }
    }
  });
  on_devices([](Device device) {
    Tensor x = zeros({2, 0}, {f64, device}).requires_grad_();
    Tensor y = zeros({0, 3}, {f64, device}).requires_grad_();
    const Gradients grads = x.matmul(y).sum().backward();
    CHECK(x.grad(grads)->shape() == Shape{2, 0});
    CHECK(y.grad(grads)->shape() == Shape{0, 3});
  });
}

TEST_CASE("sizes that no block of a kernel divides") {
  on_devices([](Device device) {
    for (const auto& [n, k, m] : {std::array<int64_t, 3>{1, 130, 67},
                                  {67, 33, 1},
                                  {65, 129, 31},
                                  {17, 1, 19},
                                  {128, 64, 96}}) {
      const Doubles xv = numbers(n * k, 1), yv = numbers(k * m, 2);
      const Product expected = product({n, k}, xv, {k, m}, yv);
      for (const DType dtype : {f64, f32, bf16, i64}) {
        const Tensor x = from_vector(xv, {n, k}, {dtype, device});
        const Tensor y = from_vector(yv, {k, m}, {dtype, device});
        CHECK(mismatch(x.matmul(y), expected.shape, expected.values) == "");
        CHECK(mismatch(x.matmul(y.t().contiguous().t()), expected.shape, expected.values) == "");
      }
    }
  });
}

TEST_CASE("mm, bmm and dot take their own ranks only") {
  const Tensor v = ones({3}), m = ones({3, 3}), b = ones({2, 3, 3});
  CHECK(mismatch(v.dot(v), {}, {3}) == "");
  CHECK(m.mm(m).shape() == Shape{3, 3});
  CHECK(b.bmm(b).shape() == Shape{2, 3, 3});
  CHECK_THROWS_AS(v.mm(m), ShapeError);
  CHECK_THROWS_AS(m.bmm(b), ShapeError);
  CHECK_THROWS_AS(b.bmm(ones({3, 3, 3})), ShapeError);
  CHECK_THROWS_AS(m.dot(v), ShapeError);
  CHECK_THROWS_AS(v.dot(ones({4})), ShapeError);
}

TEST_CASE("infinities and NaN pass through products") {
  const double inf = std::numeric_limits<double>::infinity();
  on_devices([&](Device device) {
    const Tensor x = tensor({{inf, 1.0}, {0.0, 2.0}}, {f32, device});
    const Tensor y = tensor({{0.0}, {3.0}}, {f32, device});
    const Tensor out = x.matmul(y);
    CHECK(std::isnan(out[0][0].item()));
    CHECK(out[1][0].item() == 6.0);
  });
}

TEST_CASE("linear with an activation and a residual") {
  using functional::LinearOptions;
  on_devices(kFloatTypes, [](Device device, DType dtype) {
    const TensorOptions on{dtype, device};
    const Tensor x = tensor({{1, 1, 1}, {2, 0, 1}}, on);
    const Tensor w = tensor({{1, 2, 3}, {0, -1, 1}}, on);
    const Tensor b = tensor({-6, 1}, on);
    const Tensor r = tensor({{1, 2}, {3, 4}}, on);
    const auto run = [&](Activation activation, const Tensor& residual) {
      return functional::linear(x, w, b, LinearOptions{activation, residual});
    };
    CHECK(mismatch(run(Activation::none, {}), {2, 2}, {0, 1, -1, 2}) == "");
    CHECK(mismatch(run(Activation::relu, {}), {2, 2}, {0, 1, 0, 2}) == "");
    CHECK(mismatch(run(Activation::relu, r), {2, 2}, {1, 3, 3, 6}) == "");
    CHECK(mismatch(run(Activation::none, r.t().contiguous().t()), {2, 2}, {1, 3, 2, 6}) == "");
  });
  const Tensor x = ones({2, 3}), w = ones({4, 3});
  const auto with = [&](const Tensor& residual) {
    return functional::linear(x, w, {}, LinearOptions{Activation::relu, residual});
  };
  CHECK_THROWS_WITH_AS(with(ones({4})),
                       "linear: the residual does not fit the result; got [4]; expected [2, 4]",
                       ShapeError);
  CHECK_THROWS_AS(with(ones({2, 4}, {f64})), DTypeError);
  CHECK_THROWS_AS(with(ones({2, 4}, {i64})), DTypeError);
  CHECK_THROWS_AS(functional::linear(x, ones({4, 2}), {}, LinearOptions{Activation::relu, {}}),
                  ShapeError);
  // Complex numbers and quantized weights take the ops one after another.
  const Tensor z = complex(x, x), v = complex(w, zeros({4, 3}));
  CHECK(functional::linear(z, v, {}, LinearOptions{Activation::tanh, {}})
            .equal(functional::linear(z, v).tanh()));
  const Tensor q = quantize(w, QuantScheme{});
  CHECK(functional::linear(x, q, {}, LinearOptions{Activation::gelu, ones({2, 4})})
            .equal(functional::linear(x, q).gelu() + 1));
}

TEST_CASE("linear") {
  on_devices(kFloatTypes, [](Device device, DType dtype) {
    const TensorOptions on{dtype, device};
    const Tensor w = tensor({{1, 2, 3}, {0, -1, 1}}, on);
    const Tensor b = tensor({10, 20}, on);
    const Tensor x = tensor({{1, 1, 1}, {2, 0, 1}}, on);
    CHECK(mismatch(functional::linear(x, w), {2, 2}, {6, 0, 5, 1}) == "");
    CHECK(mismatch(functional::linear(x, w, b), {2, 2}, {16, 20, 15, 21}) == "");
    CHECK(mismatch(functional::linear(scattered(x), scattered(w), scattered(b)), {2, 2},
                   {16, 20, 15, 21}) == "");
    CHECK(mismatch(functional::linear(x[0], w, b), {2}, {16, 20}) == "");
    CHECK(mismatch(functional::linear(x.unsqueeze(1), w, b), {2, 1, 2}, {16, 20, 15, 21}) == "");
    CHECK(functional::linear(zeros({0, 3}, on), w, b).shape() == Shape{0, 2});
    CHECK(mismatch(functional::linear(zeros({2, 0}, on), zeros({2, 0}, on), b), {2, 2},
                   {10, 20, 10, 20}) == "");
  });
  on_devices([](Device device) {
    const TensorOptions on{f64, device};
    Tensor w = tensor({{1, 2, 3}, {0, -1, 1}}, on).requires_grad_();
    Tensor b = tensor({10, 20}, on).requires_grad_();
    Tensor x = tensor({{1, 1, 1}, {2, 0, 1}}, on).requires_grad_();
    const Gradients grads = functional::linear(x, w, b).backward(tensor({{1, 2}, {3, 4}}, on));
    CHECK(mismatch(*x.grad(grads), {2, 3}, {1, 0, 5, 3, 2, 13}) == "");
    CHECK(mismatch(*w.grad(grads), {2, 3}, {7, 1, 4, 10, 2, 6}) == "");
    CHECK(mismatch(*b.grad(grads), {2}, {4, 6}) == "");
  });
}
