// Convolutions by Winograd's algorithm against Reference, and where it must step back.
#include <limits>

#include "kiln/backend/cpu/conv/winograd.h"
#include "kiln/core/winograd_setting.h"
#include "neural_check.h"

using namespace kiln;
using namespace kiln::test;

namespace {

struct WinogradProblem {
  Shape x, weight;
  IntPair padding = {0, 0};
  int64_t groups = 1;

  ConvOptions options() const { return {{1, 1}, padding, {1, 1}, groups}; }
  Shape out() const {
    return {x[0], weight[0], x[2] + 2 * padding[0] - 2, x[3] + 2 * padding[1] - 2};
  }
};

const WinogradProblem kProblems[] = {
    {{1, 32, 14, 14}, {40, 32, 3, 3}, {1, 1}},     // one image, its channels shared out
    {{5, 24, 13, 10}, {17, 24, 3, 3}, {0, 0}},     // tiles that stick out, an odd panel
    {{3, 16, 9, 35}, {48, 16, 3, 3}, {2, 2}},      // more padding than the window needs
    {{1, 16, 5, 266}, {16, 16, 3, 3}, {1, 1}},     // rows of several strips
    {{2, 48, 12, 12}, {48, 16, 3, 3}, {1, 1}, 3},  // groups
    {{2, 130, 8, 8}, {70, 130, 3, 3}, {1, 1}},     // more channels than a run has
    {{2, 16, 24, 24}, {16, 16, 3, 3}, {1, 1}},
};

HostHandle wide(const HostHandle& x, bool absolute) {
  std::vector<double> values = values_of(x);
  if (absolute) {
    for (double& v : values) v = std::abs(v);
  }
  return host::from_data(TensorData(values, x->shape()), Device());
}

HostHandle convolve(const WinogradProblem& p, const HostHandle& x, const HostHandle& w,
                    const HostHandle* bias) {
  const HostHandle y = host::empty(p.out(), DType::f32, Device());
  REQUIRE(cpu::winograd_forward(cpu::ConvSizes(p.x, p.weight, p.options()),
                                x->data_as<const float>(), {w->data_as<const float>()},
                                bias == nullptr ? nullptr : (*bias)->data_as<const float>(), {},
                                y->data_as<float>()));
  return y;
}

void check_problem(const WinogradProblem& p) {
  CAPTURE(to_string(p.x));
  CAPTURE(to_string(p.weight));
  const HostHandle x = random_tensor(p.x, DType::f32, 1);
  const HostHandle w = random_tensor(p.weight, DType::f32, 2);
  const HostHandle g = random_tensor(p.out(), DType::f32, 3);
  const HostHandle bias = random_tensor({p.weight[0]}, DType::f32, 4);
  const auto want =
      values_of(Reference::float_conv2d(wide(x, false), wide(w, false), nullptr, p.options()));
  const auto weight =
      values_of(Reference::float_conv2d(wide(x, true), wide(w, true), nullptr, p.options()));
  const HostHandle x_grad = Reference::float_conv2d_input_grad(w, g, p.x, p.options());
  double mean = 0.0;
  for (const double v : weight) mean += v / static_cast<double>(weight.size());
  at_every_target([&] {
    // In units of the mean sum of what the products of an output weigh. (Not of its own: an output
    // at the edge, whose window sees little but padding, shares a tile with others.)
    const auto got = values_of(convolve(p, x, w, nullptr));
    double worst = 0.0;
    for (size_t i = 0; i < got.size(); ++i) worst = std::max(worst, std::abs(got[i] - want[i]));
    CHECK(worst / mean / std::numeric_limits<float>::epsilon() < 8.0);

    const auto shifted = values_of(convolve(p, x, w, &bias));
    const auto shifts = values_of(bias);
    const auto pixels = static_cast<size_t>(p.out()[2] * p.out()[3]);
    for (size_t i = 0; i < got.size(); ++i) {
      const double sum = got[i] + shifts[i / pixels % shifts.size()];
      if (std::abs(shifted[i] - sum) > 1e-6 * (1.0 + std::abs(sum))) CHECK(shifted[i] == sum);
    }
    check_close(Cpu::float_conv2d_input_grad(w, g, p.x, p.options()), x_grad,
                kernel_tolerance(DType::f32) * 16);
  });
}

}  // namespace

