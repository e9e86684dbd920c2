// conv2d, compared with plain loops.
#include <cmath>

#include "kiln/nn/functional.h"
#include "tests/support/tensor_check.h"

using namespace kiln;
using namespace kiln::test;

namespace {

struct Case {
  Shape x, w;
  ConvOptions options;
  bool bias;
};

const Case kCases[] = {
    {{2, 3, 5, 6}, {4, 3, 3, 3}, {}, true},
    {{1, 1, 1, 1}, {1, 1, 1, 1}, {}, false},
    {{2, 2, 7, 5}, {3, 2, 3, 2}, {.stride = {2, 1}, .padding = {1, 2}}, true},
    {{1, 2, 7, 8}, {2, 2, 2, 3}, {.stride = {1, 2}, .padding = {2, 1}, .dilation = {2, 3}}, true},
    {{2, 4, 5, 5}, {6, 2, 3, 3}, {.padding = {1, 1}, .groups = 2}, true},
    {{2, 3, 4, 4}, {3, 1, 3, 3}, {.padding = {1, 1}, .groups = 3}, false},  // depthwise
    {{1, 2, 4, 4}, {4, 1, 2, 2}, {.stride = {3, 3}, .dilation = {2, 1}, .groups = 2}, true},
    {{3, 5, 4, 4}, {7, 5, 1, 1}, {}, true},                   // pointwise
    {{1, 3, 9, 9}, {2, 3, 3, 3}, {.stride = {4, 4}}, false},  // drops the rest
    {{2, 1, 12, 12}, {8, 1, 3, 3}, {}, true},
    {{1, 16, 6, 6}, {16, 16, 3, 3}, {.padding = {1, 1}}, true},
};

Tensor conv2d(const Tensor& x, const Tensor& w, const Tensor& b, const ConvOptions& o) {
  return functional::conv2d(x, w, b, o.stride, Sizes(o.padding), o.dilation, o.groups);
}

// Calls f(output position, input position, weight position) for every product of the convolution.
template <class F>
void each_product(const Case& c, const Shape& out, F f) {
  const int64_t group_in = c.w[1], group_out = c.w[0] / c.options.groups;
  for (int64_t n = 0; n < out[0]; ++n)
    for (int64_t o = 0; o < out[1]; ++o)
      for (int64_t y = 0; y < out[2]; ++y)
        for (int64_t x = 0; x < out[3]; ++x)
          for (int64_t i = 0; i < group_in; ++i)
            for (int64_t ky = 0; ky < c.w[2]; ++ky)
              for (int64_t kx = 0; kx < c.w[3]; ++kx) {
                const int64_t sy =
                    y * c.options.stride[0] - c.options.padding[0] + ky * c.options.dilation[0];
                const int64_t sx =
                    x * c.options.stride[1] - c.options.padding[1] + kx * c.options.dilation[1];
                if (sy < 0 || sx < 0 || sy >= c.x[2] || sx >= c.x[3]) continue;
                const int64_t channel = o / group_out * group_in + i;
                f(static_cast<size_t>(((n * out[1] + o) * out[2] + y) * out[3] + x),
                  static_cast<size_t>(((n * c.x[1] + channel) * c.x[2] + sy) * c.x[3] + sx),
                  static_cast<size_t>(((o * c.w[1] + i) * c.w[2] + ky) * c.w[3] + kx));
              }
}

Shape output_shape(const Case& c) {
  Shape out{c.x[0], c.w[0], 0, 0};
  for (int i = 0; i < 2; ++i) {
    const size_t k = static_cast<size_t>(i);
    out[2 + i] =
        (c.x[2 + i] + 2 * c.options.padding[k] - c.options.dilation[k] * (c.w[2 + i] - 1) - 1) /
            c.options.stride[k] +
        1;
  }
  return out;
}

// Eighths, small enough that sums of products are exact in f32 and near in half precision.
Doubles numbers(int64_t n, int start) {
  Doubles out;
  for (int64_t i = 0; i < n; ++i) out.push_back(static_cast<double>((i * 7 + start) % 9 - 4) / 8);
  return out;
}

}  // namespace

