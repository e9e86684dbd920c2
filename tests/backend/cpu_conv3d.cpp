// Cpu's convolutions of volumes and their gradients against Reference.
#include "neural_check.h"

using namespace kiln;
using namespace kiln::test;

namespace {

struct VolumeProblem {
  Shape x, weight;
  Conv3dOptions options;
};

Shape volume_output_shape(const VolumeProblem& p) {
  Shape shape = {p.x[0], p.weight[0]};
  for (size_t i = 0; i < 3; ++i) {
    const int d = static_cast<int>(i) + 2;
    shape.push_back(conv_output_size(p.x[d], p.weight[d], p.options.stride[i], p.options.padding[i],
                                     p.options.dilation[i]));
  }
  return shape;
}

const std::vector<VolumeProblem>& volume_problems() {
  static const std::vector<VolumeProblem> list = {
      {{1, 1, 4, 8, 8}, {4, 1, 3, 3, 3}, {}},
      {{2, 3, 5, 9, 7}, {5, 3, 3, 3, 3}, {.padding = {1, 1, 1}}},
      {{1, 2, 6, 10, 21}, {6, 2, 3, 3, 3}, {.stride = {2, 2, 2}, .padding = {1, 1, 1}}},
      {{1, 4, 3, 20, 37}, {3, 4, 2, 5, 3}, {.padding = {1, 2, 0}}},
      {{2, 6, 4, 7, 8}, {9, 2, 3, 3, 3}, {.padding = {1, 1, 1}, .groups = 3}},
      {{2, 3, 7, 8, 9}, {4, 3, 3, 3, 3}, {.padding = {2, 2, 2}, .dilation = {2, 2, 2}}},
      {{1, 3, 9, 8, 9},
       {4, 3, 3, 2, 3},
       {.stride = {3, 1, 2}, .padding = {4, 0, 1}, .dilation = {3, 1, 1}}},
      {{1, 4, 6, 5, 6}, {8, 4, 3, 1, 1}, {.padding = {1, 0, 0}}},  // planes see themselves alone
      {{1, 4, 6, 5, 6}, {8, 4, 1, 3, 3}, {.padding = {0, 1, 1}}},
      {{2, 4, 3, 5, 6}, {8, 4, 1, 1, 1}, {}},
      {{1, 3, 3, 4, 5}, {2, 3, 3, 4, 5}, {}},                      // one output element
      {{1, 2, 3, 4, 4}, {3, 2, 2, 2, 2}, {.padding = {4, 3, 3}}},  // more padding than window
      {{1, 2, 2, 4, 4}, {3, 2, 2, 3, 3}, {.padding = {5, 1, 1}, .dilation = {4, 1, 1}}},
      {{0, 2, 5, 5, 5}, {3, 2, 3, 3, 3}, {}},
      {{1, 30, 4, 6, 6}, {17, 30, 3, 3, 3}, {.padding = {1, 1, 1}}},  // deeper than one run
      {{1, 5, 2, 60, 90}, {7, 5, 2, 3, 3}, {.padding = {0, 1, 1}}},   // bands
      {{2, 15, 9, 8, 11}, {16, 15, 5, 5, 5}, {.stride = {2, 2, 2}}},  // pixels as rows
      {{2, 9, 5, 7, 8},
       {32, 9, 3, 3, 3},
       {.stride = {1, 2, 2}, .padding = {1, 1, 1}, .dilation = {2, 1, 1}}},
      {{3, 3, 4, 14, 14}, {8, 3, 2, 7, 7}, {.stride = {2, 7, 7}}},  // packed
      // Pixels as rows, of which many see padding; with windows that see nothing else.
      {{3, 7, 6, 7, 5}, {27, 7, 3, 3, 3}, {.padding = {2, 2, 2}, .dilation = {2, 2, 2}}},
      {{1, 3, 5, 7, 6}, {24, 3, 5, 7, 5}, {.padding = {2, 3, 2}}},
      {{1, 2, 3, 4, 5}, {40, 2, 3, 3, 3}, {.padding = {4, 3, 5}}},
      {{2, 50, 3, 4, 5}, {33, 50, 3, 5, 3}, {.stride = {1, 2, 1}, .padding = {2, 2, 1}}},
      // Depthwise.
      {{2, 4, 5, 6, 7}, {8, 1, 3, 3, 3}, {.padding = {1, 1, 1}, .groups = 4}},
      {{2, 5, 5, 9, 20}, {5, 1, 5, 5, 5}, {.stride = {2, 2, 2}, .padding = {2, 2, 2}, .groups = 5}},
      {{1, 3, 4, 8, 9},
       {15, 1, 3, 3, 3},
       {.padding = {1, 0, 2}, .dilation = {2, 1, 3}, .groups = 3}},
      {{1, 2, 20, 50, 60}, {2, 1, 3, 3, 3}, {.padding = {1, 1, 1}, .groups = 2}},  // bands
      {{1, 2, 3, 4, 4}, {2, 1, 2, 2, 2}, {.padding = {4, 3, 3}, .groups = 2}},
      {{1, 3, 2, 4, 4},
       {3, 1, 2, 3, 3},
       {.padding = {5, 1, 1}, .dilation = {4, 1, 1}, .groups = 3}},
      {{2, 3, 40, 3, 4}, {3, 1, 9, 1, 3}, {.stride = {3, 1, 1}, .padding = {4, 0, 1}, .groups = 3}},
      {{0, 2, 5, 5, 5}, {2, 1, 3, 3, 3}, {.groups = 2}},
  };
  return list;
}

}  // namespace

