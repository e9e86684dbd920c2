// Cpu's float_separable_block beside its convolutions one after another.
#include <limits>
#include <optional>

#include "neural_check.h"

using namespace kiln;
using namespace kiln::test;

namespace {

// Channels in, between and out; 0 where there is no convolution of 1 x 1.
struct Block {
  int64_t batch, in, channels, out;
  int64_t height, width, side;
  ConvOptions options;  // but for the groups
};

const HostHandle* pointer(const std::optional<HostHandle>& x) { return x ? &*x : nullptr; }

void check_block(const Block& b, bool bare, Activation wide, Activation activation,
                 Activation last) {
  CAPTURE(b.channels);
  CAPTURE(b.side);
  CAPTURE(b.width);
  CAPTURE(static_cast<int>(wide));
  ConvOptions options = b.options;
  options.groups = b.channels;
  const auto made = [](const Shape& shape, uint64_t seed) {
    return random_tensor(shape, DType::f32, seed);
  };
  const auto maybe = [&](bool there, const Shape& shape, uint64_t seed) {
    return there ? std::optional(made(shape, seed)) : std::nullopt;
  };
  const HostHandle x = made({b.batch, b.in == 0 ? b.channels : b.in, b.height, b.width}, 1);
  const auto expand = maybe(b.in != 0, {b.channels, b.in, 1, 1}, 2);
  const auto expand_bias = maybe(b.in != 0 && !bare, {b.channels}, 3);
  const HostHandle w = made({b.channels, 1, b.side, b.side}, 4);
  const auto bias = maybe(!bare, {b.channels}, 5);
  const auto project = maybe(b.out != 0, {b.out, b.channels, 1, 1}, 6);
  const auto project_bias = maybe(b.out != 0 && !bare, {b.out}, 7);
  HostHandle y = x;
  if (expand) {
    y = Cpu::float_conv2d_activation(y, *expand, pointer(expand_bias), nullptr, wide, {});
  }
  y = Cpu::float_conv2d_activation(y, w, pointer(bias), nullptr, activation, options);
  std::optional<HostHandle> residual;
  if (project) {
    const Shape shape = {y->shape()[0], b.out, y->shape()[2], y->shape()[3]};
    if (!bare) residual = made(shape, 8);
    y = Cpu::float_conv2d_activation(y, *project, pointer(project_bias), pointer(residual), last,
                                     {});
  }
  const HostHandle together = Cpu::float_separable_block(
      x, pointer(expand), pointer(expand_bias), wide, w, pointer(bias), activation,
      pointer(project), pointer(project_bias), pointer(residual), last, options);
  CHECK(same_bits(together, y));
}

}  // namespace

TEST_CASE("separable blocks have the bits of their convolutions") {
  using enum Activation;
  const std::vector<Block> blocks = {
      {2, 5, 31, 7, 47, 50, 3, {.padding = {1, 1}}},
      {1, 3, 40, 0, 61, 70, 5, {.stride = {2, 2}, .padding = {2, 2}}},
      {3, 0, 30, 17, 40, 61, 3, {.padding = {0, 1}}},
      {1, 6, 30, 4, 45, 121, 7, {.stride = {2, 2}, .padding = {3, 3}}},
      {9, 20, 90, 20, 14, 14, 3, {.padding = {1, 1}}},
      // Several threads share one band.
      {1, 64, 384, 64, 14, 14, 3, {.padding = {1, 1}}},
      {1, 40, 250, 33, 20, 29, 5, {.padding = {2, 2}}},
      {2, 17, 100, 90, 31, 29, 5, {.stride = {2, 2}, .padding = {2, 2}}},
      // Bands that see padding alone, and images without a column.
      {1, 4, 60, 3, 50, 50, 3, {.padding = {2, 2}}},
      {1, 4, 60, 3, 50, 50, 3, {.padding = {40, 1}}},
      {1, 4, 600, 3, 50, 0, 3, {.padding = {3, 5}}},
      // These go one after another: dilation, and more channels than a run of products has.
      {1, 4, 60, 3, 50, 50, 3, {.padding = {2, 2}, .dilation = {2, 2}}},
      {1, 2, 700, 9, 16, 16, 3, {.padding = {1, 1}}},
      {1, 650, 40, 3, 60, 60, 3, {.padding = {1, 1}}},
  };
  at_every_target([&] {
    for (const Block& b : blocks) {
      check_block(b, true, none, none, none);
      check_block(b, false, relu6, relu6, none);
      check_block(b, false, hardswish, silu, relu);
    }
  });
}

TEST_CASE("separable blocks with an infinity, and of another dtype") {
  const HostHandle x = random_tensor({1, 4, 60, 60}, DType::f32, 1);
  x->data_as<float>()[1234] = std::numeric_limits<float>::infinity();
  const HostHandle expand = random_tensor({40, 4, 1, 1}, DType::f32, 2);
  const HostHandle w = random_tensor({40, 1, 3, 3}, DType::f32, 3);
  const ConvOptions options{.padding = {1, 1}, .groups = 40};
  const auto block = [&](const HostHandle& a, const HostHandle& b, const HostHandle& c) {
    return Cpu::float_separable_block(a, &b, nullptr, Activation::relu, c, nullptr,
                                      Activation::none, nullptr, nullptr, nullptr, Activation::none,
                                      options);
  };
  const auto apart = [&](const HostHandle& a, const HostHandle& b, const HostHandle& c) {
    const HostHandle y =
        Cpu::float_conv2d_activation(a, b, nullptr, nullptr, Activation::relu, ConvOptions{});
    return Cpu::float_conv2d(y, c, nullptr, options);
  };
  CHECK(same_but_for_nans(block(x, expand, w), apart(x, expand, w)));
  for (const DType dtype : {DType::f64, DType::bf16, DType::f16}) {
    const auto cast = [&](const HostHandle& t) { return Cpu::float_cast(t, dtype); };
    CHECK(same_bits(block(cast(x), cast(expand), cast(w)), apart(cast(x), cast(expand), cast(w))));
  }
}