TEST_CASE("values for every float dtype and layout") {
  on_devices(kFloatTypes, [](Device device, DType dtype) {
    const TensorOptions on{dtype, device};
    for (const Case& c : kCases) {
      INFO("x ", to_string(c.x), " w ", to_string(c.w), " groups ", c.options.groups);
      const Shape os = output_shape(c);
      const Doubles x = numbers(c.x.numel(), 1), w = numbers(c.w.numel(), 2);
      const Doubles b = numbers(c.w[0], 3);
      Doubles expected(static_cast<size_t>(os.numel()), 0.0);
      if (c.bias) {
        for (size_t i = 0; i < expected.size(); ++i) {
          expected[i] = b[i / static_cast<size_t>(os[2] * os[3]) % b.size()];
        }
      }
      each_product(c, os, [&](size_t o, size_t i, size_t k) { expected[o] += x[i] * w[k]; });
      const Tensor tx = from_vector(x, c.x, on);
      const Tensor tw = from_vector(w, c.w, on);
      const Tensor tb = c.bias ? from_vector(b, {c.w[0]}, on) : Tensor();
      CHECK(mismatch(conv2d(tx, tw, tb, c.options), os, expected) == "");
      CHECK(mismatch(conv2d(scattered(tx), tw, tb, c.options), os, expected) == "");
      CHECK(mismatch(conv2d(tx, scattered(tw), tb.defined() ? scattered(tb) : tb, c.options), os,
                     expected) == "");
      if (c.x[0] == 1) {  // [C, H, W] is a batch of one
        CHECK(mismatch(conv2d(tx[0], tw, tb, c.options), {os[1], os[2], os[3]}, expected) == "");
      }
    }
  });
}

TEST_CASE("gradients of input, weight and bias") {
  on_devices([](Device device) {
    for (const DType dtype : {f64, f32}) {
      const TensorOptions on{dtype, device};
      for (const Case& c : kCases) {
        INFO("x ", to_string(c.x), " w ", to_string(c.w), " groups ", c.options.groups);
        const Shape os = output_shape(c);
        const Doubles x = numbers(c.x.numel(), 1), w = numbers(c.w.numel(), 2);
        const Doubles g = numbers(os.numel(), 5);
        Doubles gx(x.size(), 0.0), gw(w.size(), 0.0), gb(static_cast<size_t>(c.w[0]), 0.0);
        each_product(c, os, [&](size_t o, size_t i, size_t k) {
          gx[i] += g[o] * w[k];
          gw[k] += g[o] * x[i];
        });
        for (size_t i = 0; i < g.size(); ++i) {
          gb[i / static_cast<size_t>(os[2] * os[3]) % gb.size()] += g[i];
        }
        Tensor tx = scattered(from_vector(x, c.x, on)).requires_grad_();
        Tensor tw = from_vector(w, c.w, on).requires_grad_();
        Tensor tb = zeros({c.w[0]}, on).requires_grad_();
        const Tensor out = conv2d(tx, tw, tb, c.options);
        const Gradients grads = out.backward(scattered(from_vector(g, os, on)));
        CHECK(mismatch(*tx.grad(grads), c.x, gx) == "");
        CHECK(mismatch(*tw.grad(grads), c.w, gw) == "");
        CHECK(mismatch(*tb.grad(grads), {c.w[0]}, gb) == "");
      }
    }
  });
}

TEST_CASE("empty batches and channels") {
  on_devices([](Device device) {
    const auto none = [&](const Shape& s) {
      return zeros(s, {.device = device, .requires_grad = true});
    };
    CHECK(functional::conv2d(none({0, 2, 4, 4}), none({3, 2, 2, 2})).shape() == Shape{0, 3, 3, 3});
    CHECK(functional::conv2d(none({1, 2, 4, 4}), none({0, 2, 2, 2})).shape() == Shape{1, 0, 3, 3});
    const Tensor b = tensor({1.0, 2.0}, {.device = device});
    CHECK(mismatch(functional::conv2d(none({1, 0, 2, 2}), none({2, 0, 2, 2}), b), {1, 2, 1, 1},
                   {1, 2}) == "");
    const Tensor x = none({0, 2, 4, 4});
    const Tensor w = none({3, 2, 2, 2});
    const Gradients grads = functional::conv2d(x, w).sum().backward();
    CHECK(x.grad(grads)->shape() == x.shape());
    CHECK(mismatch(*w.grad(grads), {3, 2, 2, 2}, Doubles(24, 0.0)) == "");
  });
}

