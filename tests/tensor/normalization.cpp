// batch_norm and layer_norm. Literals are PyTorch's; the rest is compared with plain loops.
#include <cmath>

#include "kiln/nn/functional.h"
#include "tests/support/tensor_check.h"

using namespace kiln;
using namespace kiln::test;

namespace {

Doubles ramp(int64_t n, int start) {
  Doubles out;
  for (int64_t i = 0; i < n; ++i) out.push_back(static_cast<double>((i * 7 + start) % 11 - 5) / 4);
  return out;
}

// y = (x - mean) / sqrt(var + eps) over each group; `group_of` says to which one an element
// belongs.
struct Normalized {
  Doubles xhat, mean, var;
};
template <class Group>
Normalized normalized(const Doubles& x, size_t groups, double eps, Group group_of) {
  Normalized out{Doubles(x.size()), Doubles(groups, 0.0), Doubles(groups, 0.0)};
  Doubles n(groups, 0.0);
  for (size_t i = 0; i < x.size(); ++i) {
    out.mean[group_of(i)] += x[i];
    n[group_of(i)] += 1;
  }
  for (size_t g = 0; g < groups; ++g) out.mean[g] /= n[g];
  for (size_t i = 0; i < x.size(); ++i) {
    const double d = x[i] - out.mean[group_of(i)];
    out.var[group_of(i)] += d * d / n[group_of(i)];
  }
  for (size_t i = 0; i < x.size(); ++i) {
    out.xhat[i] = (x[i] - out.mean[group_of(i)]) / std::sqrt(out.var[group_of(i)] + eps);
  }
  return out;
}

// dL/dx of such a normalization, for the gradient gh of xhat.
template <class Group>
Doubles input_gradient(const Normalized& n, const Doubles& gh, double eps, Group group_of) {
  const size_t groups = n.mean.size();
  Doubles a(groups, 0.0), b(groups, 0.0), count(groups, 0.0), out(gh.size());
  for (size_t i = 0; i < gh.size(); ++i) {
    a[group_of(i)] += gh[i];
    b[group_of(i)] += gh[i] * n.xhat[i];
    count[group_of(i)] += 1;
  }
  for (size_t i = 0; i < gh.size(); ++i) {
    const size_t g = group_of(i);
    out[i] = (gh[i] - a[g] / count[g] - n.xhat[i] * b[g] / count[g]) / std::sqrt(n.var[g] + eps);
  }
  return out;
}

}  // namespace

TEST_CASE("batch_norm in training: output, running statistics, gradients") {
  on_devices([](Device device) {
    const TensorOptions on{f64, device};
    Tensor x = tensor({{1, 2}, {3, 6}, {5, -2}}, on).requires_grad_();
    Tensor w = tensor({2.0, 0.5}, on).requires_grad_();
    Tensor b = tensor({1.0, -1.0}, on).requires_grad_();
    const Tensor mean = tensor({0.5, -1.0}, on);
    const Tensor var = tensor({2.0, 4.0}, on);
    const Tensor y = functional::batch_norm(x, mean, var, w, b, true, 0.1, 1e-5);
    CHECK(mismatch(y, {3, 2},
                   {-1.4494851500028278, -1.0, 1.0, -0.38762785135358274, 3.449485150002827,
                    -1.612372148646417}) == "");
    CHECK(mismatch(mean, {2}, {0.75, -0.7}) == "");
    CHECK(mismatch(var, {2}, {2.2, 5.2}) == "");  // moved towards the unbiased estimate
    const Gradients grads = y.backward(tensor({{1, 2}, {3, 4}, {-5, 6}}, on));
    CHECK(mismatch(*x.grad(grads), {3, 2},
                   {-2.041223846700057, -0.3061860743232086, 4.082475250004713, 0.15309289363701656,
                    -2.041251403304656, 0.15309318068619207},
                   1e-10) == "");
    CHECK(mismatch(*w.grad(grads), {2}, {-7.348455450008483, -2.449488594585669}) == "");
    CHECK(mismatch(*b.grad(grads), {2}, {-1, 12}) == "");
  });
}

