#include "kiln/backend/flops.h"

#include <algorithm>
#include <utility>

namespace kiln {

namespace {

constexpr std::pair<std::string_view, Product> kProducts[] = {
    {"float_matmul", Product::matmul},
    {"int_matmul", Product::matmul},
    {"q_matmul", Product::matmul},
    {"float_csr_matmul", Product::csr_matmul},
    {"float_csr_sampled_matmul", Product::csr_matmul},
    {"float_linear", Product::matmul},
    {"float_linear_activation", Product::matmul},
    {"float_linear_quantized", Product::matmul},
    {"float_conv2d", Product::convolution},
    {"float_conv2d_activation", Product::convolution},
    {"float_separable_block", Product::separable_block},
    {"float_conv3d", Product::convolution},
    {"float_conv_transpose2d", Product::transposed_convolution},
    {"float_conv2d_input_grad", Product::convolution_input_grad},
    {"float_conv3d_input_grad", Product::convolution_input_grad},
    {"float_conv2d_weight_grad", Product::convolution_weight_grad},
    {"float_conv3d_weight_grad", Product::convolution_weight_grad},
    {"float_attention", Product::attention},
    {"float_attention_backward", Product::attention_backward},
    {"float_recurrence", Product::recurrence},
    {"float_recurrence_backward", Product::recurrence_backward},
    {"float_recurrent_cell", Product::recurrent_cell},
};

// What one channel of the output multiplies.
int64_t window_of(const Shape& weight) { return weight.numel() / std::max<int64_t>(1, weight[0]); }

}  // namespace

Product product_of(std::string_view row) {
  for (const auto& [name, product] : kProducts) {
    if (name == row) return product;
  }
  return Product::none;
}

int64_t flops_of(Product product, std::span<const Shape> operands, const Shape& result) {
  const auto of = [&](size_t i) -> const Shape& { return operands[i]; };
  switch (product) {
    case Product::none:
      return 0;
    case Product::matmul:
      return 2 * result.numel() * of(0)[-1];
    case Product::csr_matmul:  // of crow, col and two others, of which the last is a matrix
      return 2 * of(1).numel() * of(3)[1];
    case Product::convolution:
      return 2 * result.numel() * window_of(of(1));
    case Product::transposed_convolution:
      return 2 * of(0).numel() * window_of(of(1));
    case Product::convolution_input_grad:  // of the weight and the output's gradient
      return 2 * of(1).numel() * window_of(of(0));
    case Product::convolution_weight_grad:  // of the input and the output's gradient
      return 2 * of(1).numel() * window_of(result);
    case Product::separable_block: {  // of x, expand, a bias, weight, a bias, project and others
      const Shape &expand = of(1), &weight = of(3), &project = of(5);
      const int64_t pixels = result.numel() / std::max<int64_t>(1, result[1]);
      return 2 * ((expand.rank() == 4 ? of(0).numel() * expand[0] : 0) + pixels * weight.numel() +
                  (project.rank() == 4 ? pixels * project.numel() : 0));
    }
    case Product::attention:
      return 4 * of(0).numel() * of(1)[2];
    case Product::attention_backward:  // of the output's gradient, q and k
      return 10 * of(1).numel() * of(2)[2];
    case Product::recurrence:
    case Product::recurrence_backward: {
      const Shape& w = of(product == Product::recurrence ? 3 : 7);
      return 2 * w.numel() * (result.numel() / std::max<int64_t>(1, w[1]));
    }
    case Product::recurrent_cell:  // of x, h, c and the two weights
      return 2 * of(0)[0] * (of(3).numel() + of(4).numel());
  }
  return 0;
}

}  // namespace kiln
