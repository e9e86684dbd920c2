// Cpu's convolutions and their gradients against Reference.
#include <algorithm>
#include <limits>
#include <string_view>

#include "kiln/backend/activated.h"
#include "kiln/backend/cpu/conv/conv_pixels.h"
#include "neural_check.h"

using namespace kiln;
using namespace kiln::test;

namespace {

struct Problem {
  Shape x, weight;
  ConvOptions options;
};

Shape output_shape(const Problem& p) {
  Shape shape = {p.x[0], p.weight[0], 0, 0};
  for (int d = 0; d < 2; ++d) {
    shape[2 + d] = conv_output_size(p.x[2 + d], p.weight[2 + d], p.options.stride[d],
                                    p.options.padding[d], p.options.dilation[d]);
  }
  return shape;
}

void check_problem(const Problem& p, DType dtype) {
  CAPTURE(to_string(p.x));
  CAPTURE(to_string(p.weight));
  CAPTURE(p.options.stride[0]);
  CAPTURE(p.options.padding[0]);
  CAPTURE(p.options.dilation[0]);
  CAPTURE(p.options.groups);
  CAPTURE(to_string(dtype));
  const HostHandle x = random_tensor(p.x, dtype, 1);
  const HostHandle w = random_tensor(p.weight, dtype, 2);
  const HostHandle bias = random_tensor({p.weight[0]}, dtype, 3);
  const HostHandle g = random_tensor(output_shape(p), dtype, 4);
  const double tolerance = kernel_tolerance(dtype) * 8;
  check_close(Cpu::float_conv2d(x, w, &bias, p.options),
              Reference::float_conv2d(x, w, &bias, p.options), tolerance);
  check_close(Cpu::float_conv2d(x, w, nullptr, p.options),
              Reference::float_conv2d(x, w, nullptr, p.options), tolerance);
  // The bits of the ops one after another.
  const HostHandle y = Cpu::float_conv2d(x, w, &bias, p.options);
  for (const Activation activation : {Activation::none, Activation::relu, Activation::relu6,
                                      Activation::hardswish, Activation::silu}) {
    CAPTURE(static_cast<int>(activation));
    CHECK(same_bits(Cpu::float_conv2d_activation(x, w, &bias, nullptr, activation, p.options),
                    activated<Cpu>(y, activation)));
    CHECK(same_bits(Cpu::float_conv2d_activation(x, w, &bias, &g, activation, p.options),
                    activated<Cpu>(Cpu::float_add(y, g), activation)));
  }
  check_close(Cpu::float_conv2d_input_grad(w, g, p.x, p.options),
              Reference::float_conv2d_input_grad(w, g, p.x, p.options), tolerance);
  const HostHandle x_bias = random_tensor({p.x[1]}, dtype, 5);
  const HostHandle transposed =
      Cpu::float_conv_transpose2d(g, w, &x_bias, Activation::none, p.x, p.options);
  check_close(transposed,
              Reference::float_conv_transpose2d(g, w, &x_bias, Activation::none, p.x, p.options),
              tolerance);
  for (const Activation activation :
       {Activation::relu, Activation::hardswish, Activation::sigmoid}) {
    CHECK(same_bits(Cpu::float_conv_transpose2d(g, w, &x_bias, activation, p.x, p.options),
                    activated<Cpu>(transposed, activation)));
  }
  check_close(Cpu::float_conv2d_weight_grad(x, g, p.weight, p.options),
              Reference::float_conv2d_weight_grad(x, g, p.weight, p.options), tolerance * 4);
}

const std::vector<Problem>& problems() {
  static const std::vector<Problem> list = {
      {{2, 1, 8, 8}, {4, 1, 3, 3}, {}},
      {{1, 3, 9, 7}, {5, 3, 3, 3}, {{1, 1}, {1, 1}, {1, 1}, 1}},
      {{2, 4, 10, 11}, {6, 4, 3, 3}, {{2, 2}, {1, 1}, {1, 1}, 1}},
      {{1, 2, 20, 37}, {3, 2, 5, 3}, {{1, 1}, {2, 0}, {1, 1}, 1}},
      {{2, 6, 12, 12}, {9, 2, 3, 3}, {{1, 1}, {1, 1}, {1, 1}, 3}},
      {{2, 6, 9, 9}, {6, 1, 3, 3}, {{1, 1}, {1, 1}, {1, 1}, 6}},
      {{1, 6, 9, 9}, {12, 1, 3, 3}, {{2, 2}, {1, 1}, {1, 1}, 6}},
      {{2, 3, 13, 14}, {4, 3, 3, 3}, {{1, 1}, {2, 2}, {2, 2}, 1}},
      {{1, 3, 16, 17}, {4, 3, 3, 2}, {{3, 2}, {1, 0}, {2, 3}, 1}},
      {{3, 5, 6, 7}, {4, 5, 1, 1}, {}},
      {{9, 5, 6, 7}, {4, 5, 1, 1}, {}},
      {{2, 5, 6, 7}, {4, 5, 1, 1}, {{2, 2}, {0, 0}, {1, 1}, 1}},
      {{2, 4, 6, 7}, {4, 2, 1, 1}, {{1, 1}, {1, 1}, {1, 1}, 2}},
      {{1, 1, 1, 1}, {1, 1, 1, 1}, {}},
      {{1, 2, 3, 3}, {2, 2, 3, 3}, {}},  // one output pixel
      {{1, 2, 1, 40}, {2, 2, 1, 7}, {{1, 1}, {0, 3}, {1, 1}, 1}},
      {{1, 3, 1, 900}, {40, 3, 1, 7}, {{1, 1}, {0, 3}, {1, 1}, 1}},  // one row in parts
      {{1, 5, 1, 1201}, {33, 5, 1, 3}, {{1, 2}, {0, 1}, {1, 1}, 1}},
      {{2, 9, 1, 300}, {50, 9, 1, 11}, {{1, 1}, {0, 15}, {1, 3}, 1}},
      {{1, 4, 3, 500}, {45, 4, 3, 5}, {{1, 1}, {0, 0}, {1, 1}, 1}},
      {{1, 4, 2, 500}, {45, 4, 3, 5}, {{3, 1}, {1, 2}, {1, 1}, 1}},
      {{1, 6, 28, 28}, {60, 6, 1, 1}, {}},
      {{2, 4, 1, 20}, {4, 4, 1, 4}, {{1, 2}, {0, 1}, {1, 1}, 1}},  // phases that reach further
      {{2, 2, 1, 17}, {3, 2, 1, 3}, {{1, 3}, {0, 0}, {1, 1}, 1}},
      {{1, 10, 1, 999}, {40, 10, 1, 4}, {{1, 2}, {0, 1}, {1, 1}, 1}},
      {{1, 2, 40, 1}, {2, 2, 7, 1}, {{1, 1}, {3, 0}, {1, 1}, 1}},
      {{2, 2, 4, 4}, {3, 2, 2, 2}, {{1, 1}, {3, 3}, {1, 1}, 1}},  // more padding than window
      {{0, 2, 5, 5}, {3, 2, 3, 3}, {}},
      {{1, 0, 5, 5}, {3, 0, 3, 3}, {}},
      {{1, 8, 6, 6}, {40, 8, 3, 3}, {{1, 1}, {1, 1}, {1, 1}, 1}},
      {{1, 70, 5, 5}, {17, 70, 3, 3}, {{1, 1}, {1, 1}, {1, 1}, 1}},  // deeper than one run
      {{5, 4, 7, 7}, {4, 1, 3, 3}, {{1, 1}, {1, 1}, {1, 1}, 4}},     // planes side by side
      {{2, 3, 90, 61}, {3, 1, 5, 3}, {{2, 2}, {2, 1}, {1, 1}, 3}},   // bands, phases
      {{3, 2, 19, 40}, {6, 1, 4, 7}, {{3, 2}, {3, 5}, {2, 3}, 2}},   // phases without taps
      {{2, 2, 30, 33}, {2, 1, 3, 2}, {{4, 3}, {0, 1}, {1, 1}, 2}},   // phases beyond the kernel
      {{17, 3, 11, 13}, {5, 3, 4, 4}, {{2, 2}, {1, 1}, {1, 1}, 1}},  // their rows end elsewhere
      {{20, 2, 5, 18}, {3, 2, 3, 3}, {{1, 1}, {1, 1}, {1, 1}, 1}},   // more images than batch parts
      {{3, 40, 1, 1}, {70, 40, 1, 1}, {}},                           // linear layers
      {{2, 6, 4, 5}, {8, 3, 4, 5}, {{1, 1}, {0, 0}, {1, 1}, 2}},
      {{1, 70, 7, 7}, {80, 70, 1, 1}, {}},      // one image of few pixels
      {{1, 3, 13, 19}, {97, 3, 1, 1}, {}},      // panels side by side
      {{1, 1100, 3, 4}, {17, 1100, 1, 1}, {}},  // sums of two runs
      {{2, 18, 5, 14}, {18, 1, 3, 3}, {{1, 1}, {1, 1}, {1, 1}, 18}},
      {{1, 24, 7, 7}, {66, 24, 3, 3}, {{1, 1}, {1, 1}, {1, 1}, 1}},
      {{1, 20, 9, 14}, {70, 20, 1, 1}, {{2, 2}, {0, 0}, {1, 1}, 1}},
      {{3, 20, 12, 7}, {16, 20, 1, 1}, {}},  // rows put together
      {{2, 6, 64, 40}, {9, 6, 1, 1}, {}},
      {{3, 5, 14, 28}, {7, 5, 2, 2}, {{2, 2}, {0, 0}, {1, 1}, 1}},  // windows side by side
      {{2, 3, 4, 130}, {5, 3, 2, 2}, {{2, 2}, {0, 0}, {1, 1}, 1}},
      {{2, 4, 9, 12}, {6, 2, 3, 4}, {{3, 4}, {0, 0}, {1, 1}, 2}},
      {{1, 3, 6, 8}, {20, 3, 2, 1}, {{2, 1}, {0, 0}, {1, 1}, 1}},
      {{1, 3, 6, 9}, {20, 3, 2, 2}, {{2, 2}, {0, 0}, {1, 1}, 1}},  // and a column that none sees
      {{9, 16, 14, 14}, {32, 16, 3, 3}, {{2, 2}, {1, 1}, {1, 1}, 1}},  // pixels as rows
      {{3, 40, 9, 9}, {64, 20, 3, 3}, {{2, 2}, {1, 1}, {1, 1}, 2}},
      {{3, 60, 9, 7}, {33, 60, 5, 5}, {{1, 1}, {2, 2}, {1, 1}, 1}},  // sums of several runs
      {{2, 8, 40, 61}, {32, 8, 5, 5}, {{2, 2}, {2, 1}, {1, 2}, 1}},  // bands
      {{3, 32, 9, 9},
       {20, 32, 2, 2},
       {{1, 1}, {3, 3}, {1, 1}, 1}},                               // the gradient's padding is < 0
      {{3, 5, 5, 1}, {16, 5, 5, 5}, {{2, 2}, {4, 5}, {1, 1}, 1}},  // phases without elements
      {{4, 20, 1, 5}, {130, 20, 1, 3}, {{1, 1}, {0, 1}, {1, 1}, 1}},  // parts of the channels
      {{5, 33, 2, 2}, {70, 33, 1, 1}, {}},
      {{2, 12, 9, 6}, {34, 12, 4, 4}, {{2, 2}, {1, 1}, {1, 1}, 1}},  // phases of many channels
      {{2, 4, 12, 9}, {68, 1, 3, 3}, {{1, 1}, {0, 0}, {2, 2}, 4}},   // read where they lie
  };
  return list;
}

// Where neighbours in a row make the words, and where words make several runs.
const std::vector<Problem>& half_problems() {
  static const std::vector<Problem> list = {
      {{1, 3, 32, 48}, {33, 3, 8, 8}, {{8, 8}, {0, 0}, {1, 1}, 1}},  // patches of long rows
      {{1, 3, 30, 40}, {20, 3, 7, 12}, {{3, 2}, {1, 2}, {2, 1}, 1}},
      {{3, 5, 14, 40}, {17, 5, 2, 4}, {{2, 4}, {0, 2}, {1, 1}, 1}},
      {{2, 6, 9, 26}, {8, 3, 3, 2}, {{1, 2}, {1, 0}, {1, 1}, 2}},
      {{2, 1301, 5, 7}, {19, 1301, 1, 1}, {}},
      {{1, 1301, 5, 7}, {19, 1301, 1, 1}, {}},
      {{2, 150, 9, 20}, {21, 150, 3, 3}, {{1, 1}, {1, 1}, {1, 1}, 1}},
      {{1, 150, 9, 20}, {70, 150, 3, 3}, {{2, 1}, {1, 1}, {1, 1}, 1}},
  };
  return list;
}

template <class T>
HostHandle by_pixels(const Problem& p, const HostHandle& x, const HostHandle& w,
                     const HostHandle& bias, Activation activation = Activation::none) {
  HostHandle y = Cpu::float_empty(output_shape(p), x->dtype(), x->device());
  T* const to = y->data_as<T>();
  const cpu::Finish<T> finish(cpu::activation_kernel(activation, x->dtype()), nullptr, to);
  cpu::forward_by_pixels<T>(cpu::ConvSizes(p.x, p.weight, p.options), x->data_as<const T>(),
                            {w->data_as<const T>()}, bias->data_as<const T>(), finish, to);
  return y;
}

}  // namespace