TEST_CASE("batch_norm for every float dtype, rank and layout") {
  on_devices(kFloatTypes, [](Device device, DType dtype) {
    const TensorOptions on{dtype, device};
    for (const Shape& shape : {Shape{6, 3}, Shape{2, 3, 5}, Shape{2, 3, 4, 5}, Shape{3, 1, 2, 2, 2},
                               Shape{2, 20, 7, 9}}) {
      INFO("shape ", to_string(shape));
      const auto c = static_cast<size_t>(shape[1]);
      const auto inner = static_cast<size_t>(shape.numel()) / static_cast<size_t>(shape[0]) / c;
      const auto channel = [&](size_t i) { return i / inner % c; };
      const Doubles v = ramp(shape.numel(), 3);
      const Doubles w = ramp(shape[1], 1), b = ramp(shape[1], 4);
      const double eps = 1e-3;
      const Normalized n = normalized(v, c, eps, channel);
      Doubles expected(v.size()), running(v.size());
      for (size_t i = 0; i < v.size(); ++i) {
        expected[i] = n.xhat[i] * w[channel(i)] + b[channel(i)];
        running[i] = (v[i] - 0.5) / std::sqrt(2 + eps) * w[channel(i)] + b[channel(i)];
      }
      const Tensor flat = from_vector(v, shape, on);
      const Tensor tw = from_vector(w, {shape[1]}, on), tb = from_vector(b, {shape[1]}, on);
      for (const Tensor& x : {flat, scattered(flat)}) {
        CHECK(mismatch(functional::batch_norm(x, {}, {}, tw, tb, true, 0.1, eps), shape,
                       expected) == "");
        CHECK(mismatch(functional::batch_norm(x, {}, {}, {}, {}, true, 0.1, eps), shape, n.xhat) ==
              "");
        const Tensor mean = full({shape[1]}, 0.5, on), var = full({shape[1]}, 2.0, on);
        CHECK(mismatch(functional::batch_norm(x, mean, var, tw, tb, false, 0.1, eps), shape,
                       running) == "");
        CHECK(mismatch(mean, {shape[1]}, Doubles(c, 0.5)) == "");  // inference changes nothing
      }
    }
  });
}

TEST_CASE("gradients of batch_norm, in training and in inference") {
  on_devices([](Device device) {
    const TensorOptions on{f64, device};
    const Shape shape{2, 3, 4, 2};
    const auto channel = [](size_t i) { return i / 8 % 3; };
    const Doubles v = ramp(48, 3), g = ramp(48, 8);
    const Doubles w{2, -0.5, 1}, b{0, 1, 2};
    const double eps = 1e-3;
    const Normalized n = normalized(v, 3, eps, channel);
    Doubles gh(48), gw(3, 0.0), gb(3, 0.0), running_gx(48), running_gw(3, 0.0);
    for (size_t i = 0; i < 48; ++i) {
      const size_t c = channel(i);
      gh[i] = g[i] * w[c];
      gw[c] += g[i] * n.xhat[i];
      gb[c] += g[i];
      running_gx[i] = g[i] * w[c] / std::sqrt(2 + eps);
      running_gw[c] += g[i] * (v[i] - 0.5) / std::sqrt(2 + eps);
    }
    for (const bool gaps : {false, true}) {
      Tensor x = from_vector(v, shape, on);
      if (gaps) x = scattered(x);
      x.requires_grad_();
      Tensor tw = from_vector(w, {3}, on).requires_grad_();
      Tensor tb = from_vector(b, {3}, on).requires_grad_();
      const Tensor seed = from_vector(g, shape, on);
      {
        const Tensor y = functional::batch_norm(x, {}, {}, tw, tb, true, 0.1, eps);
        const Gradients grads = y.backward(gaps ? scattered(seed) : seed);
        CHECK(mismatch(*x.grad(grads), shape, input_gradient(n, gh, eps, channel)) == "");
        CHECK(mismatch(*tw.grad(grads), {3}, gw) == "");
        CHECK(mismatch(*tb.grad(grads), {3}, gb) == "");
      }
      {
        const Tensor y = functional::batch_norm(x, full({3}, 0.5, on), full({3}, 2.0, on), tw, tb,
                                                false, 0.1, eps);
        const Gradients grads = y.backward(seed);
        CHECK(mismatch(*x.grad(grads), shape, running_gx) == "");
        CHECK(mismatch(*tw.grad(grads), {3}, running_gw) == "");
        CHECK(mismatch(*tb.grad(grads), {3}, gb) == "");
      }
      {  // no weight and bias
        const Tensor y = functional::batch_norm(x, {}, {}, {}, {}, true, 0.1, eps);
        CHECK(mismatch(*x.grad(y.backward(seed)), shape, input_gradient(n, g, eps, channel)) == "");
      }
    }
  });
}

