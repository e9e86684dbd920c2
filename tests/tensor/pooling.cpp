// Max and average pooling, compared with plain loops; ceil_mode and its rule by hand.
#include <cmath>
#include <limits>

#include "kiln/nn/functional.h"
#include "tests/support/tensor_check.h"

using namespace kiln;
using namespace kiln::test;

namespace {

struct PoolCase {
  Shape x;
  PoolOptions options;
};

const PoolCase kPoolCases[] = {
    {{2, 3, 6, 8}, {}},
    {{1, 2, 5, 7}, {.kernel = {3, 2}, .stride = {2, 1}}},
    {{2, 1, 7, 7}, {.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}}},
    {{1, 1, 5, 5}, {.kernel = {2, 2}, .stride = {2, 2}, .ceil_mode = true}},
    {{1, 2, 6, 6}, {.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}, .ceil_mode = true}},
    {{1, 1, 3, 3}, {.kernel = {3, 3}, .stride = {1, 1}}},
    {{2, 2, 4, 4}, {.kernel = {1, 1}, .stride = {2, 3}}},
    {{1, 1, 4, 5}, {.kernel = {2, 4}, .stride = {3, 3}, .padding = {1, 2}, .ceil_mode = true}},
    {{1, 20, 9, 9}, {.kernel = {3, 3}, .stride = {1, 1}, .padding = {1, 1}}},
};

Tensor max_pool2d(const Tensor& x, const PoolOptions& o) {
  return functional::max_pool2d(x, o.kernel, Sizes(o.stride), o.padding, o.dilation, o.ceil_mode);
}
std::pair<Tensor, Tensor> max_pool2d_with_indices(const Tensor& x, const PoolOptions& o) {
  return functional::max_pool2d_with_indices(x, o.kernel, Sizes(o.stride), o.padding, o.dilation,
                                             o.ceil_mode);
}
Tensor avg_pool2d(const Tensor& x, const PoolOptions& o) {
  return functional::avg_pool2d(x, o.kernel, Sizes(o.stride), o.padding, o.ceil_mode,
                                o.count_include_pad);
}

// PyTorch's rule: with ceil_mode a last window that would start in the right padding is dropped.
int64_t output_size(int64_t in, int64_t kernel, int64_t stride, int64_t padding, int64_t dilation,
                    bool ceil) {
  const int64_t span = in + 2 * padding - dilation * (kernel - 1) - 1;
  int64_t out = (span + (ceil ? stride - 1 : 0)) / stride + 1;
  if (ceil && (out - 1) * stride >= in + padding) --out;
  return out;
}

Shape output_shape(const PoolCase& c) {
  Shape out = c.x;
  for (int i = 0; i < 2; ++i) {
    const size_t k = static_cast<size_t>(i);
    const PoolOptions& o = c.options;
    out[2 + i] =
        output_size(c.x[2 + i], o.kernel[k], o.stride[k], o.padding[k], o.dilation[k], o.ceil_mode);
  }
  return out;
}

// Distinct values, so that maxima are unique.
Doubles numbers(int64_t n) {
  Doubles out;
  for (int64_t i = 0; i < n; ++i) out.push_back(static_cast<double>(i * 37 % 251) / 4 - 20);
  return out;
}

// For each output: the positions in x's plane that its window covers, and the number of places it
// counts (average pooling: padding included, but not what ceil_mode adds beyond it).
struct Window {
  size_t plane;
  std::vector<int64_t> inside;
  int64_t places;
};
std::vector<Window> windows(const PoolCase& c) {
  const Shape os = output_shape(c);
  const PoolOptions& o = c.options;
  std::vector<Window> out;
  for (int64_t p = 0; p < os[0] * os[1]; ++p)
    for (int64_t y = 0; y < os[2]; ++y)
      for (int64_t x = 0; x < os[3]; ++x) {
        Window window{static_cast<size_t>(p * c.x[2] * c.x[3]), {}, 0};
        for (int64_t ky = 0; ky < o.kernel[0]; ++ky)
          for (int64_t kx = 0; kx < o.kernel[1]; ++kx) {
            const int64_t sy = y * o.stride[0] - o.padding[0] + ky * o.dilation[0];
            const int64_t sx = x * o.stride[1] - o.padding[1] + kx * o.dilation[1];
            if (sy < c.x[2] + o.padding[0] && sx < c.x[3] + o.padding[1]) ++window.places;
            if (sy < 0 || sx < 0 || sy >= c.x[2] || sx >= c.x[3]) continue;
            window.inside.push_back(sy * c.x[3] + sx);
          }
        out.push_back(window);
      }
  return out;
}

}  // namespace