TEST_CASE("conv2d and its gradients: strides, padding, dilation, groups") {
  for (const DType dtype : {DType::f32, DType::f64}) {
    for (const Problem& p : problems()) check_problem(p, dtype);
  }
}

TEST_CASE("conv2d and its gradients: every instruction set") {
  at_every_target([] {
    for (const Problem& p : problems()) check_problem(p, DType::f32);
  });
}

TEST_CASE("conv2d and its gradients: 16-bit floats") {
  for (const size_t i : {1, 2}) check_problem(problems()[i], DType::f16);
  // By words, at the best instruction set, and in floats.
  at_every_target([] {
    for (const Problem& p : problems()) check_problem(p, DType::bf16);
    for (const Problem& p : half_problems()) check_problem(p, DType::bf16);
  });
}

TEST_CASE("conv2d and activations: NaN, infinities and zeros of either sign") {
  const double inf = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double special[] = {nan, inf, -inf, -0.0, 0.0, 6.0, 7.0, -1.0};
  at_every_target([&] {
    const bool scalar = std::string_view(cpu::target_name()) == "SCALAR";
    for (const Problem& p : problems()) {
      for (const DType dtype : {DType::f32, DType::f64, DType::bf16}) {
        CAPTURE(to_string(p.x));
        CAPTURE(to_string(p.weight));
        if (output_shape(p).numel() == 0) continue;
        // Each channel is its bias, and a few pixels of x are special too.
        const HostHandle x = random_tensor(p.x, dtype, 1);
        const HostHandle w = random_tensor(p.weight, dtype, 2);
        const HostHandle bias = random_tensor({p.weight[0]}, dtype, 3);
        const auto fill = [&]<class T>(T) {
          T* const b = bias->data_as<T>();
          for (int64_t c = 0; c < p.weight[0]; ++c) {
            const int64_t size = p.weight.numel() / p.weight[0];
            std::fill_n(w->data_as<T>() + c * size, size, T(-0.0f));
            b[c] = static_cast<T>(static_cast<float>(special[c % 8]));
          }
          if (p.x.numel() > 0)
            x->data_as<T>()[p.x.numel() / 2] = static_cast<T>(static_cast<float>(inf));
        };
        if (dtype == DType::f64) {
          fill(double{});
        } else if (dtype == DType::bf16) {
          fill(bfloat16{});
        } else {
          fill(float{});
        }
        const HostHandle y = Cpu::float_conv2d(x, w, &bias, p.options);
        for (const Activation activation :
             {Activation::relu, Activation::relu6, Activation::hardswish}) {
          const HostHandle at_once =
              Cpu::float_conv2d_activation(x, w, &bias, nullptr, activation, p.options);
          const HostHandle after = activated<Cpu>(y, activation);
          CHECK((same_bits(at_once, after) || (scalar && same_but_for_nans(at_once, after))));
        }
      }
    }
  });
}