TEST_CASE("batch_norm on few values") {
  on_devices([](Device device) {
    const TensorOptions on{f32, device};
    CHECK_THROWS_AS(functional::batch_norm(ones({1, 3}, on), {}, {}, {}, {}, true), ValueError);
    CHECK(functional::batch_norm(ones({1, 3, 2}, on), {}, {}, {}, {}, true).shape() ==
          Shape{1, 3, 2});
    const Tensor mean = zeros({3}, on), var = ones({3}, on);
    CHECK(functional::batch_norm(zeros({0, 3}, on), mean, var, {}, {}, true).shape() ==
          Shape{0, 3});
    CHECK(mismatch(mean, {3}, {0, 0, 0}) == "");
    CHECK(functional::batch_norm(zeros({0, 3}, on), mean, var).shape() == Shape{0, 3});
    // Constant channels have variance 0.
    CHECK(mismatch(functional::batch_norm(full({2, 1}, 7.0, on), {}, {}, {}, {}, true), {2, 1},
                   {0, 0}) == "");
  });
  const Tensor x = ones({2, 3});
  CHECK_THROWS_AS(functional::batch_norm(x, {}, {}), ValueError);
  CHECK_THROWS_AS(functional::batch_norm(ones({3}), zeros({3}), ones({3})), ShapeError);
  CHECK_THROWS_AS(functional::batch_norm(x, zeros({2}), ones({3})), ShapeError);
  CHECK_THROWS_AS(functional::batch_norm(x, zeros({3}), ones({3}), ones({4})), ShapeError);
  CHECK_THROWS_AS(functional::batch_norm(x, zeros({3}, {f64}), ones({3})), DTypeError);
  CHECK_THROWS_AS(functional::batch_norm(ones({2, 3}, {i64}), zeros({3}), ones({3})), DTypeError);
}

TEST_CASE("layer_norm for every float dtype, number of dims and layout") {
  on_devices(kFloatTypes, [](Device device, DType dtype) {
    const TensorOptions on{dtype, device};
    const Shape shape{2, 3, 5};
    const Doubles v = ramp(30, 2);
    const double eps = 1e-3;
    const Tensor flat = from_vector(v, shape, on);
    for (const Shape& last : {Shape{5}, Shape{3, 5}, Shape{2, 3, 5}}) {
      INFO("last ", to_string(last));
      const auto length = static_cast<size_t>(last.numel());
      const Normalized n = normalized(v, 30 / length, eps, [&](size_t i) { return i / length; });
      const Doubles w = ramp(last.numel(), 1), b = ramp(last.numel(), 4);
      Doubles expected(30);
      for (size_t i = 0; i < 30; ++i) expected[i] = n.xhat[i] * w[i % length] + b[i % length];
      const Tensor tw = from_vector(w, last, on), tb = from_vector(b, last, on);
      for (const Tensor& x : {flat, scattered(flat)}) {
        CHECK(mismatch(functional::layer_norm(x, last, tw, tb, eps), shape, expected) == "");
        CHECK(mismatch(functional::layer_norm(x, last, scattered(tw), {}, eps) + tb, shape,
                       expected) == "");
        CHECK(mismatch(functional::layer_norm(x, last, {}, {}, eps), shape, n.xhat) == "");
      }
    }
    CHECK(functional::layer_norm(zeros({0, 3}, on), {3}).shape() == Shape{0, 3});
    CHECK(functional::layer_norm(zeros({2, 0}, on), {0}).shape() == Shape{2, 0});
    CHECK(mismatch(functional::layer_norm(full({2, 1}, 3.0, on), {1}), {2, 1}, {0, 0}) == "");
  });
  const Tensor x = ones({2, 3});
  CHECK_THROWS_AS(functional::layer_norm(x, {2}), ShapeError);
  CHECK_THROWS_AS(functional::layer_norm(x, {}), ShapeError);
  CHECK_THROWS_AS(functional::layer_norm(x, {1, 2, 3}), ShapeError);
  CHECK_THROWS_AS(functional::layer_norm(x, {3}, ones({2})), ShapeError);
  CHECK_THROWS_AS(functional::layer_norm(x, {3}, ones({3}, {f64})), DTypeError);
  CHECK_THROWS_AS(functional::layer_norm(ones({2, 3}, {i64}), {3}), DTypeError);
}