TEST_CASE("max pooling: values, positions and gradients") {
  on_devices(kFloatTypes, [](Device device, DType dtype) {
    const TensorOptions on{dtype, device};
    for (PoolCase c : kPoolCases) {
      for (const IntPair dilation : {IntPair{1, 1}, IntPair{2, 1}}) {
        c.options.dilation = dilation;
        const Shape os = output_shape(c);
        if (os[2] < 1 || os[3] < 1) continue;
        INFO("x ", to_string(c.x), " dilation ", dilation[0]);
        const Tensor flat = from_vector(numbers(c.x.numel()), c.x, on);
        const Doubles v = flat.to_data().to_doubles();  // as rounded to the dtype
        Doubles expected, positions, gx(v.size(), 0.0);
        for (const Window& window : windows(c)) {
          int64_t best = window.inside[0];
          for (int64_t at : window.inside) {
            const auto i = static_cast<size_t>(at), b = static_cast<size_t>(best);
            if (v[window.plane + i] > v[window.plane + b]) best = at;
          }
          const size_t at = window.plane + static_cast<size_t>(best);
          expected.push_back(v[at]);
          positions.push_back(static_cast<double>(best));
          gx[at] += static_cast<double>(expected.size() % 5);
        }
        for (Tensor x : {flat.clone(), scattered(flat)}) {
          const auto [values, index] = max_pool2d_with_indices(x, c.options);
          CHECK(mismatch(values, os, expected) == "");
          CHECK(mismatch(index, os, positions) == "");
          CHECK(index.dtype() == i64);
          x.requires_grad_();
          const Tensor out = max_pool2d(x, c.options);
          const Tensor seed = ((arange(os.numel(), {.device = device}) + 1) % 5).reshape(os);
          CHECK(mismatch(*x.grad(out.backward(seed.to(dtype))), c.x, gx) == "");
        }
      }
    }
  });
}

TEST_CASE("average pooling: values and gradients") {
  on_devices(kFloatTypes, [](Device device, DType dtype) {
    const TensorOptions on{dtype, device};
    for (PoolCase c : kPoolCases) {
      for (const bool count_include_pad : {true, false}) {
        c.options.count_include_pad = count_include_pad;
        const Shape os = output_shape(c);
        INFO("x ", to_string(c.x), " with padding ", count_include_pad);
        const Tensor flat = from_vector(numbers(c.x.numel()), c.x, on);
        const Doubles v = flat.to_data().to_doubles();
        Doubles expected, gx(v.size(), 0.0);
        for (const Window& window : windows(c)) {
          const double n = static_cast<double>(
              count_include_pad ? window.places : static_cast<int64_t>(window.inside.size()));
          double sum = 0;
          const double g = static_cast<double>((expected.size() + 1) % 5);
          for (int64_t at : window.inside) {
            sum += v[window.plane + static_cast<size_t>(at)];
            gx[window.plane + static_cast<size_t>(at)] += g / n;
          }
          expected.push_back(sum / n);
        }
        for (Tensor x : {flat.clone(), scattered(flat)}) {
          x.requires_grad_();
          const Tensor out = avg_pool2d(x, c.options);
          CHECK(mismatch(out, os, expected) == "");
          const Tensor seed = ((arange(os.numel(), {.device = device}) + 1) % 5).reshape(os);
          CHECK(mismatch(*x.grad(out.backward(seed.to(dtype))), c.x, gx) == "");
        }
      }
    }
  });
}