TEST_CASE("Winograd's convolution: values and the input's gradient, every instruction set") {
  for (const WinogradProblem& p : kProblems) check_problem(p);
}

TEST_CASE("Winograd's convolution: the same bits at any number of threads") {
  for (const WinogradProblem& p : kProblems) {
    const HostHandle x = random_tensor(p.x, DType::f32, 1);
    const HostHandle w = random_tensor(p.weight, DType::f32, 2);
    check_deterministic(
        [&] { return std::vector<HostHandle>{Cpu::float_conv2d(x, w, nullptr, p.options())}; });
  }
}

TEST_CASE("Winograd's convolution: infinities, NaN and overflow reach the windows that see them") {
  const WinogradProblem p{{2, 16, 13, 13}, {16, 16, 3, 3}, {1, 1}};
  for (const float odd :
       {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN(), 3e38F}) {
    CAPTURE(odd);
    std::vector<double> values = values_of(random_tensor(p.x, DType::f32, 1));
    values[13 * 13 + 3 * 13 + 7] = odd;  // image 0, channel 1, pixel (3, 7)
    const HostHandle x = host::from_data(TensorData(values, p.x).cast(DType::f32), Device());
    const HostHandle w = random_tensor(p.weight, DType::f32, 2);
    const HostHandle got = Cpu::float_conv2d(x, w, nullptr, p.options());
    check_close(got, Reference::float_conv2d(x, w, nullptr, p.options()),
                kernel_tolerance(DType::f32) * 16);
    const auto y = values_of(got);
    for (int64_t i = 0; i < 13; ++i) {
      for (int64_t j = 0; j < 13; ++j) {
        const bool sees = i >= 2 && i <= 4 && j >= 6 && j <= 8;
        const bool small = std::abs(y[static_cast<size_t>(i * 13 + j)]) < 100.0;
        CHECK(small != sees);
      }
    }
  }
}

TEST_CASE("Winograd's convolution: can be switched off") {
  const WinogradProblem p{{1, 32, 24, 24}, {40, 32, 3, 3}};
  REQUIRE(cpu::winograd_pays(cpu::ConvSizes(p.x, p.weight, p.options())));
  const HostHandle x = random_tensor(p.x, DType::f32, 1);
  const HostHandle w = random_tensor(p.weight, DType::f32, 2);
  const HostHandle on = Cpu::float_conv2d(x, w, nullptr, p.options());
  set_winograd_enabled(false);
  const HostHandle off = Cpu::float_conv2d(x, w, nullptr, p.options());
  CHECK_FALSE(winograd_enabled());
  set_winograd_enabled(true);
  CHECK_FALSE(same_bits(on, off));
  CHECK(same_bits(on, Cpu::float_conv2d(x, w, nullptr, p.options())));
}

TEST_CASE("Winograd's convolution: other windows, strides and few channels go another way") {
  const auto pays = [](const Shape& x, const Shape& weight, const ConvOptions& o) {
    return cpu::winograd_pays(cpu::ConvSizes(x, weight, o));
  };
  CHECK_FALSE(pays({8, 32, 20, 20}, {32, 32, 5, 5}, {}));
  CHECK_FALSE(pays({8, 32, 20, 20}, {32, 32, 3, 3}, {.stride = {2, 2}}));
  CHECK_FALSE(pays({8, 32, 20, 20}, {32, 32, 3, 3}, {.dilation = {2, 1}}));
  CHECK_FALSE(pays({8, 1, 20, 20}, {32, 1, 3, 3}, {}));
  CHECK_FALSE(pays({8, 32, 20, 20}, {32, 1, 3, 3}, {.groups = 32}));
  CHECK_FALSE(pays({1, 512, 7, 7}, {512, 512, 3, 3}, {.padding = {1, 1}}));  // too few tiles
}