TEST_CASE("conv3d and its gradients: strides, padding, dilation, groups") {
  for (const DType dtype : {DType::f32, DType::f64}) {
    for (const VolumeProblem& p : volume_problems()) {
      CAPTURE(to_string(p.x));
      CAPTURE(to_string(p.weight));
      CAPTURE(to_string(dtype));
      const HostHandle x = random_tensor(p.x, dtype, 1), w = random_tensor(p.weight, dtype, 2);
      const HostHandle bias = random_tensor({p.weight[0]}, dtype, 3);
      const HostHandle g = random_tensor(volume_output_shape(p), dtype, 4);
      const double tolerance = kernel_tolerance(dtype) * 16;
      check_close(Cpu::float_conv3d(x, w, &bias, p.options),
                  Reference::float_conv3d(x, w, &bias, p.options), tolerance);
      check_close(Cpu::float_conv3d(x, w, nullptr, p.options),
                  Reference::float_conv3d(x, w, nullptr, p.options), tolerance);
      check_close(Cpu::float_conv3d_input_grad(w, g, p.x, p.options),
                  Reference::float_conv3d_input_grad(w, g, p.x, p.options), tolerance);
      check_close(Cpu::float_conv3d_weight_grad(x, g, p.weight, p.options),
                  Reference::float_conv3d_weight_grad(x, g, p.weight, p.options), tolerance * 4);
    }
  }
}

TEST_CASE("conv3d: every instruction set") {
  at_every_target([&] {
    for (const DType dtype : {DType::f32, DType::f64}) {
      for (const size_t i : {1U, 2U, 6U, 19U, 20U, 22U, 24U, 25U, 29U}) {
        const VolumeProblem& p = volume_problems()[i];
        const HostHandle x = random_tensor(p.x, dtype, 1), w = random_tensor(p.weight, dtype, 2);
        const HostHandle g = random_tensor(volume_output_shape(p), dtype, 4);
        check_close(Cpu::float_conv3d_weight_grad(x, g, p.weight, p.options),
                    Reference::float_conv3d_weight_grad(x, g, p.weight, p.options),
                    kernel_tolerance(dtype) * 64);
        check_close(Cpu::float_conv3d(x, w, nullptr, p.options),
                    Reference::float_conv3d(x, w, nullptr, p.options),
                    kernel_tolerance(dtype) * 16);
      }
    }
  });
}

TEST_CASE("conv3d: operands with gaps") {
  const VolumeProblem p = {{2, 3, 6, 12, 13}, {8, 3, 3, 3, 3}, {.padding = {1, 1, 1}}};
  const HostHandle x = random_tensor(p.x, DType::f32, 1),
                   w = random_tensor(p.weight, DType::f32, 2);
  const HostHandle g = random_tensor(volume_output_shape(p), DType::f32, 4);
  CHECK(same_bits(Cpu::float_conv3d(stored_with_gaps(x), stored_transposed(w), nullptr, p.options),
                  Cpu::float_conv3d(x, w, nullptr, p.options)));
  CHECK(same_bits(
      Cpu::float_conv3d_input_grad(stored_with_gaps(w), stored_transposed(g), p.x, p.options),
      Cpu::float_conv3d_input_grad(w, g, p.x, p.options)));
  CHECK(same_bits(
      Cpu::float_conv3d_weight_grad(stored_transposed(x), stored_with_gaps(g), p.weight, p.options),
      Cpu::float_conv3d_weight_grad(x, g, p.weight, p.options)));
}

TEST_CASE("conv3d: any number of threads") {
  std::vector<VolumeProblem> list = {
      {{2, 3, 6, 12, 13}, {8, 3, 3, 3, 3}, {.padding = {1, 1, 1}}},
      {{2, 16, 4, 30, 30}, {16, 1, 3, 3, 3}, {.padding = {1, 1, 1}, .groups = 16}},
      {{6, 40, 6, 7, 5}, {48, 40, 3, 3, 3}, {.padding = {2, 2, 2}, .dilation = {2, 2, 2}}},
      {{4, 8, 5, 13, 30},
       {8, 1, 5, 5, 5},
       {.stride = {2, 2, 2}, .padding = {2, 2, 2}, .groups = 8}},
  };
  for (const VolumeProblem& p : list) {
    CAPTURE(to_string(p.x));
    const HostHandle x = random_tensor(p.x, DType::f32, 1),
                     w = random_tensor(p.weight, DType::f32, 2),
                     g = random_tensor(volume_output_shape(p), DType::f32, 4);
    check_deterministic([&] {
      return std::vector<HostHandle>{Cpu::float_conv3d(x, w, nullptr, p.options),
                                     Cpu::float_conv3d_input_grad(w, g, p.x, p.options),
                                     Cpu::float_conv3d_weight_grad(x, g, p.weight, p.options)};
    });
  }
}