TEST_CASE("ceil_mode and three dims, by hand") {
  on_devices([](Device device) {
    const Tensor x = arange(1.0, 10.0, 1.0, {f32, device}).reshape({1, 3, 3});
    CHECK(mismatch(max_pool2d(x, {}), {1, 1, 1}, {5}) == "");
    CHECK(mismatch(max_pool2d(x, {.ceil_mode = true}), {1, 2, 2}, {5, 6, 8, 9}) == "");
    // The windows at the edge average only what is there.
    CHECK(mismatch(avg_pool2d(x, {.ceil_mode = true}), {1, 2, 2}, {3, 4.5, 7.5, 9}) == "");
    CHECK(mismatch(avg_pool2d(x, {.kernel = {2, 2}, .stride = {2, 2}, .padding = {1, 1}}),
                   {1, 2, 2}, {0.25, 1.25, 2.75, 7}) == "");
    CHECK(max_pool2d_with_indices(x, {}).second.shape() == Shape{1, 1, 1});
  });
}

TEST_CASE("NaN, minus infinity, empty batches") {
  const double inf = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  on_devices([&](Device device) {
    const TensorOptions on{f32, device};
    const Tensor x = tensor({{{{-inf, -inf, 1.0, nan}, {-inf, -inf, 2.0, 3.0}}}}, on);
    const auto [values, index] = max_pool2d_with_indices(x, {});
    CHECK(mismatch(values, {1, 1, 1, 2}, {-inf, nan}) == "");
    CHECK(mismatch(index, {1, 1, 1, 2}, {0, 3}) == "");
    CHECK(max_pool2d(zeros({0, 2, 4, 4}, on), {}).shape() == Shape{0, 2, 2, 2});
    CHECK(avg_pool2d(zeros({1, 0, 4, 4}, on), {}).shape() == Shape{1, 0, 2, 2});
  });
}

TEST_CASE("what does not fit") {
  const Tensor x = ones({1, 1, 4, 4});
  CHECK_THROWS_AS(max_pool2d(ones({4, 4}), {}), ShapeError);
  CHECK_THROWS_AS(max_pool2d(x, {.kernel = {0, 2}}), ValueError);
  CHECK_THROWS_AS(max_pool2d(x, {.stride = {2, 0}}), ValueError);
  CHECK_THROWS_AS(max_pool2d(x, {.padding = {2, 0}}), ValueError);  // over half
  CHECK_THROWS_AS(max_pool2d(x, {.kernel = {5, 2}}), ShapeError);
  CHECK_THROWS_AS(max_pool2d(x, {.dilation = {4, 1}}), ShapeError);
  CHECK_THROWS_AS(max_pool2d(x, {.kernel = {INT64_MAX, 2}, .dilation = {3, 1}}), ValueError);
  CHECK_THROWS_AS(avg_pool2d(x, {.kernel = {2, 2}, .padding = {-1, 0}}), ValueError);
  CHECK_THROWS_AS(avg_pool2d(ones({1, 1, 4, 4}, {i64}), {}), DTypeError);
  CHECK_THROWS_AS(max_pool2d(ones({1, 1, 0, 4}), {}), ShapeError);
}

