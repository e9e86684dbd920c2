// Quantized tensors: integers of 8 or 4 bits with scales.
#include "binding.h"

namespace kiln::python {

namespace {

QuantScheme scheme_of(const char* op, int bits, const std::string& level, int64_t block,
                      double scale, const std::string& activations) {
  QuantScheme scheme{.scale = scale, .bits = bits, .block = block};
  if (level == "tensor") {
    scheme.level = QuantLevel::tensor;
  } else if (level == "channel") {
    scheme.level = QuantLevel::channel;
  } else if (level == "block") {
    scheme.level = QuantLevel::block;
  } else {
    throw_error<ValueError>(op, ": expected level 'tensor', 'channel' or 'block'; got '", level,
                            "'");
  }
  if (activations == "dynamic") {
    scheme.activations = QuantActivations::dynamic;
  } else if (activations != "float") {
    throw_error<ValueError>(op, ": expected activations 'float' or 'dynamic'; got '", activations,
                            "'");
  }
  return scheme;
}

const char* name_of(QuantLevel level) {
  return level == QuantLevel::tensor    ? "tensor"
         : level == QuantLevel::channel ? "channel"
                                        : "block";
}

}  // namespace

void bind_quantization(nb::module_& m, TensorClass& c) {
  m.def(
      "quantize",
      [](const Tensor& x, int bits, const std::string& level, int64_t block, double scale,
         const std::string& activations) {
        Unlocked lock(x);
        return quantize(x, scheme_of("quantize", bits, level, block, scale, activations));
      },
      "input"_a, nb::kw_only(), "bits"_a = 8, "level"_a = "tensor", "block"_a = 32, "scale"_a = 0.0,
      "activations"_a = "float",
      "input as integers of 8 or 4 bits with a scale for the tensor, for each row "
      "(level='channel') "
      "or for each block of neighbours in a row. scale=0 takes it from the tensor. "
      "activations='dynamic' makes linear quantize its input, where this is the weight.");
  m.def(
      "quantize_dynamic",
      [](const Tensor& x, int bits, const std::string& level, int64_t block) {
        Unlocked lock(x);
        return quantize_dynamic(x, scheme_of("quantize_dynamic", bits, level, block, 0.0, "float"));
      },
      "input"_a, nb::kw_only(), "bits"_a = 8, "level"_a = "channel", "block"_a = 32,
      "quantize with all scales from the tensor itself, by default one for each row.");
  const auto dequantized = [](const Tensor& x, DType dtype) {
    Unlocked lock(x);
    return dequantize(x, dtype);
  };
  m.def("dequantize", dequantized, "input"_a, nb::kw_only(), "dtype"_a = DType::f32);
  c.def("dequantize", dequantized, nb::kw_only(), "dtype"_a = DType::f32);
  c.def(
      "int_repr", [](const Tensor& x) { return quantized_values(x); },
      "The integers of a quantized tensor: int8 or, in 4 bits, uint8 with two in a byte.");
  m.def(
      "quantized_values", [](const Tensor& x) { return quantized_values(x); }, "input"_a,
      "The integers of a quantized tensor: int8 or, in 4 bits, uint8 with two in a byte.");
  m.def(
      "quantized_scales", [](const Tensor& x) { return quantized_scales(x); }, "input"_a,
      "The scales of a quantized tensor: one, one for each row, or [rows, blocks].");
  m.def(
      "quant_scheme",
      [](const Tensor& x) {
        const QuantScheme scheme = quant_scheme(x);
        nb::dict out;
        out["bits"] = scheme.bits;
        out["level"] = name_of(scheme.level);
        out["block"] = scheme.block;
        out["activations"] = scheme.activations == QuantActivations::dynamic ? "dynamic" : "float";
        return out;
      },
      "input"_a, "How a quantized tensor is kept, as the arguments of make_quantized.");
  m.def(
      "make_quantized",
      [](const Tensor& values, const Tensor& scales, const std::vector<int64_t>& shape, int bits,
         const std::string& level, int64_t block, const std::string& activations) {
        Shape dims;
        for (const int64_t size : shape) dims.push_back(size);
        return make_quantized(values, scales,
                              scheme_of("make_quantized", bits, level, block, 0.0, activations),
                              dims);
      },
      "values"_a, "scales"_a, "shape"_a, nb::kw_only(), "bits"_a = 8, "level"_a = "tensor",
      "block"_a = 32, "activations"_a = "float",
      "A quantized tensor of parts, whose memory it shares.");
}

}  // namespace kiln::python