TEST_CASE("gradients of layer_norm") {
  on_devices([](Device device) {
    const TensorOptions on{f64, device};
    const Shape shape{4, 2, 3};
    const Doubles v = ramp(24, 2), g = ramp(24, 9);
    const double eps = 1e-3;
    for (const Shape& last : {Shape{3}, Shape{2, 3}}) {
      const auto length = static_cast<size_t>(last.numel());
      const auto row = [&](size_t i) { return i / length; };
      const Normalized n = normalized(v, 24 / length, eps, row);
      const Doubles w = ramp(last.numel(), 1);
      Doubles gh(24), gw(length, 0.0), gb(length, 0.0);
      for (size_t i = 0; i < 24; ++i) {
        gh[i] = g[i] * w[i % length];
        gw[i % length] += g[i] * n.xhat[i];
        gb[i % length] += g[i];
      }
      for (const bool gaps : {false, true}) {
        Tensor x = from_vector(v, shape, on);
        if (gaps) x = scattered(x);
        x.requires_grad_();
        Tensor tw = from_vector(w, last, on).requires_grad_();
        Tensor tb = zeros(last, on).requires_grad_();
        const Tensor seed = from_vector(g, shape, on);
        const Gradients grads =
            functional::layer_norm(x, last, tw, tb, eps).backward(gaps ? scattered(seed) : seed);
        CHECK(mismatch(*x.grad(grads), shape, input_gradient(n, gh, eps, row)) == "");
        CHECK(mismatch(*tw.grad(grads), last, gw) == "");
        CHECK(mismatch(*tb.grad(grads), last, gb) == "");
        const Gradients bare = functional::layer_norm(x, last, {}, {}, eps).backward(seed);
        CHECK(mismatch(*x.grad(bare), shape, input_gradient(n, g, eps, row)) == "");
      }
    }
  });
}

TEST_CASE("instance_norm moves the running statistics; group_norm of one group is layer_norm") {
  on_devices([](Device device) {
    const TensorOptions on{f64, device};
    const Tensor x = randn({4, 3, 5}, on);
    const Tensor mean = zeros({3}, on), var = ones({3}, on);
    functional::instance_norm(x, mean, var, {}, {}, true, 0.25);
    CHECK(mean.allclose(x.mean(2).mean(0) * 0.25));
    CHECK(var.allclose(x.var(2).mean(0) * 0.25 + 0.75));
    CHECK(functional::group_norm(x, 1).allclose(functional::layer_norm(x, {3, 5})));
    CHECK(functional::group_norm(x, 3).allclose(functional::instance_norm(x)));
    CHECK(functional::group_norm(zeros({0, 3, 5}, on), 3).shape() == Shape{0, 3, 5});
  });
  const Tensor x = zeros({2, 4, 1});
  CHECK(error_lacks<ValueError>([&] { functional::group_norm(x, 3); }, {"num_groups", "3"}) == "");
  CHECK(error_lacks<ValueError>([&] { functional::instance_norm(x); }, {"more than 1"}) == "");
  CHECK(error_lacks<ShapeError>([&] { functional::rms_norm(x, {4}); }, {"rms_norm", "[4]"}) == "");
}

TEST_CASE("normalize: a vector of zeros has a gradient") {
  Tensor x = zeros({2, 3}, {f64}).requires_grad_();
  const Gradients grads = functional::normalize(x).sum().backward();
  CHECK(x.grad(grads)->isfinite().all().item<bool>());
}