TEST_CASE("adaptive max pooling finds the first largest element of each window") {
  on_devices([](Device device) {
    manual_seed(4);
    for (const DType dtype : {f64, f32, f16}) {
      // Few values, so that many are largest; and one NaN.
      Tensor x = randint(0, 5, {2, 3, 23, 41}, {i64, device}).to(dtype);
      x.select(0, 1).select(0, 2).select(0, 7).select(0, 30).fill_(
          std::numeric_limits<double>::quiet_NaN());
      const auto [y, index] = functional::adaptive_max_pool2d_with_indices(x, {4, 3});
      const Doubles all = x.to(f64).to_data().to_doubles();
      Doubles values, places;
      for (int64_t plane = 0; plane < 6; ++plane) {
        for (int64_t i = 0; i < 4; ++i) {
          for (int64_t j = 0; j < 3; ++j) {
            int64_t best = -1;
            const auto value = [&](int64_t k) { return all[static_cast<size_t>(plane * 943 + k)]; };
            for (int64_t r = i * 23 / 4; r < ((i + 1) * 23 + 3) / 4; ++r) {
              for (int64_t c = j * 41 / 3; c < ((j + 1) * 41 + 2) / 3; ++c) {
                const double v = value(r * 41 + c);
                const bool better =
                    best < 0 || v > value(best) || (std::isnan(v) && !std::isnan(value(best)));
                if (better) best = r * 41 + c;
              }
            }
            values.push_back(value(best));
            places.push_back(static_cast<double>(best));
          }
        }
      }
      CHECK(mismatch(y, {2, 3, 4, 3}, values) == "");
      CHECK(mismatch(index, {2, 3, 4, 3}, places) == "");
    }
  });
}

TEST_CASE("pooling over one and three dims, adaptive pooling: edges") {
  using namespace functional;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  on_devices([&](Device device) {
    const TensorOptions on{f32, device};
    const Tensor x = tensor({1.0, nan, 3.0, 2.0}, on).reshape({1, 1, 4});
    const auto [values, index] = max_pool1d_with_indices(x, 2);
    CHECK(mismatch(values, {1, 1, 2}, {nan, 3}) == "");
    CHECK(mismatch(index, {1, 1, 2}, {1, 2}) == "");
    CHECK(mismatch(adaptive_max_pool1d(x, 1), {1, 1, 1}, {nan}) == "");
    CHECK(mismatch(adaptive_avg_pool1d(tensor({1.0, 2.0, 4.0}, on).reshape({1, 1, 3}), 2),
                   {1, 1, 2}, {1.5, 3}) == "");
    CHECK(adaptive_avg_pool2d(zeros({2, 3, 4, 4}, on), {0, 2}).shape() == Shape{2, 3, 0, 2});
    CHECK(max_pool3d(zeros({0, 2, 4, 4, 4}, on), 2).shape() == Shape{0, 2, 2, 2, 2});
    // Infinity stays in its window.
    const double inf = std::numeric_limits<double>::infinity();
    CHECK(mismatch(adaptive_avg_pool1d(tensor({inf, 1.0, 2.0, 3.0}, on).reshape({1, 4}), 2), {1, 2},
                   {inf, 2.5}) == "");
  });
}

TEST_CASE("pooling: what does not fit") {
  using namespace functional;
  const Tensor x = zeros({1, 2, 4, 4});
  CHECK(error_lacks<ShapeError>([&] { max_pool1d(x, 2); }, {"max_pool1d", "[N, C, L]"}) == "");
  CHECK(error_lacks<ValueError>([&] { max_pool2d(x, 2, {}, 2); }, {"half"}) == "");
  CHECK(error_lacks<ShapeError>([&] { max_pool2d(x, 5); }, {"larger"}) == "");
  CHECK(error_lacks<ValueError>([&] { avg_pool2d(x, 2, {}, 0, false, true, 0); },
                                {"divisor_override"}) == "");
  CHECK(error_lacks<DTypeError>([&] { avg_pool2d(x.to(i64), 2); }, {"avg_pool2d"}) == "");
  CHECK(error_lacks<ValueError>([&] { adaptive_avg_pool2d(x, -2); }, {"output_size"}) == "");
  const auto [y, i] = max_pool2d_with_indices(x, 2);
  CHECK(error_lacks<IndexError>([&] { max_unpool2d(y, i + 100, 2); }, {"max_unpool2d"}) == "");
  CHECK(error_lacks<ValueError>(
            [&] {
              max_unpool2d(y, i, 2, {}, 0, Shape{7, 7});
            },
            {"output_size"}) == "");
  CHECK(error_lacks<ShapeError>([&] { max_unpool2d(y, i.narrow(1, 0, 1), 2); }, {"indices"}) == "");
}