TEST_CASE("what does not fit") {
  const Tensor x = ones({1, 2, 4, 4});
  const Tensor w = ones({2, 2, 3, 3});
  CHECK_THROWS_AS(functional::conv2d(ones({4, 4}), w), ShapeError);
  CHECK_THROWS_AS(functional::conv2d(ones({1, 1, 2, 4, 4}), w), ShapeError);
  CHECK_THROWS_AS(functional::conv2d(x, ones({2, 3, 3, 3})), ShapeError);
  CHECK_THROWS_AS(functional::conv2d(x, ones({2, 2, 3})), ShapeError);
  CHECK_THROWS_AS(functional::conv2d(x, ones({2, 2, 5, 3})), ShapeError);
  CHECK_THROWS_AS(functional::conv2d(x, ones({2, 2, 0, 3})), ShapeError);
  CHECK_THROWS_AS(functional::conv2d(x, w, ones({3})), ShapeError);
  CHECK_THROWS_AS(conv2d(x, w, {}, {.groups = 2}), ShapeError);
  CHECK_THROWS_AS(conv2d(x, ones({3, 1, 3, 3}), {}, {.groups = 2}), ShapeError);
  CHECK_THROWS_AS(conv2d(x, w, {}, {.groups = 0}), ValueError);
  CHECK_THROWS_AS(conv2d(x, w, {}, {.groups = int64_t{1} << 62}), ValueError);
  CHECK_THROWS_AS(conv2d(x, w, {}, {.stride = {0, 1}}), ValueError);
  CHECK_THROWS_AS(conv2d(x, w, {}, {.padding = {-1, 0}}), ValueError);
  CHECK_THROWS_AS(conv2d(x, w, {}, {.padding = {INT64_MAX, 0}}), ValueError);
  CHECK_THROWS_AS(conv2d(x, w, {}, {.dilation = {0, 1}}), ValueError);
  CHECK_THROWS_AS(conv2d(x, w, {}, {.dilation = {INT64_MAX, 1}}), ValueError);
  CHECK_THROWS_AS(conv2d(x, w, {}, {.padding = {1 << 30, 1 << 30}}), Error);
  CHECK_THROWS_AS(functional::conv2d(x, w.to(f64)), DTypeError);
  CHECK_THROWS_AS(functional::conv2d(ones({1, 2, 4, 4}, {i64}), w.to(i64)), DTypeError);
}

TEST_CASE("convolutions over one and three dims are sums of convolutions over two") {
  on_devices([](Device device) {
    const TensorOptions on{f64, device};
    const Tensor x = randn({2, 3, 4, 5, 6}, on), w = randn({2, 3, 2, 3, 3}, on);
    const Tensor volume = functional::conv3d(x, w, {}, 1, Sizes(0, 1, 1));
    for (int64_t d = 0; d < 3; ++d) {
      Tensor sum = zeros({2, 2, 5, 6}, on);
      for (int64_t k = 0; k < 2; ++k) {
        sum = sum + conv2d(x.select(2, d + k), w.select(2, k), {}, {.padding = {1, 1}});
      }
      CHECK(volume.select(2, d).allclose(sum));
    }
    const Tensor line =
        functional::conv1d(x.select(2, 0).select(2, 0), w.select(2, 0).select(2, 0));
    const Tensor plane =
        functional::conv2d(x.select(2, 0).narrow(2, 0, 1), w.select(2, 0).narrow(2, 0, 1));
    CHECK(line.equal(plane.squeeze(2)));
  });
}