// The number of threads may decide which way is taken.
TEST_CASE("conv2d: every way gives the same bits") {
  const std::vector<Problem> several_runs = {
      {{3, 60, 9, 40}, {7, 60, 5, 5}, {{1, 1}, {2, 2}, {1, 1}, 1}},
      {{3, 60, 11, 9}, {40, 60, 5, 5}, {{2, 2}, {2, 2}, {1, 1}, 1}},
      {{2, 90, 30, 31}, {4, 90, 3, 3}, {{2, 2}, {1, 1}, {1, 1}, 1}},
      {{2, 80, 9, 7}, {74, 40, 5, 5}, {{1, 1}, {0, 0}, {1, 1}, 2}},
  };
  for (const Problem& p : several_runs) {
    CAPTURE(to_string(p.weight));
    const HostHandle x = random_tensor(p.x, DType::f32, 1);
    const HostHandle w = random_tensor(p.weight, DType::f32, 2);
    const HostHandle bias = random_tensor({p.weight[0]}, DType::f32, 3);
    CHECK(same_bits(Cpu::float_conv2d(x, w, &bias, p.options), by_pixels<float>(p, x, w, bias)));
  }
}

// Whatever the shapes for which conv2d takes this way.
TEST_CASE("conv2d with output pixels as rows") {
  at_every_target([&] {
    for (const Problem& p : problems()) {
      for (const DType dtype : {DType::f32, DType::f64}) {
        CAPTURE(to_string(p.x));
        CAPTURE(to_string(p.weight));
        if (output_shape(p).numel() == 0 || p.weight.numel() == 0) continue;
        const HostHandle x = random_tensor(p.x, dtype, 1), w = random_tensor(p.weight, dtype, 2);
        const HostHandle bias = random_tensor({p.weight[0]}, dtype, 3);
        const bool wide = dtype == DType::f64;
        const HostHandle y =
            wide ? by_pixels<double>(p, x, w, bias) : by_pixels<float>(p, x, w, bias);
        const HostHandle activated_y = wide ? by_pixels<double>(p, x, w, bias, Activation::relu)
                                            : by_pixels<float>(p, x, w, bias, Activation::relu);
        check_close(y, Reference::float_conv2d(x, w, &bias, p.options),
                    kernel_tolerance(dtype) * 8);
        CHECK(same_bits(activated_y, activated<Cpu>(y, Activation::relu)));
      }
    }
  });
}

