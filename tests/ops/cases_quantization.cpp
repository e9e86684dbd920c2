// Quantized tensors: what rounding leaves, and products with them. (tests/tensor/quantize.cpp has
// their integers and scales.)
#include "tests/ops/call.h"
#include "tests/ops/case.h"

namespace kiln::ops {

KILN_OP_CASES(quantization) {
  const std::string none = "PyTorch keeps quantized tensors in other forms";
  const std::string steps = "constant but for its jumps";

  op("quantize", "torch.quantize(a, bits=4, level='block', block=8).dequantize(dtype=a.dtype)",
     KILN_CALL(dequantize(quantize(x[0], {.bits = 4, .level = QuantLevel::block, .block = 8}),
                          x[0].dtype())),
     {constant({5, 19})})
      .no_peer(none)
      .no_gradient(steps)
      .big({constant({1024, 1024})});
  op("quantize_dynamic", "torch.quantize_dynamic(a).dequantize(dtype=a.dtype)",
     KILN_CALL(dequantize(quantize_dynamic(x[0]), x[0].dtype())), {constant({5, 19})})
      .no_peer(none)
      .no_gradient(steps)
      .big({constant({1024, 1024})});

  op("nn.functional.linear", "F.linear(a, torch.quantize(b, level='channel'), c)",
     KILN_CALL(functional::linear(x[0], quantize(x[1], {.level = QuantLevel::channel}), x[2])),
     {real({3, 2, 12}), constant({7, 12}), real({7})})
      .no_peer(none)
      .big({real({512, 1024}), constant({1024, 1024}), real({1024})});
  op("nn.functional.linear",
     "F.linear(a, torch.quantize(b, bits=4, level='block', block=8, activations='dynamic'), c)",
     KILN_CALL(functional::linear(x[0],
                                  quantize(x[1], {.bits = 4,
                                                  .level = QuantLevel::block,
                                                  .block = 8,
                                                  .activations = QuantActivations::dynamic}),
                                  x[2])),
     {constant({3, 2, 20}), constant({7, 20}), constant({7})})
      .no_peer(none)
      .no_gradient("the rounding of the input counts as the identity")
      .big({constant({512, 1024}), constant({1024, 1024}), constant({1024})});
  op("nn.functional.linear",
     "F.linear(a, torch.quantize(b, level='channel', activations='dynamic'), c)",
     KILN_CALL(functional::linear(
         x[0],
         quantize(x[1], {.level = QuantLevel::channel, .activations = QuantActivations::dynamic}),
         x[2])),
     {constant({3, 2, 20}), constant({7, 20}), constant({7})})
      .no_peer(none)
      .no_gradient("the rounding of the input counts as the identity")
      .big({constant({512, 1024}), constant({1024, 1024}), constant({1024})});

  op("matmul", "torch.matmul(torch.quantize_dynamic(a), torch.quantize(b))",
     KILN_CALL(matmul(quantize_dynamic(x[0]), quantize(x[1]))),
     {constant({5, 19}), constant({19, 6})})
      .dtypes({f32})
      .no_peer(none)
      .no_gradient(steps)
      .big({constant({512, 1024}), constant({1024, 1024})});
  op("matmul", "torch.matmul(a, torch.quantize(b))", KILN_CALL(matmul(x[0], quantize(x[1]))),
     {real({5, 9}), constant({9, 6})})
      .no_peer(none);
}

}  // namespace kiln::ops