TEST_CASE("a transposed convolution is the transpose of the convolution") {
  const Tensor x = randn({1, 4, 3, 5}, {f64}), w = randn({4, 2, 3, 2}, {f64});
  const Tensor y = functional::conv_transpose2d(x, w, {}, {2, 1}, {1, 0}, {1, 0}, 2);
  const Tensor v = randn(y.shape(), {f64});
  const Tensor back = functional::conv2d(v, w, {}, {2, 1}, {1, 0}, 1, 2);
  CHECK((y * v).sum().item() == doctest::Approx((x * back).sum().item()));
}

TEST_CASE("a deformable convolution that moves nothing is a convolution") {
  on_devices([](Device device) {
    const TensorOptions on{f64, device};
    const Tensor x = randn({2, 4, 5, 6}, on), w = randn({6, 2, 3, 2}, on), b = randn({6}, on);
    const Tensor still = zeros({2, 24, 3, 5}, on), all = ones({2, 12, 3, 5}, on);
    const Tensor expected = functional::conv2d(x, w, b, {2, 1}, {1, 0}, 1, 2);
    const Tensor got = functional::deform_conv2d(x, still, w, b, {2, 1}, {1, 0}, 1, all);
    CHECK(got.allclose(expected));
    // Moved by whole pixels: as if the image were moved.
    const Tensor down = still.reshape({2, 12, 2, 3, 5}) + tensor({1.0, 0.0}, on).reshape({2, 1, 1});
    const Tensor moved = cat({x.narrow(2, 1, 4), zeros({2, 4, 1, 6}, on)}, 2);
    const Tensor shifted =
        functional::deform_conv2d(x, down.reshape({2, 24, 3, 5}), w, b, {2, 1}, {1, 0}, 1, all);
    // Row -1, which was padding, is row 0 of the image now.
    const Tensor other = functional::conv2d(moved, w, b, {2, 1}, {1, 0}, 1, 2);
    CHECK(shifted.narrow(2, 1, 2).allclose(other.narrow(2, 1, 2)));
  });
}

TEST_CASE("convolutions: what does not fit") {
  using namespace functional;
  const Tensor x = zeros({1, 4, 5}), w = zeros({2, 4, 3});
  CHECK(error_lacks<ShapeError>(
            [&] {
              conv1d(zeros({1, 3, 5}), w);
            },
            {"conv1d", "[1, 3, 5]", "[2, 4, 3]", "expected"}) == "");
  CHECK(error_lacks<ShapeError>([&] { conv1d(x, zeros({2, 4, 6})); }, {"larger"}) == "");
  CHECK(error_lacks<ShapeError>([&] { conv3d(x, w); }, {"conv3d", "[N, C, D, H, W]"}) == "");
  CHECK(error_lacks<ValueError>([&] { conv1d(x, w, {}, 2, "same"); }, {"stride 1"}) == "");
  CHECK(error_lacks<ValueError>([&] { conv1d(x, w, {}, 1, "full"); }, {"'full'"}) == "");
  CHECK(error_lacks<ValueError>([&] { conv1d(x, w, {}, 0); }, {"stride"}) == "");
  CHECK(error_lacks<ValueError>([&] { conv1d(x, w, {}, Sizes(1, 2)); }, {"stride", "length"}) ==
        "");
  CHECK(error_lacks<ShapeError>([&] { conv1d(x, w, zeros({3})); }, {"bias"}) == "");
  CHECK(error_lacks<DTypeError>([&] { conv1d(x, w.to(f64)); }, {"conv1d"}) == "");
  CHECK(error_lacks<ValueError>(
            [&] {
              conv_transpose1d(x, zeros({4, 1, 3}), {}, 2, 0, 2);
            },
            {"output_padding"}) == "");
  CHECK(error_lacks<ShapeError>(
            [&] {
              conv_transpose1d(x, zeros({4, 1, 1}), {}, 1, 3);
            },
            {"empty"}) == "");
  CHECK(error_lacks<ShapeError>(
            [&] {
              fold(zeros({1, 8, 5}), 3, 2);
            },
            {"fold", "[1, 8, 5]"}) == "");
  CHECK(conv1d(zeros({0, 4, 5}), w).shape() == Shape{0, 2, 3});
}