TEST_CASE("conv2d: operands with gaps") {
  const Problem p = problems()[2];
  const HostHandle x = random_tensor(p.x, DType::f32, 1);
  const HostHandle w = random_tensor(p.weight, DType::f32, 2);
  const HostHandle g = random_tensor(output_shape(p), DType::f32, 4);
  CHECK(same_bits(Cpu::float_conv2d(stored_with_gaps(x), stored_transposed(w), nullptr, p.options),
                  Cpu::float_conv2d(x, w, nullptr, p.options)));
  CHECK(same_bits(
      Cpu::float_conv2d_input_grad(stored_with_gaps(w), stored_transposed(g), p.x, p.options),
      Cpu::float_conv2d_input_grad(w, g, p.x, p.options)));
  CHECK(same_bits(
      Cpu::float_conv2d_weight_grad(stored_transposed(x), stored_with_gaps(g), p.weight, p.options),
      Cpu::float_conv2d_weight_grad(x, g, p.weight, p.options)));
}

TEST_CASE("conv2d and its gradients: the same bits at any number of threads") {
  const std::vector<Problem> list = {
      {{17, 3, 20, 20}, {16, 3, 3, 3}, {{1, 1}, {1, 1}, {1, 1}, 1}},
      {{1, 32, 24, 24}, {32, 32, 3, 3}, {{1, 1}, {1, 1}, {1, 1}, 1}},
      {{5, 16, 17, 17}, {16, 8, 3, 3}, {{2, 2}, {1, 1}, {1, 1}, 2}},
      {{9, 32, 12, 12}, {16, 32, 1, 1}, {}},
      {{3, 24, 14, 14}, {24, 1, 3, 3}, {{2, 2}, {1, 1}, {1, 1}, 24}},
      {{1, 8, 64, 64}, {8, 1, 5, 5}, {{1, 1}, {2, 2}, {1, 1}, 8}},
      {{1, 200, 7, 7}, {300, 200, 3, 3}, {{1, 1}, {1, 1}, {1, 1}, 1}},
      {{4, 500, 1, 1}, {300, 500, 1, 1}, {}},
      {{50, 8, 56, 56}, {16, 8, 2, 2}, {{2, 2}, {0, 0}, {1, 1}, 1}},
      {{1, 40, 1, 2000}, {96, 40, 1, 7}, {{1, 1}, {0, 9}, {1, 3}, 1}},
      {{1, 60, 1, 2000}, {96, 60, 1, 3}, {{1, 2}, {0, 0}, {1, 1}, 1}},
      {{1, 60, 1, 300}, {200, 60, 1, 3}, {{1, 1}, {0, 1}, {1, 1}, 1}},
      {{1, 60, 28, 28}, {200, 60, 1, 1}, {}},
      {{3, 48, 9, 8}, {96, 48, 5, 5}, {{1, 1}, {2, 2}, {1, 1}, 1}},
  };
  for (const Problem& p : list) {
    for (const DType dtype : {DType::f32, DType::bf16}) {
      const HostHandle x = random_tensor(p.x, dtype, 1);
      const HostHandle w = random_tensor(p.weight, dtype, 2);
      const HostHandle g = random_tensor(output_shape(p), dtype, 4);
      check_deterministic([&] {
        return std::vector<HostHandle>{Cpu::float_conv2d(x, w, nullptr, p.options),
                                       Cpu::float_conv2d_input_grad(w, g, p.x, p.options),
                                       Cpu::float_conv2d_weight_grad(x, g, p.weight, p.options)};
      });
    }
  }
}
